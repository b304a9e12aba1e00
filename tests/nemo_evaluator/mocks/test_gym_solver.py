"""nemo-evaluator's gym solver, unmodified, finds an agent by `/server_instances` and takes its reward."""

import asyncio

import pytest
from nemo_evaluator.environments.base import SeedResult
from nemo_evaluator.solvers.gym import GymSolver

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import scripted_rows


@pytest.mark.parametrize("agent", ["Weather_Simple_Agent", "no_such_agent"])
def test_the_solver_earns_the_rows_reward(agent: str) -> None:
    """By name, whatever its case; and, where no agent has that name, by kind."""
    params = weather.ROWS[0]["responses_create_params"]
    task = SeedResult(
        prompt=params["input"][0]["content"],
        expected_answer="",
        metadata={"tools": params["tools"]},
        messages=params["input"],
    )
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
        solver = GymSolver(gym.head_url, gym_agent=agent, trust_reward=True, timeout=60)
        result = asyncio.run(solver.solve(task))
    assert result.reward == 1.0
    assert result.response == "It is sunny in Paris."
    assert result.trajectory
