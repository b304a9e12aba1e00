"""nemo-evaluator, unmodified: its gym solver finds an agent by `/server_instances`; its environment verifies texts."""

import asyncio
import json
from pathlib import Path

import pytest
from nemo_evaluator.environments.base import SeedResult
from nemo_evaluator.environments.gym import GymDataset, GymEnvironment
from nemo_evaluator.solvers.gym import GymSolver

from gym_mocks.examples import game, weather
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


def test_the_environment_verifies_without_a_session(tmp_path: Path) -> None:
    """Its native protocol: no seed, no cookie, and no `expected_answer` of a row."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in game.ROWS))

    async def rewards(url: str) -> list[float]:
        environment = GymEnvironment(url, protocol="native", dataset=GymDataset(rows))
        said = [solution[-1].text for solution in game.SOLUTIONS]
        verified = [await environment.verify(text, "", problem_idx=at) for at, text in enumerate(said)]
        await environment.close()
        return [one.reward for one in verified]

    with MockGym() as gym:
        server = game.server()
        assert asyncio.run(rewards(gym.add_resources(server.name, server))) == [1.0] * len(game.ROWS)
