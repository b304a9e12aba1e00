"""Each way in which a rollout goes wrong, as the client of the nemo-gym that is installed meets it."""

import json
import math
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import scripted_rows
from gym_mocks.rollout_faults import RolloutFault

pytestmark = pytest.mark.nemo_gym

#: Collects the rows of each gym; for each rollout what the trainer sees of it. A minute is enough for all of them.
CLIENT = """
import asyncio, json, sys, time
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.rollout_collection import RolloutCollectionHelper

async def collected(port, rows):
    head = BaseServerConfig(host="127.0.0.1", port=port)
    while True:
        try:
            futures = list(RolloutCollectionHelper().run_examples(rows, head_server_config=head))
            break
        except Exception:
            print("=> refused", flush=True)
            await asyncio.sleep(0.1)
    seen = {}
    for future in futures:
        try:
            row, result = await asyncio.wait_for(future, 3)
            told = ("mask_sample", "_ng_failure_class")
            seen[row["_rowidx"]] = [result.get("reward"), *(result[key] for key in told if result.get(key))]
        except Exception as error:
            seen[len(seen) + 1000] = type(error).__name__
    return [seen[key] for key in sorted(seen)]

async def main():
    for port, rows in json.loads(sys.stdin.read()):
        print("=>", json.dumps(await collected(port, rows)), flush=True)

asyncio.run(asyncio.wait_for(main(), 200))
"""

#: The fault, and what becomes of a rollout.
SEEN: dict[str, tuple[RolloutFault | None, Any]] = {
    "none": (None, [1.0]),
    "lost once": (RolloutFault("lost", times=1), [1.0]),
    "late": (RolloutFault("late", seconds=0.3), [1.0]),
    "status": (RolloutFault("status", status=503), "ClientResponseError"),
    "a reward that is a string": (RolloutFault("reward", value="1.0"), ["1.0"]),
    "no reward": (RolloutFault("reward", value=None), [None]),
    "NaN": (RolloutFault("reward", value=math.nan), "JSONDecodeError"),
    "masked": (RolloutFault("mask"), [1.0, True]),
    "failed": (RolloutFault("failure_class", value="judge_failed"), [1.0, "judge_failed"]),
    "dies": (RolloutFault("dies"), "TimeoutError"),
}


def served(stack: ExitStack, fault: RolloutFault | None, **options: Any) -> MockGym:
    gym = stack.enter_context(MockGym(**options))
    gym.add_env(weather.server(), weather.ROWS)
    gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
    if fault:
        gym.fail(fault)
    return gym


def test_a_real_client_meets_each_of_them() -> None:
    """In one process, as nemo-gym takes seconds to import; its client asks again for ever where a connection breaks."""
    with ExitStack() as stack:
        asked: list[tuple[int, list[dict[str, Any]]]] = []
        for fault, _ in SEEN.values():
            gym = served(stack, fault)
            asked.append((_head(gym), [gym.rows[0] | {"_rowidx": 0}]))
        for _ in range(2):
            mixed = served(stack, RolloutFault("status", rate=0.5), seed=3)
            mixed.fail(RolloutFault("reward", rate=0.5, value=0.25))
            asked.append((_head(mixed), [row | {"_rowidx": at} for at, row in enumerate(mixed.rows)]))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            head_port = probe.getsockname()[1]
        asked.append((head_port, [{**weather.ROWS[0], "agent_ref": asked[0][1][0]["agent_ref"], "_rowidx": 0}]))
        client = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(client.kill)
        assert client.stdin
        assert client.stdout
        with client.stdin as told:
            told.write(json.dumps(asked))
        said = (line[3:].strip() for line in client.stdout if line.startswith("=> "))  # 0.7.0 prints its own, too
        *each, mix, again = [json.loads(next(said)) for _ in asked[:-1]]
        assert next(said) == "refused"
        served(stack, None, head_port=head_port, head_after=2)  # by when it has its env, on a busy machine, too
        came = next(line for line in said if line != "refused")
    assert dict(zip(SEEN, each, strict=True)) == {name: [seen] for name, (_, seen) in SEEN.items()}
    assert mix == again
    assert len({json.dumps(one) for one in mix}) > 1
    assert json.loads(came) == [[1.0]]


def _head(gym: MockGym) -> int:
    port = urlsplit(gym.head_url).port
    assert port is not None
    return port
