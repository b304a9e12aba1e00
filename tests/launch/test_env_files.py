"""The checks of an env's files: one folder that has all, and twins of it that each lack one thing."""

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS, FILES, LAUNCHED
from gym_conformance.findings import Verdict, worst
from gym_conformance.launch.env import Env
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.options import Options
from gym_conformance.plugin.target import Target

_ENV = Path(__file__).parents[2] / "fixtures" / "notes_env"


def _env(folder: Path) -> Path:
    """The sample env, with five of all that it has."""
    env = folder / "notes_env"
    shutil.copytree(_ENV, env)
    for name in ("example.jsonl", "example_rollouts.jsonl"):
        (env / "data" / name).write_text("{}\n" * 5)
    (env / "data" / "example_metrics.json").write_text('{"Number of examples": 5}')
    return env


def _failing(env: Env | None) -> set[str]:
    def serve() -> None:
        raise NotLaunched("luck")

    target = Target("", "", Options(), serve, {}, env)  # type: ignore[arg-type]  # it is never called
    found = {check.id: target.judge(check) for check in FILES}
    for finding in (finding for findings in found.values() for finding in findings):
        assert not finding.told or (finding.expected and finding.actual and finding.hint)
    return {check for check, findings in found.items() if worst(findings) in (Verdict.FAIL, Verdict.NOTE)}


def _without_domain(env: Path) -> None:
    config = env / "configs" / "notes_env.yaml"
    config.write_text(config.read_text().replace("      domain: agent\n", ""))


def _edit(env: Path, old: str, new: str) -> None:
    config = env / "configs" / "notes_env.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))


def _another_server(env: Path) -> None:
    config = env / "configs" / "notes_env.yaml"
    text = config.read_text()
    config.write_text(text + text[: text.index("notes_env_simple_agent")].replace("notes_env_resources", "second"))


#: Stands in for nemo-gym 0.7.0's module of this name, with its functions and its report's fields.
_VALIDATOR = """
import runpy
from types import SimpleNamespace
class TaskDataSchemaError(Exception): pass
def load_task_data_schema(folder):
    print("importing")
    try:
        return runpy.run_path(str(folder / "task_data.py"))["TaskData"]
    except Exception as error:
        raise TaskDataSchemaError(error)
def validate_jsonl_rows(server, adapter, name, lines):
    unknown = dict.fromkeys(adapter, 1)
    return SimpleNamespace(
        rows=len(list(lines)), error_rows=0, errors=[], unknown_keys=unknown, conflicting_keys={}, misplaced_keys={}
    )
"""


def _task_data(env: Path, source: str) -> None:
    (env / "task_data.py").write_text(source)
    (env / "nemo_gym").mkdir()
    (env / "nemo_gym" / "__init__.py").touch()
    (env / "nemo_gym" / "task_data.py").write_text(_VALIDATOR)


_TWINS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "nothing": (lambda _: None, set()),
    "no yaml": (lambda env: shutil.rmtree(env / "configs"), {"env-config"}),
    "no domain": (_without_domain, {"env-config"}),
    "no entry point": (lambda env: (env / "app.py").unlink(), {"env-config"}),
    "four rows": (lambda env: (env / "data" / "example.jsonl").write_text("{}\n" * 4), {"env-examples"}),
    "another server": (_another_server, {"env-servers"}),
    "no rows": (lambda env: (env / "data" / "example.jsonl").unlink(), {"env-examples"}),
    "no metrics": (lambda env: (env / "data" / "example_metrics.json").unlink(), {"env-metrics"}),
    "bad metrics": (lambda env: (env / "data" / "example_metrics.json").write_text("["), {"env-metrics"}),
    "placeholders": (
        lambda env: (env / "data" / "example_rollouts.jsonl").write_text("<PLACEHOLDER ROW>\n" * 5),
        {"env-rollouts"},
    ),
    "another server's name": (
        lambda env: _edit(env, "name: notes_env_resources_server", "name: n"),
        {"env-references"},
    ),
    "another path": (lambda env: _edit(env, "data/example.jsonl", "data/examples.jsonl"), {"env-references"}),
    "a path that is too long": (lambda env: _edit(env, "data/example.jsonl", "x" * 5_000), {"env-references"}),
    "no schema": (lambda env: _task_data(env, "1 / 0"), {"env-task-data"}),
    "another schema": (lambda env: _task_data(env, "TaskData = {'note'}"), {"env-task-data"}),
    "its schema": (lambda env: _task_data(env, "TaskData = set()"), set()),
    "no rollouts": (lambda env: (env / "data" / "example_rollouts.jsonl").unlink(), {"env-rollouts"}),
}


