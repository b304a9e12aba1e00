"""The headline of the Verifiers integration, on nemo-gym's own examples: every rollout on its own route."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.mocks_stock import stock
from gym_mocks.gym import MockGym
from gym_mocks.policy import replayed
from gym_mocks.wire.client import LocalClient

pytestmark = pytest.mark.nemo_gym

#: Many at once on the one that keeps state; of the other, which keeps none, as many as in the headline.
STATELESS, STATEFUL = "example_single_tool_call", "example_session_state_mgmt"


@pytest.fixture
def gym(request: pytest.FixtureRequest) -> Iterator[tuple[MockGym, list[bytes]]]:
    with stock(request.param) as (gym, rows, rollouts):
        policy = replayed(rollouts)
        bodies = []
        for number in range(300):
            row = rows[number % len(rows)]
            gym.policy.bind(f"rollout-{number}", policy)
            params = row["responses_create_params"] | {"model": f"rollout-{number}"}
            bodies.append(json.dumps(row | {"responses_create_params": params}).encode())
        yield gym, bodies


@pytest.mark.parametrize(
    ("gym", "count", "parallel"), [(STATELESS, 100, 20), (STATEFUL, 100, 20), (STATEFUL, 300, 256)], indirect=["gym"]
)
def test_every_rollout_earns_one(gym: tuple[MockGym, list[bytes]], count: int, parallel: int) -> None:
    mocks, bodies = gym
    replies = asyncio.run(run_all(f"{mocks.url('agent')}/run", bodies[:count], parallel))
    assert {status for status, _ in replies} == {200}
    assert [json.loads(body)["reward"] for _, body in replies] == [1.0] * count
    assert mocks.policy.calls.count >= count
    assert {call.status for call in mocks.policy.calls} == {200}


async def run_all(url: str, bodies: list[bytes], parallel: int) -> list[tuple[int, Any]]:
    """Status and body of each run; `parallel` workers, each on a connection of its own."""
    client = LocalClient()
    waiting = iter(bodies)
    replies: list[tuple[int, Any]] = []

    async def work() -> None:
        for body in waiting:
            reply = await client.request("POST", url, body, {"content-type": "application/json"})
            replies.append((reply.status, reply.body))

    await asyncio.gather(*(work() for _ in range(parallel)))
    await client.close()
    return replies
