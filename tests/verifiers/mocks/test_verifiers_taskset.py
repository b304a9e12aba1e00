"""Verifiers' own evaluation, unmodified: its NeMo Gym taskset on our servers, with our policy as the model.

It plays each rollout in a subprocess of its own, through its own proxy and MCP bridge. uv prepares that
subprocess's environment, from a package index the first time. Verifiers would install uv into the user's home
where there is none, and keeps a cache there, so it gets uv on its PATH and a home of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gym_mocks.examples import sandbox, weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import scripted_rows

ROWS = 2  # at once, so that sessions which are not kept apart would show; each takes seconds of imports
BIN = Path(sys.executable).parent
HOME = Path(sys.prefix) / "home"

CONFIG = """
model = "mock"
push = false
output_dir = {out}

[client]
base_url = {model}
api_key_var = "MOCK_API_KEY"

[env.taskset]
id = "nemo_gym"
dataset = {rows}

[env.taskset.task]
resources_url = {resources}

[env.agent.runtime]
type = "subprocess"

[env.agent.harness]
id = "null"
"""


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """The process environment that Verifiers runs in."""
    uv = subprocess.run([str(BIN / "uv"), "cache", "dir"], capture_output=True, text=True, timeout=30, check=True)
    HOME.mkdir(exist_ok=True)
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    keys = {"MOCK_API_KEY": "none", "UV_CACHE_DIR": uv.stdout.strip()}
    return os.environ | keys | {"PATH": path, "HOME": str(HOME)}


@pytest.mark.parametrize("example", [weather, sandbox], ids=["weather", "sandbox"])
def test_vf_eval_earns_full_reward(example: ModuleType, environment: dict[str, str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in example.ROWS[:ROWS]))
    server = example.server()
    with MockGym() as gym:
        values = {
            "out": str(tmp_path / "out"),
            "rows": str(rows),
            "model": f"{gym.url('policy_model')}/v1",
            "resources": gym.add_resources(server.name, server),
        }
        config = tmp_path / "eval.toml"
        config.write_text(CONFIG.format(**{name: json.dumps(value) for name, value in values.items()}))
        gym.policy.default = scripted_rows(example.ROWS, example.SOLUTIONS)
        done = subprocess.run(
            [str(BIN / "vf-eval"), "@", str(config)],
            capture_output=True,
            text=True,
            timeout=280,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (traces,) = (tmp_path / "out").rglob("traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    assert [episode["ok"] for episode in episodes] == [True] * ROWS
    rewards = [trace["rewards"]["nemo_gym"]["score"] for episode in episodes for trace in episode["traces"]]
    assert rewards == [1.0] * ROWS