@pytest.mark.parametrize("twin", _TWINS)
def test_a_twin_fails_exactly_its_own(tmp_path: Path, twin: str) -> None:
    spoil, fails = _TWINS[twin]
    env = _env(tmp_path)
    spoil(env)
    assert _failing(Env("notes_env", env)) == fails


def test_a_yaml_that_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    env = _env(tmp_path)
    _edit(env, "domain: agent", "domain: [agent")
    target = Target("", "", Options(), nullcontext, {}, Env("notes_env", env))  # type: ignore[arg-type]  # never called
    [finding] = target.judge(next(check for check in FILES if check.id == "env-config"))
    assert finding.expected == "a YAML that can be read"
    assert finding.actual == (
        "notes_env.yaml cannot: line 6, column 15: expected ',' or ']', but got ':', while parsing a flow sequence"
    )


def test_a_server_that_is_named_is_held_to_the_files_rules(tmp_path: Path) -> None:
    env = _env(tmp_path)
    _another_server(env)
    assert _failing(Env("notes_env", env, server="second_server")) == set()
    _edit(
        env,
        "second_server:\n  resources_servers:\n    notes_env:\n",
        "second_server:\n  resources_servers:\n    other:\n",
    )
    assert _failing(Env("notes_env", env)) == set(), "it is another folder's"


def test_every_check_of_files_has_a_twin() -> None:
    assert set().union(*(fails for _, fails in _TWINS.values())) == {check.id for check in FILES}


def test_without_a_folder_they_do_not_apply(tmp_path: Path) -> None:
    assert _failing(None) == _failing(Env("app", tmp_path, "app:app")) == set()


def test_ids_and_levels() -> None:
    """Those of launched envs are as permanent as all others, and no others'."""
    committed = Path(__file__).with_name("ids.txt").read_text().splitlines()
    assert sorted(f"{check.id} {check.level}" for check in LAUNCHED) == committed
    assert not {check.id for check in LAUNCHED} & {check.id for check in CHECKS}
    assert all("Source:" in check.doc or "Our inference" in check.doc for check in LAUNCHED)


def test_without_a_validator_it_says_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for path in ("data/example.jsonl", "app.py", "task_data.py"):
        (tmp_path / path).touch()
    (tmp_path / "nemo_gym.py").touch()
    target = Target("", "", Options(), nullcontext, {}, Env("env", tmp_path))  # type: ignore[arg-type]  # never called
    [finding] = target.judge(next(check for check in FILES if check.id == "env-task-data"))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.reason.startswith("it takes nemo-gym 0.7.0 or newer")


def test_definitions_are_read_also_where_nothing_is_launched(tmp_path: Path) -> None:
    def refuse() -> None:
        raise NotLaunched("luck")

    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}, "required": [""]}}
    rows = tmp_path / "example.jsonl"
    rows.write_text(json.dumps({"responses_create_params": {"input": "x", "tools": [tool]}}))
    target = Target("", "", Options(), refuse, {}, Env("env", tmp_path, data=(rows,)))  # type: ignore[arg-type]  # it raises
    found = {check.id: target.judge(check)[0].verdict for check in CHECKS}
    assert {check for check, verdict in found.items() if verdict is Verdict.FAIL} == {"drift-definition-unsound"}
    assert {check for check, verdict in found.items() if verdict is Verdict.UNTESTABLE} == {CHECKS[0].id}
