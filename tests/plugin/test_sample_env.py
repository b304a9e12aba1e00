"""A sample environment repo under test, judged from its own folder with the command that README gives."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gym_conformance.dataset import load
from gym_mocks.wire.client import ASGIApp
from tests.nemo_gym.mocks.notes_twin import NOTES_ENV, notes_twin
from tests.plugin.apps import read_report

pytest_plugins = ["pytester"]


def test_its_rollouts_belong_to_its_rows() -> None:
    dataset = load([NOTES_ENV / "data"])
    assert dataset.read == len(dataset.rows) == len(dataset.rollouts) > 1
    assert all(any(rollout.belongs_to(row) for row in dataset.rows) for rollout in dataset.rollouts)
    assert {tool.name for row in dataset.rows for tool in row.tools} == {"write_note", "read_note", "list_notes"}


@pytest.mark.parametrize("data", ["data/example.jsonl", "data"])
def test_it_is_judged_from_its_own_folder(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], data: str
) -> None:
    """The repo's `app.py` needs nemo-gym, and is not imported: it is its server, here its twin, that is judged."""
    shutil.copytree(NOTES_ENV, pytester.path / "repo")
    pytester.path.joinpath("repo", "test_own.py").write_text("import app")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(pytester.path / "repo")
        url = serving(notes_twin())
        given = ["--gym-url", url, "--gym-data", data, "--gym-report", "r.json", "--gym-profile=smoke"]
        given += [] if data == "data" else ["-k", "tool or verify"]
        run = pytester.runpytest_subprocess(*given, timeout=60)
    assert run.ret == pytest.ExitCode.OK, run.stdout.str()
    report = pytester.path / "repo" / "r.json"
    assert json.loads(report.read_text())["target"]["rows"] == 5
    assert read_report(report)["tool-routed"]["verdict"] == "pass"


def test_it_brings_nothing_that_python_would_import() -> None:
    assert not list(Path(NOTES_ENV).rglob("__init__.py"))
