"""A trainer's own start-up code against a mock gym, and what goes wrong with its rollouts."""

import json
import math
import socket
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.nemo import RunHelper
from gym_mocks.policy import call, say, scripted_rows
from gym_mocks.resources import ResourcesServer
from gym_mocks.rollout_faults import RolloutFault
from gym_mocks.run_helper import AnyTools

Json = dict[str, Any]

#: Made once: it takes 20 ms.
TLS = httpx.create_ssl_context()

ENV = """
config_paths: [model.yaml]
maths:
  resources_servers:
    maths: {entrypoint: app.py, domain: math, verified: false}
maths_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      max_steps: 3
      resources_server: {type: resources_servers, name: maths}
      model_server: {type: responses_api_models, name: policy_model}
"""
MODEL = """
policy_model:
  responses_api_models:
    vllm_model: {entrypoint: app.py, base_url: "${policy_base_url}", api_key: "${policy_api_key}"}
"""
ROW: Json = {"responses_create_params": {"input": [{"role": "user", "content": "1 + 1"}]}}


@dataclass
class ParserConfig:
    """What is read of nemo-gym's `GlobalConfigDictParserConfig`."""

    initial_global_config_dict: Json
    dotenv_path: Path | None = None
    skip_load_from_cli: bool = True


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def global_config(port: int) -> Json:
    """What a client reads from the head."""
    text = httpx.get(f"http://127.0.0.1:{port}/global_config_dict_yaml").json()
    found: Json = yaml.safe_load(text)
    return found


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "env.yaml").write_text("policy_model_name: from-dotenv\n", encoding="utf-8")
    (tmp_path / "model.yaml").write_text(MODEL, encoding="utf-8")
    (tmp_path / "maths.yaml").write_text(ENV, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_trainers_start_serves_what_its_configuration_names(mock_run_helper: type[RunHelper], configs: Path) -> None:
    """At the port that it was given; the model's inner name, and what the trainer says of it, are kept."""
    port = free_port()
    given = {
        "config_paths": [str(configs / "maths.yaml")],
        "head_server": {"host": "127.0.0.1", "port": port},
        "policy_model": {"responses_api_models": {"vllm_model": {"uses_reasoning_parser": False}}},
        "policy_base_url": ["http://10.0.0.1:8000/v1"],
        "policy_api_key": "dummy_key",
    }
    assert mock_run_helper.policy
    mock_run_helper.policy.script("any", [call("calculate", a=1), say("2")])
    helper = mock_run_helper()
    helper.start(ParserConfig(given))  # as trainers do
    helper.poll()
    config = global_config(port)
    assert (config["policy_base_url"], config["policy_model_name"]) == (["http://10.0.0.1:8000/v1"], "from-dotenv")
    model = config["policy_model"]["responses_api_models"]["vllm_model"]
    assert (model["uses_reasoning_parser"], model["base_url"]) == (False, "${policy_base_url}")
    agent = config["maths_simple_agent"]["responses_api_agents"]["simple_agent"]
    rollout = httpx.post(f"http://{agent['host']}:{agent['port']}/run", json=ROW).json()
    assert rollout["reward"] == 1.0
    assert [item["type"] for item in rollout["response"]["output"]] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert all(
        "generation_token_ids" in item
        for item in rollout["response"]["output"]
        if item["type"] != "function_call_output"
    )
    assert mock_run_helper.gyms[-1] is helper.gym
    helper.shutdown()
    helper.shutdown()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/health")
    with pytest.raises(RuntimeError, match="Head server finished unexpectedly"):
        helper.poll()


def test_own_resources_servers_stand_where_they_are_named(mock_run_helper: type[RunHelper]) -> None:
    mock_run_helper.resources["weather"] = weather.server()
    config = {
        "head_server": {"port": free_port()},
        "weather": {"resources_servers": {"weather": {"entrypoint": "app.py"}}},
        "player": {
            "responses_api_agents": {
                "simple_agent": {"resources_server": {"name": "weather"}, "model_server": {"name": "policy_model"}}
            }
        },
    }
    helper = mock_run_helper()
    helper.start(config)
    gym = mock_run_helper.gyms[-1]
    gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
    rewards = [httpx.post(f"{gym.url('player')}/run", json=row).json()["reward"] for row in weather.ROWS]
    assert rewards == [1.0] * len(weather.ROWS)


def test_agents_of_any_form_get_what_they_need(mock_run_helper: type[RunHelper]) -> None:
    """An agent that names no resources server, one that is not configured, or a model of no such name."""
    agents: Json = {
        "alone": {"entrypoint": "app.py"},
        "lost": {"resources_server": {"name": "nowhere"}, "model_server": {"name": "no_model"}},
    }
    config = {name: {"responses_api_agents": {"own_agent": entry}} for name, entry in agents.items()}
    helper = mock_run_helper()
    helper.start({"head_server": {"port": free_port()}, **config})
    gym = mock_run_helper.gyms[-1]
    assert [httpx.post(f"{gym.url(name)}/run", json=ROW).json()["reward"] for name in agents] == [1.0, 1.0]


def test_a_server_says_how_it_can_verify_again() -> None:
    """What nemo-gym's `RolloutReverificationHelper` (0.5.0 on) asks first; one of an earlier version has no such path."""
    said = []
    with MockGym() as gym:
        for server in (
            AnyTools("any"),
            ResourcesServer("other", verify=lambda: 1.0, reverify_mode="unknown"),
            weather.server(),
        ):
            reply = httpx.get(f"{gym.add_resources(server.name, server)}/reverify_mode")
            said.append((reply.status_code, reply.text))
    assert [each for _, each in said[:2]] == ['"stateless"', '"unknown"']
    assert [status for status, _ in said] == [200, 200, 404]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"config_paths": "one.yaml"}, "config_paths must be a list"),
        ({"a": {"responses_api_agents": ["simple_agent"]}}, "responses_api_agents must be a mapping"),
        ({"a": {"responses_api_agents": {"simple_agent": None}}}, "must be a mapping, not None"),
    ],
)
def test_a_configuration_that_cannot_be_is_an_error(
    mock_run_helper: type[RunHelper], config: Json, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mock_run_helper().start({"head_server": {"port": free_port()}, **config})


def test_a_file_that_is_not_there_is_an_error(mock_run_helper: type[RunHelper]) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        mock_run_helper().start({"config_paths": ["nowhere.yaml"]})


@pytest.fixture
def gym() -> Any:
    with MockGym(seed=3) as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
        yield gym


def run(gym: MockGym, row: Json | None = None) -> httpx.Response:
    return httpx.post(f"{gym.url('weather_simple_agent')}/run", json=row or gym.rows[0], timeout=30, verify=TLS)


def test_a_rollout_that_is_lost_was_played(gym: MockGym) -> None:
    gym.fail(RolloutFault("lost", times=1))
    with pytest.raises(httpx.RemoteProtocolError, match="disconnected without sending a response"):
        run(gym)
    assert gym.policy.calls.count == 2
    assert run(gym).json()["reward"] == 1.0


def test_a_rollout_that_is_late(gym: MockGym) -> None:
    gym.fail(RolloutFault("late", seconds=0.5, times=1))
    start = time.monotonic()
    late, soon = run(gym), run(gym)
    assert late.json()["reward"] == 1.0
    assert [reply.headers.get_list("content-length") for reply in (late, soon)] == [
        [str(len(late.content))],
        [str(len(soon.content))],
    ]
    assert time.monotonic() - start >= 0.5


def test_an_agent_that_dies_takes_all_it_was_asked_with_it(mock_run_helper: type[RunHelper]) -> None:
    """What was in flight breaks off, nobody answers afterwards, and `poll` says who it was."""
    helper = mock_run_helper()
    helper.start({"head_server": {"port": free_port()}, "player": {"responses_api_agents": {"own": {}}}})
    gym = mock_run_helper.gyms[-1]
    gym.fail(RolloutFault("late", seconds=30, times=1))
    url = f"{gym.url('player')}/run"
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(httpx.post, url, json=ROW, timeout=10)
        time.sleep(0.5)
        gym.fail(RolloutFault("dies", agent="player"))
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(url, json=ROW, timeout=10)
        with pytest.raises(httpx.HTTPError):
            late.result(10)
    # Refused, or broken off if the connection was made just before.
    with suppress(httpx.NetworkError, httpx.RemoteProtocolError):
        assert not httpx.post(url, json=ROW).is_success, "another server, at most, to which the port was given since"
    with pytest.raises(RuntimeError, match="Process `player` finished unexpectedly"):
        helper.poll()
    assert httpx.get(f"{gym.head_url}/health").status_code == 200


def test_a_reply_with_another_reward_a_mask_or_a_failure(gym: MockGym) -> None:
    gym.fail(RolloutFault("reward", value=math.nan, times=1))
    assert math.isnan(run(gym).json()["reward"])
    for value in ("1.0", None, [1], 1e300):
        gym.fail(RolloutFault("reward", value=value, times=1))
        assert run(gym).json()["reward"] == value
    gym.fail(RolloutFault("mask", times=1))
    assert run(gym).json()["mask_sample"] is True
    gym.fail(RolloutFault("failure_class", value="judge_failed", times=1))
    assert run(gym).json()["_ng_failure_class"] == "judge_failed"
    gym.fail(RolloutFault("status", status=503, times=1))
    assert run(gym).status_code == 503
    assert run(gym).json()["reward"] == 1.0


def outcomes(seed: int, *, workers: int) -> dict[int, list[str]]:
    """What becomes of forty rollouts of each row, by row."""
    with MockGym(seed=seed) as gym:
        rows = gym.add_env(weather.server(), weather.ROWS)
        gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
        gym.fail(RolloutFault("lost", rate=0.2))
        gym.fail(RolloutFault("status", rate=0.2))
        gym.fail(RolloutFault("reward", rate=0.2, value="1.0"))

        def one(row: Json) -> str:
            try:
                reply = run(gym, row)
            except httpx.RemoteProtocolError:
                return "lost"
            return str(reply.status_code) if reply.is_error else repr(reply.json()["reward"])

        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(one, rows * 8))
        return {number: sorted(found[number :: len(rows)]) for number in range(len(rows))}


