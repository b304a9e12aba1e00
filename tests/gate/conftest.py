"""pytest as a user runs it, against a server of ours."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve
from tests.gate.servers import Grumpy
from tests.nested.warm_pytest import WarmPytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def good_url() -> Iterator[str]:
    with serve(reference_app()) as url:
        yield url


@pytest.fixture(scope="session")
def grumpy_url() -> Iterator[str]:
    with serve(Grumpy()) as url:
        yield url


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An env's repo: its rows, no settings but its own, and no CI around it."""
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "PYTEST_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--gym-profile=smoke")
    tmp_path.joinpath("data").mkdir()
    tmp_path.joinpath("data/example.jsonl").write_bytes(DATA.read_bytes())
    tmp_path.joinpath("pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(repo: Path, warm_pytest: WarmPytest) -> Run:
    """Run pytest there."""

    def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
        given = ["-p", "no:cacheprovider", *arguments]
        return warm_pytest.completed(given, repo, os.environ, timeout=120)

    return run_pytest
