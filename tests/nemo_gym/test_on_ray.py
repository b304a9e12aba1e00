"""`--gym-ray` on a real cluster of two workers; nemo-gym brings Ray."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from gym_mocks.reference import DATA, ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve
from tests.launch.drills import BAD, FINE, gone
from tests.twins.twin import Json

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
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="ray") as folder:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = ["--head", f"--port={port}", "--num-cpus=2", "--include-dashboard=false", f"--temp-dir={folder}"]
        with _node(Path(folder, "log"), *head):
            yield f"127.0.0.1:{port}"


@contextmanager
def _node(log: Path, *options: str) -> Iterator[psutil.Process]:
    """A node of a cluster, on this machine."""
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats", *options]
    command += ["--include-log-monitor=false"]  # a process less
    with log.open("wb") as file:
        started = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    node = psutil.Process(started.pid)
    try:
        _wait(lambda: "Ray runtime started" in log.read_text(errors="replace"), log.read_text)
        yield node
    finally:
        for process in [node, *node.children(recursive=True)]:
            process.kill()
        started.wait()


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


@pytest.mark.ray
def test_what_a_cluster_finds_is_what_is_found_without(pytester: pytest.Pytester, cluster: str) -> None:
    """Also of a server whose check ends its process."""
    pytester.makepyfile(fine=FINE, bad=FINE + BAD, dies=FINE)
    pytester.makeconftest(_DIES)
    envs = ["--gym-env", "fine:app", "--gym-env", "bad:app"]
    given = ["-k", "live or seed-replies-object", "--gym-header", "Authorization: Bearer abc123secret"]
    run = pytester.runpytest_subprocess(
        *envs, "--gym-env", "dies:app", *given, "--gym-ray", cluster, "--gym-report", "ray.json", timeout=200
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(
        ["*needs a worker that ends normally: on * it ended with 7: *", "1 not fit, 1 not testable, 1 no MUST broken."]
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


@pytest.mark.ray
def test_what_a_cluster_found_is_known_where_the_run_is_resumed(pytester: pytest.Pytester, cluster: str) -> None:
    pytester.makepyfile(fine=FINE, bad=FINE + BAD)
    given = ["--gym-env", "fine:app", "--gym-env", "bad:app", "-k", "live", "--gym-ray", cluster]
    pytester.runpytest_subprocess(*given, "--gym-report", "ray.json", timeout=200)
    servers = [len(list(pytester.path.glob(f"{name}-*"))) for name in ("fine", "bad")]
    run = pytester.runpytest_subprocess(*given, "--gym-resume", timeout=100)
    run.stdout.fnmatch_lines(["2 of them as an earlier run found them*"])
    assert servers == [len(list(pytester.path.glob(f"{name}-*"))) for name in ("fine", "bad")] == [1, 1]


class EndsADriver(ReferenceServer):
    """The first time that it scores more than two at once that are driven, it kills the second node's process."""

    def __init__(self, second: psutil.Process) -> None:
        super().__init__()
        self.second = second
        self.killed = False
        self.scoring = 0

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.scoring += 1
        if self.scoring > 2 and not self.killed:
            for process in self.second.children(recursive=True):
                if process.name().startswith("ray::NodeDriver"):
                    process.kill()
                    self.killed = True
        await asyncio.sleep(0.05)
        self.scoring -= 1
        return await super().score(session_id, row, response)


@pytest.mark.ray
def test_a_load_is_driven_from_all_nodes(pytester: pytest.Pytester, cluster: str) -> None:
    """What came of one whose process dies is missing, and no finding."""
    with _node(pytester.path / "second.log", f"--address={cluster}", "--num-cpus=1") as second:
        with serve(EndsADriver(second)) as url:
            given = [
                f"--gym-url={url}",
                f"--gym-data={DATA}",
                "--gym-profile=smoke",
                "-k",
                "load-episode or load-answers",
            ]
            load = ["--gym-load=2,8", "--gym-ray", cluster, "--gym-report", "r.json"]
            run = pytester.runpytest_subprocess(*given, *load, timeout=100)
        assert run.ret == pytest.ExitCode.OK
        run.stdout.fnmatch_lines(
            ["*load-episode passes, but nothing came from *", "Load (*; driven from 2 nodes of a *"]
        )
        [levels] = [one["load"] for one in json.loads(Path("r.json").read_text())["findings"] if "load" in one]
        assert [(level["nodes"], len(level["missing"])) for level in levels] == [(2, 0), (1, 1)]


@pytest.mark.ray
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