def test_a_mix_is_the_same_for_a_seed_in_whatever_order_rollouts_come() -> None:
    assert outcomes(1, workers=1) == outcomes(1, workers=8) != outcomes(2, workers=8)
    kinds = Counter(kind for each in outcomes(1, workers=8).values() for kind in each)
    assert kinds.keys() == {"lost", "500", "'1.0'", "1.0"}


def test_a_head_that_comes_up_late_refuses_until_then() -> None:
    with MockGym(head_after=1.5) as gym:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{gym.head_url}/health", verify=TLS)
        gym.add_env(weather.server(), weather.ROWS)
        start = time.monotonic()
        while True:
            try:
                config = json.dumps(httpx.get(f"{gym.head_url}/global_config_dict_yaml", verify=TLS).json())
                break
            except httpx.ConnectError:
                assert time.monotonic() - start < 30
                time.sleep(0.05)
        assert "weather_simple_agent" in config


def test_a_gym_whose_head_never_came_up_closes() -> None:
    start = time.monotonic()
    with MockGym(head_after=3600):
        pass
    assert time.monotonic() - start < 30


def test_the_head_says_which_policy_there_is() -> None:
    with MockGym() as gym:
        assert gym.config["policy_base_url"] == f"{gym.url('policy_model')}/v1"
        assert {"policy_api_key", "policy_model_name"} <= gym.config.keys()


