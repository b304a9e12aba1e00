"""`--gym-ray` on a real cluster of two workers; nemo-gym brings Ray."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from tests.launch.drills import BAD, FINE, gone

pytest_plugins = ["pytester"]

_SLOW = """
import asyncio
class Slow(ReferenceServer):
    async def seed(self, session_id, row):
        Path("seeding").touch()
        await asyncio.sleep(60)
app = Slow()
"""
#: In the worker that is to run it, one check of one server ends the process.
_DIES = """
import os
def pytest_runtest_protocol(item):
    if "dies.app/live::live-endpoints" in item.nodeid:
        os._exit(7)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster that ends with its tests.

    Its folder is its own, or any Ray on this machine would look for it when it is gone; and short, for it holds sockets.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ray = Path(sys.executable).with_name("ray")
    command = [str(ray), "start", "--head", "--block", f"--port={port}", "--num-cpus=2", "--include-dashboard=false"]
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="ray") as folder:
        log = Path(folder, "log")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        with log.open("wb") as file:
            command += ["--disable-usage-stats", f"--temp-dir={folder}"]
            head = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            _wait(lambda: "Ray runtime started" in log.read_text(errors="replace"), log.read_text)
            yield f"127.0.0.1:{port}"
        finally:
            family = [psutil.Process(head.pid), *psutil.Process(head.pid).children(recursive=True)]
            for process in family:
                process.kill()
            head.wait()


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytest that a test runs is no xdist worker, whatever runs the test."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def _wait(ready: Callable[[], bool], said: Callable[[], str] = str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, said()
        time.sleep(0.1)


def _verdicts(report: str) -> dict[str, list[tuple[str, str, str]]]:
    servers = json.loads(Path(report).read_text())["servers"]
    return {
        server["name"]: [(one["check"], one["subject"], one["verdict"]) for one in server["report"]["findings"]]
        for server in servers
    }


def test_what_a_cluster_finds_is_what_is_found_without(pytester: pytest.Pytester, cluster: str) -> None:
    """Also of a server whose check ends its process; and all is known where the run is resumed."""
    pytester.makepyfile(fine=FINE, bad=FINE + BAD, dies=FINE)
    pytester.makeconftest(_DIES)
    envs = ["--gym-env", "fine:app", "--gym-env", "bad:app"]
    given = ["-k", "live or seed-replies-object", "--gym-header", "Authorization: Bearer abc123secret"]
    run = pytester.runpytest_subprocess(
        *envs, "--gym-env", "dies:app", *given, "--gym-ray", cluster, "--gym-report", "ray.json", timeout=200
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(
        ["*needs a worker that ends normally: on * it ended with 7: *", "1 not fit, 1 not testable, 1 no rule broken."]
    )
    run.stdout.no_fnmatch_line("*abc123secret*")
    found = _verdicts("ray.json")
    dies = found.pop("dies.app")
    assert [one for one in dies if one[0].startswith("live")] == [
        ("live-root", "server", "pass"),
        ("live-endpoints", "server", "untestable"),
    ]
    pytester.runpytest_subprocess(*envs, *given, "--gym-report", "here.json", timeout=100)
    assert _verdicts("here.json") == found

    servers = [len(list(pytester.path.glob(f"{name}-*"))) for name in ("fine", "bad")]
    run = pytester.runpytest_subprocess(*envs, *given, "--gym-ray", cluster, "--gym-resume", timeout=100)
    run.stdout.fnmatch_lines(["2 of them as an earlier run found them*"])
    assert servers == [len(list(pytester.path.glob(f"{name}-*"))) for name in ("fine", "bad")] == [2, 2]


def test_ctrl_c_ends_what_the_cluster_runs(pytester: pytest.Pytester, cluster: str) -> None:
    pytester.makepyfile(slow=FINE + _SLOW)
    command = [sys.executable, "-m", "pytest", "--gym-env", "slow:app", "--gym-ray", cluster]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    _wait(Path("seeding").exists)
    [server] = [int(path.name.partition("-")[2]) for path in pytester.path.glob("slow-*")]
    assert not gone(server)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=150)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    _wait(lambda: gone(server), seconds=20)


def test_no_cluster_is_one_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(fine=FINE)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        run = pytester.runpytest_subprocess("--gym-env", "fine:app", "--gym-ray", address, timeout=60)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"ERROR: --gym-ray {address}: nothing answers there (*); `ray status` shows *"])
    assert not list(pytester.path.glob("fine-*"))
