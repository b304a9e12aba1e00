"""Rollouts per second of the mocks: `python benchmarks/mocks_rollouts.py [PARALLEL ...]`.

Always: all mocks. Where nemo-gym is installed also, in the same run: its stock resources servers in a mock
gym, and its simple_agent and openai_model in the mocks' places (in one process, without Ray and the 20
processes of the real stack, which makes them faster than that is). Every rollout has a route of its own, but
not with openai_model, which sends one model name for all.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import replayed, scripted_rows
from gym_mocks.reference import DATA, ROLLOUTS, reference_app

PARALLEL = (1, 16, 64, 256, 1024)
LOAD = Path(__file__).with_name("mocks_load.py")
Row = dict[str, Any]


def lines(path: Path) -> list[Row]:
    """A JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def load(gym: MockGym, rows: list[Row], rollouts: list[Row], count: int, parallel: int) -> Row:
    """So many rollouts, each on a route of its own that replays the recordings."""
    sent: list[Row] = []
    routes = []
    policy = replayed(rollouts)
    for number in range(count):
        row = rows[number % len(rows)]
        routes.append(gym.policy.bind(f"rollout-{number}", policy))
        params = row["responses_create_params"] | {"model": f"rollout-{number}"}
        sent.append(row | {"responses_create_params": params})
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(row) + "\n" for row in sent)
        file.flush()
        command = [sys.executable, str(LOAD), f"{gym.url('agent')}/run", file.name, str(parallel)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    for route in routes:
        route.release()
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: Row = json.loads(done.stdout)
    return found


@contextmanager
def mocks() -> Iterator[tuple[MockGym, list[Row], list[Row]]]:
    """Mocks throughout, with the reference server: 3 to 5 tool calls in a rollout."""
    with MockGym() as gym:
        gym.add_resources("env", reference_app())
        gym.add_agent("agent", resources="env")
        yield gym, lines(DATA), lines(ROLLOUTS)


@contextmanager
def small() -> Iterator[tuple[MockGym, list[Row], list[Row]]]:
    """Mocks throughout, with the weather example: one tool call in a rollout."""
    with MockGym() as gym:
        rows = gym.add_env(weather.server(), weather.ROWS)
        gym.add_agent("agent", resources="weather")
        gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
        run = f"{gym.url('agent')}/run"
        with httpx.Client() as client:
            yield gym, rows, [client.post(run, json=row).json() for row in rows]


def table(title: str, setup: Callable[[], AbstractContextManager[Any]], *, counts: dict[int, int]) -> None:
    """One set-up at every degree of parallelism."""
    print(f"\n{title}")
    with setup() as (gym, rows, rollouts):
        load(gym, rows, rollouts, 20, 4)
        for parallel, count in counts.items():
            found = load(gym, rows, rollouts, count, parallel)
            print(f"  {parallel:>5} in parallel: {found}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory of this process so far: {peak:.0f} MB")


def main() -> None:
    """Print the tables."""
    sys.path.insert(0, str(LOAD.parents[1]))  # for what is beside this script
    from benchmarks.open_files import raised  # noqa: PLC0415

    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} CPUs, {load}, {raised()}")
    degrees = tuple(map(int, sys.argv[1:])) or PARALLEL
    counts = {parallel: max(200, min(2 * parallel, 2048)) for parallel in degrees}
    table("mocks, weather example (5 requests a rollout)", small, counts=counts)
    table("mocks, reference server (8 to 14 requests a rollout)", mocks, counts=counts)
    if find_spec("nemo_gym") is None:
        print("\nnemo-gym is not installed: nothing to compare with")
        return
    from benchmarks.mocks_stock import stock, stock_with_real_agent  # noqa: PLC0415 - needs nemo-gym

    for folder in ("example_single_tool_call", "example_session_state_mgmt"):
        table(f"mocks, stock {folder}", partial(stock, folder), counts=counts)
        few = {parallel: max(100, min(parallel, 512)) for parallel in degrees}
        real = partial(stock_with_real_agent, folder)
        table(f"real simple_agent and openai_model, stock {folder}", real, counts=few)


if __name__ == "__main__":
    main()