def test_a_trainer_finds_its_configuration_where_nemo_gym_keeps_it(
    mock_run_helper: type[RunHelper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenRLHF's executor asks `get_global_config_dict` after its start, and so do nemo-gym's clients for the head."""
    kept = ModuleType("nemo_gym.global_config")
    vars(kept)["_GLOBAL_CONFIG_DICT"] = None
    monkeypatch.setitem(sys.modules, "nemo_gym.global_config", kept)
    omegaconf = ModuleType("omegaconf")
    vars(omegaconf)["OmegaConf"] = SimpleNamespace(create=yaml.safe_load)
    monkeypatch.setitem(sys.modules, "omegaconf", omegaconf)
    helper = mock_run_helper()
    helper.start(
        ParserConfig(
            {**yaml.safe_load(ENV), "config_paths": [], "head_server": {"port": free_port()}, "policy_api_key": "key-1"}
        )
    )
    found = vars(kept)["_GLOBAL_CONFIG_DICT"]
    head = found["head_server"]
    assert httpx.get(f"http://{head['host']}:{head['port']}/readyz", verify=TLS).is_success
    assert "simple_agent" in found["maths_simple_agent"]["responses_api_agents"]
    assert found["policy_api_key"] != "[redacted]"
    helper.shutdown()
    assert vars(kept)["_GLOBAL_CONFIG_DICT"] is None
