"""pytest as a user runs it, against a server of ours."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve
from tests.gate.servers import Grumpy

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
def run(repo: Path) -> Run:
    """Run pytest there."""

    def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=repo, capture_output=True, text=True, check=False, timeout=120)

    return run_pytest
