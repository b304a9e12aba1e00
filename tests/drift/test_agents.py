"""Who runs a row: nothing is said to be executed but what the env's own YAML says is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gym_conformance.agents import executing_agents
from gym_conformance.contract.dataset_rows import Row, Source

SERVER = {"env": {"resources_servers": {"env": {"entrypoint": "app.py"}}}}


def agent(name: str, kind: str, server: str = "env", data: str = "") -> dict[str, Any]:
    inner: dict[str, Any] = {"resources_server": {"type": "resources_servers", "name": server}}
    if data:
        inner["datasets"] = [{"name": "example", "jsonl_fpath": f"resources_servers/env/data/{data}"}]
    return {name: {"responses_api_agents": {kind: inner}}}


def row(folder: Path, reference: str = "", file: str = "example.jsonl") -> Row:
    named = {"agent_ref": {"type": "responses_api_agents", "name": reference}} if reference else {}
    return Row({"responses_create_params": {"input": "hi"}, **named}, Source(folder / "data" / file, 1))


def env(tmp_path: Path, **configs: Any) -> Path:
    folder = tmp_path / "env"
    for name in ("data", "configs"):
        (folder / name).mkdir(parents=True)
    for name, config in configs.items():
        text = config if isinstance(config, str) else yaml.safe_dump(config)
        (folder / "configs" / f"{name}.yaml").write_text(text)
    return folder


SIMPLE = agent("a", "simple_agent")
GRADED = agent("b", "non_executing_simple_agent")


@pytest.mark.parametrize(
    ("configs", "reference", "who"),
    [
        ({"env": SERVER | SIMPLE}, "", "a"),
        ({"env": SERVER | GRADED}, "", None),
        ({"env": SERVER | SIMPLE | GRADED}, "", None),
        ({"env": SERVER | SIMPLE, "other": SERVER | GRADED}, "a", "a"),
        ({"env": SERVER | SIMPLE, "other": SERVER | GRADED}, "b", None),
        ({"env": SERVER | SIMPLE}, "declared_nowhere", None),
        ({"env": SERVER | agent("a", "simple_agent", data="example.jsonl") | GRADED}, "", "a"),
        ({"env": SERVER | SIMPLE | agent("b", "tool_simulation_agent", data="example.jsonl")}, "", None),
        ({"env": SERVER | agent("a", "simple_agent", server="another")}, "", None),
        ({"env": SERVER | agent("a", "an_agent_of_their_own")}, "", None),
        ({"env": {"x": {"resources_servers": {"mine": {}}}} | agent("a", "simple_agent", "x")}, "", "a"),
        ({"env": {n: {"resources_servers": {n: {}}} for n in "xy"} | agent("a", "simple_agent", "x")}, "", None),
        ({"env": "{ no: yaml"}, "", None),
        ({"env": "- a list"}, "", None),
        (
            {"env": {"a": {"responses_api_agents": {"simple_agent": None}}, "b": 1, "c": {"resources_servers": []}}},
            "",
            None,
        ),
        ({}, "", None),
    ],
)
def test_who_executes(tmp_path: Path, configs: dict[str, Any], reference: str, who: str | None) -> None:
    one = row(env(tmp_path, **configs), reference)
    found = executing_agents([one])
    assert (found[one].name if one in found else None) == who


def test_without_an_env_around_it_nothing_is_said(tmp_path: Path) -> None:
    assert executing_agents([row(tmp_path)]) == {}


def test_it_says_where_it_read_it(tmp_path: Path) -> None:
    one = row(env(tmp_path, env=SERVER | SIMPLE))
    assert str(executing_agents([one])[one]) == "a (simple_agent, env.yaml)"
    assert json.dumps(str(executing_agents([one])[one].file))
