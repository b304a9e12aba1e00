"""The clients and servers of the nemo-gym that is installed, unmodified, against a mock gym: six versions of it (tox.ini).

Each client runs in a process of its own, as a user starts it: nemo-gym keeps its configuration and its HTTP
client for a whole process.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.nemo import add_openai_model, add_simple_agent, add_vllm_model, asgi_app
from gym_mocks.policy import FakePolicy, call, scripted_rows, think
from gym_mocks.reference import DATA, ROLLOUTS, reference_app
from tests.nemo_gym.mocks.conftest import notes_env
from tests.nemo_gym.mocks.notes_twin import NOTES_ENV

#: What nemo-gym warns of is its own affair: as errors its warnings would be replies of status 500.
pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]

VERSION = tuple(map(int, version("nemo-gym").split(".")))

# What differs between the versions, and the file of nemo-gym that makes it so.
COLLECT = ("gym", "eval", "run", "--no-serve") if VERSION >= (0, 4) else ("ng_collect_rollouts",)  # cli/main.py
STATUS = ("gym", "env", "status") if VERSION >= (0, 4) else ("ng_status",)
AGGREGATES = VERSION >= (0, 3)  # rollout_collection.py: 0.2.1 asks no agent for metrics
MESSAGES = VERSION >= (0, 4)  # anthropic_converter.py: model servers that speak /v1/messages

HELPER = """
import asyncio, json, sys
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.rollout_collection import RolloutCollectionHelper
from nemo_gym.server_utils import ServerClient

async def main():
    head = BaseServerConfig(host="127.0.0.1", port=int(sys.argv[1]))
    rows = [json.loads(line) for line in open(sys.argv[2])]
    client = ServerClient.load_from_global_config(head)
    names = [name for name, entry in client.global_config_dict.items() if name.startswith("weather")]
    print(json.dumps({name: client.poll_for_status(name) for name in ["head_server", *names]}))
    rewards = []
    for future in RolloutCollectionHelper().run_examples(rows, head_server_config=head):
        row, result = await future
        rewards.append(result["reward"])
    print(json.dumps(rewards))

asyncio.run(main())
"""


@pytest.fixture
def gym() -> Iterator[MockGym]:
    with MockGym(token_fields=True) as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
        yield gym


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def command(cwd: Path, name: str, *arguments: str) -> str:
    """Run one of nemo-gym's own commands."""
    script = str(Path(sys.executable).with_name(name))
    done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=280, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def head_options(gym: MockGym) -> list[str]:
    parts = urlsplit(gym.head_url)
    return [f"+head_server.host={parts.hostname}", f"+head_server.port={parts.port}"]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_server_client_and_rollout_collection_helper(gym: MockGym, tmp_path: Path) -> None:
    """The entry of verl's recipe and NeMo RL; both read the head's YAML."""
    rows = written(tmp_path / "rows.jsonl", gym.rows * 4)
    *_, alive, rewards = python(HELPER, str(urlsplit(gym.head_url).port), str(rows)).splitlines()
    assert set(json.loads(alive).values()) == {"success"}
    assert {"head_server", "weather", "weather_simple_agent"} <= json.loads(alive).keys()
    assert json.loads(rewards) == [1.0] * 20


