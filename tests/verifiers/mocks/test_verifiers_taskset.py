"""Verifiers' own evaluation, unmodified: its NeMo Gym taskset on our servers, with our policy as the model.

It plays each rollout in a subprocess of its own, through its own proxy and MCP bridge; the first run prepares
that subprocess's environment, which needs its package index.
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


@pytest.mark.parametrize("example", [weather, sandbox], ids=["weather", "sandbox"])
def test_vf_eval_earns_full_reward(example: ModuleType, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in example.ROWS))
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
            [str(Path(sys.executable).with_name("vf-eval")), "@", str(config)],
            capture_output=True,
            text=True,
            timeout=280,
            cwd=tmp_path,
            env=os.environ | {"MOCK_API_KEY": "none"},
            check=False,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (traces,) = (tmp_path / "out").rglob("traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    assert [episode["ok"] for episode in episodes] == [True] * len(example.ROWS)
    rewards = [trace["rewards"]["nemo_gym"]["score"] for episode in episodes for trace in episode["traces"]]
    assert rewards == [1.0] * len(example.ROWS)
