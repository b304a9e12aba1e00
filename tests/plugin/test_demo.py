"""The demo's server is a process that runs no longer than pytest does."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gym_conformance.plugin.demo import Demo, NoDemo


def test_it_is_stopped() -> None:
    demo = Demo()
    assert demo.url.startswith("http://127.0.0.1:")
    assert demo.data.name == "example.jsonl"
    [process] = (each for each in psutil.Process().children() if "gym_mocks.reference" in each.cmdline())
    demo.close()
    assert not process.is_running()


def test_it_ends_with_whoever_started_it() -> None:
    code = "import os\nfrom gym_conformance.plugin.demo import Demo\nprint(Demo().url, flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith(b"http")
        [child] = psutil.Process(parent.pid).children()
        parent.send_signal(signal.SIGKILL)
    child.wait(30)


def test_one_that_does_not_start_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(silent))
    demo = Demo()
    with pytest.raises(NoDemo, match=r"--gym-demo: its server has not started: .*python ended with 3"):
        demo.url  # noqa: B018
    demo.close()


def test_what_it_says_is_read_however_standard_output_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-16")
    demo = Demo()
    try:
        assert demo.data.is_file()
    finally:
        demo.close()