def test_collecting_on_the_command_line(gym: MockGym, tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", gym.rows)
    out = tmp_path / "rollouts.jsonl"
    files = (f"+input_jsonl_fpath={rows}", f"+output_jsonl_fpath={out}")
    command(tmp_path, *COLLECT, *files, "+num_repeats=2", *head_options(gym))
    rollouts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [rollout["reward"] for rollout in rollouts] == [1.0] * 10
    assert all("prompt_token_ids" in r["response"]["output"][-1] for r in rollouts)
    if AGGREGATES:
        (metrics,) = json.loads((tmp_path / "rollouts_aggregate_metrics.json").read_text())
        assert metrics["key_metrics"]["mean/reward"] == 1.0
        assert len(metrics["group_level_metrics"]) == 5


def test_status_on_the_command_line(gym: MockGym, tmp_path: Path) -> None:
    shown = command(tmp_path, *STATUS, *head_options(gym))
    assert "3 servers found (3 healthy, 0 unhealthy)" in shown
    assert "weather (resources_servers/weather)" in shown


def test_the_real_agent_with_our_policy_and_reference_server() -> None:
    rows = [json.loads(line) for line in DATA.read_text().splitlines()]
    with MockGym(token_fields=True) as gym:
        gym.policy.replay("recorded", [json.loads(line) for line in ROLLOUTS.read_text().splitlines()])
        gym.add_resources("stockroom", reference_app())
        run = add_simple_agent(gym, "agent", resources="stockroom") + "/run"
        rollouts = [httpx.post(run, json=row, timeout=60).json() for row in rows]
    assert [rollout["reward"] for rollout in rollouts] == [1.0] * len(rows)
    for rollout in rollouts:
        bundles = [item for item in rollout["response"]["output"] if "prompt_token_ids" in item]
        seen: list[int] = []
        for bundle in bundles:
            assert bundle["prompt_token_ids"][: len(seen)] == seen
            seen = bundle["prompt_token_ids"] + bundle["generation_token_ids"]
        assert len(bundles) >= 3


@pytest.mark.skipif(VERSION < (0, 5), reason="observability came with 0.5.0")
def test_the_real_agent_names_the_rollout_before_each_path() -> None:
    """`observability_enabled`: of the resources server, too (server_utils.py)."""
    with MockGym() as gym:
        gym.add_servers({"observability_enabled": True})
        gym.add_resources("weather", weather.server())
        gym.policy.script("any", [call("get_weather", city="Paris"), "Sunny."])
        run = add_simple_agent(gym, "agent", resources="weather") + "/run"
        row = weather.ROWS[0] | {"_ng_task_index": 0, "_ng_rollout_index": 0}
        assert httpx.post(run, json=row, timeout=60).json()["reward"] == 1.0


def test_the_real_model_server_with_our_policy_as_upstream() -> None:
    with MockGym() as gym:
        gym.add_resources("weather", weather.server())
        upstream = FakePolicy()
        gym.add_policy("upstream", upstream)
        upstream.script("policy", [[think("Hm."), call("get_weather", city="Paris")], "Sunny."])
        model = add_openai_model(gym, "openai_model", f"{gym.url('upstream')}/v1")
        gym.add_agent("agent", resources="weather", model="openai_model")
        reply = httpx.post(f"{gym.url('agent')}/run", json=weather.ROWS[0], timeout=60)
        assert reply.json()["reward"] == 1.0
        messages = [{"role": "developer", "content": "Brief."}, {"role": "user", "content": "Weather?"}]
        chat = httpx.post(f"{model}/v1/chat/completions", json={"messages": messages}, timeout=60).json()
        assert chat["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
        if MESSAGES:
            body = {"model": "claude", "max_tokens": 10, "messages": [{"role": "user", "content": "Weather?"}]}
            said = httpx.post(f"{model}/v1/messages", json=body, timeout=60).json()
            assert said["content"][-1]["type"] == "tool_use"
        assert upstream.calls.last.model == "policy"


def test_the_real_vllm_server_gets_contiguous_tokens() -> None:
    """As behind a trainer: log probabilities that carry token ids, and `/tokenize` for the prompt."""
    with MockGym() as gym:
        gym.add_resources("weather", weather.server())
        gym.policy.script("policy", [call("get_weather", city="Paris"), call("get_weather", city="Rome"), "Sunny."])
        add_vllm_model(gym, "vllm_model", f"{gym.url('policy_model')}/v1")
        gym.add_agent("agent", resources="weather", model="vllm_model")
        rollout = httpx.post(f"{gym.url('agent')}/run", json=weather.ROWS[0], timeout=60).json()
    assert rollout["reward"] == 1.0
    bundles = [item for item in rollout["response"]["output"] if "prompt_token_ids" in item]
    assert len(bundles) == 3
    seen: list[int] = []
    for bundle in bundles:
        assert bundle["prompt_token_ids"][: len(seen)] == seen
        assert len(bundle["generation_log_probs"]) == len(bundle["generation_token_ids"])
        seen = bundle["prompt_token_ids"] + bundle["generation_token_ids"]


def test_a_stock_resources_server_in_a_mock_gym() -> None:
    """An environment on nemo-gym's own class, with its own configuration and recorded rollouts."""
    rollouts = [json.loads(line) for line in (NOTES_ENV / "data" / "example_rollouts.jsonl").read_text().splitlines()]
    rows = [json.loads(line) for line in (NOTES_ENV / "data" / "example.jsonl").read_text().splitlines()]
    with MockGym() as gym:
        gym.add_resources("notes_env_resources_server", notes_env())
        gym.add_config(NOTES_ENV / "configs" / "notes_env.yaml")
        gym.policy.replay("recorded", rollouts)
        run = gym.url("notes_env_simple_agent") + "/run"
        assert [httpx.post(run, json=row, timeout=60).json()["reward"] for row in rows] == [1.0] * len(rows)


def test_nemo_gyms_own_examples_in_a_mock_gym() -> None:
    """The bundled example_single_tool_call and example_session_state_mgmt, each rollout on its own route."""
    for folder, class_name in (
        ("example_single_tool_call", "SimpleWeatherResourcesServer"),
        ("example_session_state_mgmt", "StatefulCounterResourcesServer"),
    ):
        server, rows, rollouts = bundled(folder, class_name)
        with MockGym() as gym:
            gym.add_resources(folder, asgi_app(server))
            run = gym.add_agent("agent", resources=folder) + "/run"
            gym.policy.replay("recorded", rollouts)
            with httpx.Client(timeout=60) as client:
                rewards = [client.post(run, json=row).json()["reward"] for row in rows]
            # 0.7.0's example_single_tool_call gives nothing for a rollout without a call; two of its own are such.
            assert sorted(rewards) == sorted(rollout["reward"] for rollout in rollouts)


def bundled(folder: str, class_name: str) -> tuple[Any, list[Any], list[Any]]:
    """A server of the nemo-gym wheel, with its rows and recorded rollouts."""
    import importlib  # noqa: PLC0415
    from unittest.mock import MagicMock  # noqa: PLC0415

    from nemo_gym.server_utils import ServerClient  # noqa: PLC0415

    module = importlib.import_module(f"resources_servers.{folder}.app")
    server_class = getattr(module, class_name)
    config_class = server_class.model_fields["config"].annotation
    config = config_class(host="127.0.0.1", port=1, name=folder, entrypoint="app.py", domain="agent")
    assert module.__file__
    data = Path(module.__file__).parent / "data"
    rows, rollouts = (
        [json.loads(line) for line in (data / name).read_text().splitlines()]
        for name in ("example.jsonl", "example_rollouts.jsonl")
    )
    return server_class(config=config, server_client=MagicMock(spec=ServerClient)), rows, rollouts
