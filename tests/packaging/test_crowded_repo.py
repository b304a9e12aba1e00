"""The suite works inside an env repo that has `mocks`, `fixtures`, `tests` and `conformance` of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

_CROWDED = Path(__file__).parents[2] / "fixtures" / "crowded_repo"
_OWN = "tests.test_own"
# `python -m pytest` puts the current folder first on sys.path, `pytest` does not.
_WAYS = {
    "pytest": [str(Path(sys.executable).with_name("pytest"))],
    "python-m-pytest": [sys.executable, "-m", "pytest"],
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy far from this repo, so that none of its settings reach it."""
    for name in ("PYTEST_ADDOPTS", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    return shutil.copytree(_CROWDED, tmp_path / "repo", ignore=shutil.ignore_patterns("__pycache__", ".*"))


def _modules_run(repo: Path, command: list[str]) -> list[str]:
    """The module of each item that passed, in order; anything else than passing fails the test here."""
    command = [*command, "--junitxml=report.xml"]
    run = subprocess.run(command, cwd=repo, env=os.environ, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    report = ET.parse(repo / "report.xml")  # noqa: S314 - the run above wrote it
    return [case.get("classname", "") for case in report.iter("testcase")]


@pytest.mark.parametrize("way", _WAYS)
def test_with_no_option_the_repo_s_own_tests_run(repo: Path, way: str) -> None:
    assert _modules_run(repo, _WAYS[way]) == [_OWN] * 3


@pytest.mark.parametrize("way", _WAYS)
def test_demo_runs_the_conformance_items_alone(repo: Path, way: str) -> None:
    ran = _modules_run(repo, [*_WAYS[way], "--gym-demo", "--gym-profile=smoke"])
    assert ran
    assert _OWN not in ran
