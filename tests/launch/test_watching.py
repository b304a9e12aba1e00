"""`--gym-watch` on a real folder: a verdict at each change, and one line where nothing has changed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gym_conformance.fleet.watching import Watched

pytest_plugins = ["pytester"]

_FINE = "from gym_mocks.reference import reference_app\napp = reference_app()\n"
_BROKEN = """
inner = app
async def app(scope, receive, send):
    if scope.get("path") == "/":
        raise RuntimeError("no root")
    await inner(scope, receive, send)
"""


class Watching:
    """A run that watches, and what it has printed."""

    def __init__(self, process: "subprocess.Popen[bytes]", printed: Path) -> None:
        self.process = process
        self.printed = printed

    def said(self, text: str, times: int = 1) -> str:
        """All that was printed, once it holds a text so many times."""
        deadline = time.monotonic() + 90
        while (printed := self.printed.read_text()).count(text) < times:
            assert self.process.poll() is None, printed
            assert time.monotonic() < deadline, printed
            time.sleep(0.05)
        return printed

    def started(self, up: Path) -> list[psutil.Process]:
        """What it has started, once its server has made this file."""
        deadline = time.monotonic() + 90
        while not up.exists():
            assert time.monotonic() < deadline, self.printed.read_text()
            time.sleep(0.05)
        found: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        assert len(found) > 1
        return found


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[Watching]:
    printed = folder.parent / "printed.log"
    command = [sys.executable, "-m", "pytest", "--gym-env", "fine:app", "--gym-watch", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    with printed.open("wb") as sink:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=sink, stderr=subprocess.STDOUT)
    try:
        yield Watching(process, printed)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def test_a_change_is_judged_and_what_failed_comes_first(pytester: pytest.Pytester) -> None:
    env = pytester.path / "env"
    env.mkdir()
    fine = env / "fine.py"
    fine.write_text(_FINE)
    with watching(env, "gym/live", "gym/seed::seed-replies-object", "-v") as run:
        assert "3 passed" in run.said("Ctrl-C ends.")
        fine.write_text(_FINE)
        run.said("fine.py was saved, and nothing has changed.")
        fine.write_text(_FINE + _BROKEN)
        red = run.said("Ctrl-C ends.", 2)
        assert "Changed: fine.py" in red
        assert "1 failed, 2 passed" in red
        fine.write_text(_FINE + "# mended\n")
        green = run.said("Ctrl-C ends.", 3).removeprefix(red)
        assert "run-last-failure: rerun previous 1 failure first" in green
        assert "3 passed" in green
    assert run.process.returncode == pytest.ExitCode.OK


def test_it_stays_until_its_run_has_ended_however_often_it_is_interrupted(pytester: pytest.Pytester) -> None:
    env = pytester.path / "env"
    env.mkdir()
    dying_hard = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    (env / "fine.py").write_text(f"{dying_hard}from pathlib import Path\nPath('up').touch()\ntime.sleep(600)\n")
    with watching(env, "gym/live") as run:
        started = run.started(env / "up")
        for _ in range(3):
            run.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        run.process.wait(60)
        assert not [each for each in started if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a run that is under way goes on to its end")
def test_nothing_goes_on_once_it_was_killed(pytester: pytest.Pytester) -> None:
    env = pytester.path / "env"
    env.mkdir()
    (env / "fine.py").write_text("from pathlib import Path\nimport time\nPath('up').touch()\ntime.sleep(600)\n")
    with watching(env, "gym/live") as run:
        started = run.started(env / "up")
        run.process.kill()
        _, left = psutil.wait_procs(started, timeout=60)
    assert not left


def test_what_it_watches(tmp_path: Path) -> None:
    for name in ("app.py", "data/rows.jsonl", "run.log", ".venv/lib.py", "__pycache__/app.py", "r.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")
    watched = Watched([tmp_path.resolve()], [tmp_path / "r.json"])
    assert sorted(path.name for path in watched.files) == ["app.py", "rows.jsonl"]
    (tmp_path / "r.json").write_text("22")
    assert watched.changed() == ()
    (tmp_path / "app.py").unlink()
    (tmp_path / "new.yaml").write_text("a: 1")
    assert [path.name for path in watched.differing(watched.changed())] == ["app.py", "new.yaml"]


@pytest.mark.parametrize("name", ["state.json", "state-{}.json"], ids=["the same", "another"])
def test_what_each_run_writes_is_no_change(tmp_path: Path, name: str) -> None:
    """The env is judged once more, and no more until its author saves something."""
    watched = Watched([tmp_path.resolve()], [])
    seen = []
    for run in range(3):
        (tmp_path / name.format(run)).write_text(str(run))
        seen.append(len(watched.changed_meanwhile()))
    assert seen == [1, 0, 0]
    (tmp_path / "app.py").write_text("1")
    assert [path.name for path in watched.differing(watched.changed())] == ["app.py"]


@pytest.mark.parametrize("judged", ["--gym-demo", "--gym-url=http://127.0.0.1:1"])
def test_without_files_it_is_one_line(pytester: pytest.Pytester, judged: str) -> None:
    run = pytester.runpytest_subprocess(judged, "--gym-watch", timeout=60)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --gym-watch: there are no files to watch; give --gym-env DIR too"])
