"""nemo-gym's own environment server, unmodified, against a mock gym; 0.7.0 was the first to have one."""

import json

import httpx
import pytest

from gym_mocks.gym import MockGym
from gym_mocks.nemo import add_environment_server, add_simple_agent
from gym_mocks.reference import DATA, ROLLOUTS, ReferenceServer
from gym_mocks.resources import TypedSessions

#: What nemo-gym warns of is its own affair: as errors its warnings would be replies of status 500.
pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]


def test_the_real_environment_server_opens_and_closes_typed_sessions() -> None:
    """It and its agent put the rollout before the model's path, and name and close the session themselves."""

    class Stockroom(TypedSessions, ReferenceServer):
        pass

    rows = [json.loads(line) for line in DATA.read_text().splitlines()]
    server = Stockroom()
    with MockGym() as gym:
        gym.policy.replay("recorded", [json.loads(line) for line in ROLLOUTS.read_text().splitlines()])
        gym.add_resources("stockroom", server)
        add_simple_agent(gym, "agent", resources="stockroom")
        run = add_environment_server(gym, "episodes", agent="agent", resources="stockroom") + "/run"
        asked = [row | {"_ng_task_index": number, "_ng_rollout_index": 0} for number, row in enumerate(rows)]
        rollouts = [httpx.post(run, json=row, timeout=60).json() for row in asked]
    assert [rollout.get("reward", rollout) for rollout in rollouts] == [1.0] * len(rows)
    assert len(server.closed) == len(server.owners) == len(rows)
