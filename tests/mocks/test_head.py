"""The head's replies, read as its real clients read them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from gym_mocks.head import Head, Instance, load_config, merged, to_yaml
from gym_mocks.serving import serve

FIXTURE = Path(__file__).parents[2] / "fixtures" / "notes_env" / "configs" / "notes_env.yaml"
CONFIG: dict[str, Any] = {
    "weather": {"resources_servers": {"weather": {"host": "127.0.0.1", "port": 1, "verified": False}}},
    "policy": {"responses_api_models": {"openai": {"base_url": "${policy_base_url}", "key": "???"}}},
    "odd keys": {"yes": "no", "1": [1, 2.5, None, "a: b # c"], "empty": {}, "none": [], "é": "\n'\""},
    "list": [{"name": "a", "more": {"b": [{"c": 1}]}}, {}],
}
INSTANCE = Instance("weather", "resources_servers", "weather", "http://127.0.0.1:9", 7, 1.5)


@pytest.fixture(scope="module")
def head() -> Iterator[str]:
    with serve(Head(CONFIG, (INSTANCE,))) as url:
        yield url


@pytest.mark.parametrize("config", [CONFIG, {}, yaml.safe_load(FIXTURE.read_text())])
def test_yaml_reads_back(config: dict[str, Any]) -> None:
    assert (yaml.safe_load(to_yaml(config)) or {}) == config


def test_the_global_config_is_a_json_string_of_yaml(head: str) -> None:
    """ServerClient reads it with json.loads, TRL and Unsloth with yaml.safe_load twice over."""
    reply = httpx.get(f"{head}/global_config_dict_yaml")
    assert yaml.safe_load(json.loads(reply.content)) == CONFIG
    assert yaml.safe_load(yaml.safe_load(reply.text)) == CONFIG


def test_server_instances_have_what_clients_read(head: str) -> None:
    (instance,) = httpx.get(f"{head}/server_instances").json()
    wanted = {"process_name": "weather", "server_type": "resources_servers", "name": "weather", "pid": 7}
    wanted |= {"url": "http://127.0.0.1:9", "host": "127.0.0.1", "port": 9, "start_time": 1.5}
    assert wanted.items() <= instance.items()


@pytest.mark.parametrize("path", ["/", "/livez", "/readyz", "/healthz", "/health"])
def test_lives_and_is_ready(head: str, path: str) -> None:
    assert httpx.get(f"{head}{path}").json() == {"status": "ok"}


def test_merging_goes_key_by_key() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}, "d": {}}) == {"a": {"b": 3, "c": 2}, "d": {}}


def test_an_envs_own_config_is_read() -> None:
    assert load_config(FIXTURE).keys() == {"notes_env_resources_server", "notes_env_simple_agent"}


@pytest.mark.parametrize("text", ["- a", "a: [", "", "a: !!timestamp x", "a: !!bool x", 'a: !!int ""'])
def test_a_file_that_is_no_config_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"broken\.yaml"):
        load_config(path)
