"""Modules that do their worst when they are launched: one reason, nothing left running, nothing left on disk."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.leftovers import MARK, remove_left_folders
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.printable import printable
from tests.launch.drills import application

#: The descriptor that a server announces itself on: whatever runs in its process can write there.
ANNOUNCE = "import json, os, signal, subprocess, sys, time\nannouncement = int(sys.argv[2])\n"

#: Starts a process that leaves its parent, its group and its session, and says where it is.
STRAY = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"

SECRET = "sk-abcdef123456"  # noqa: S105 - nobody's

_LATE = "within 6 s"

#: What a module does, and what its launch is said to need.
ATTACKS: dict[str, tuple[str, str]] = {
    "garbage": ("os.write(announcement, b'garbage\\n')\ntime.sleep(60)", "announce itself"),
    "escape sequences": ("os.write(announcement, b'\\x1b]0;x\\x07::error::x\\n')\ntime.sleep(60)", "announce itself"),
    "no JSON object": ("os.write(announcement, b'[1]\\n')\ntime.sleep(60)", "announce itself"),
    "deep JSON": ("os.write(announcement, b'[' * 60000 + b'\\n')\ntime.sleep(60)", "announce itself"),
    "no line": ("while True: os.write(announcement, b'x' * 65536)", "announce itself"),
    "not UTF-8": ("os.write(announcement, b'\\xff\\xfe\\n')\ntime.sleep(60)", "announce itself"),
    "an empty line": ("os.write(announcement, b'\\n')\ntime.sleep(60)", "announce itself"),
    "another's pid": ('os.write(announcement, b\'{"pid": 1, "config": {}}\\n\')\ntime.sleep(60)', "announce itself"),
    "a huge pid": (
        "os.write(announcement, json.dumps({'pid': 10**30, 'config': {}}).encode() + b'\\n')\ntime.sleep(60)",
        "announce itself",
    ),
    "a pid that is text": (
        'os.write(announcement, b\'{"pid": "1", "config": {}}\\n\')\ntime.sleep(9)',
        "announce itself",
    ),
    "a config that is none": (
        "os.write(announcement, json.dumps({'pid': os.getpid(), 'config': 1}).encode() + b'\\n')\ntime.sleep(60)",
        "announce itself",
    ),
    "a failure of wrong types": (
        'os.write(announcement, b\'{"failed": {"type": 1, "bases": 2, "message": 3}}\\n\')\ntime.sleep(60)',
        "announce itself",
    ),
    "an end that is none": ("os.write(announcement, b'{\"ended\": -999}\\n')\ntime.sleep(60)", "by signal 999"),
    "half a line": ("os.write(announcement, b'{\"pid\"')\nos._exit(3)", "announce itself|ended with status"),
    "an endless import": ("time.sleep(600)", "within 6 s"),
    "it exits": ("os._exit(0)", "status 0"),
    "it exits by exception": ("sys.exit('\\x1b[31m\\n::error::x')", "does not exit"),
    "it kills itself": ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "it stops itself": ("os.kill(os.getpid(), signal.SIGSTOP)", "within 6 s"),
    "it recurses": ("def f(): f()\nf()", "RecursionError"),
    "it raises a novel": ("raise ValueError('\\x1b[31m::error::' + 'x' * 10_000_000)", "ValueError"),
    "it raises a secret": (f"raise ValueError('cannot log in with {SECRET}')", r"log in with \[redacted\]"),
    "it raises a command": ("raise ValueError('\\n::error file=x::y')", "to start"),
    "its error cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise self\nraise E",
        "ended with status|to start",
    ),
    "it closes all descriptors": ("os.closerange(0, 100)\ntime.sleep(60)", "announce itself|within 6 s|ended"),
    "it prints without end": ("while True: print('::error::x' * 1000, flush=True)", "within 6 s"),
    "it prints no lines": ("while True: os.write(1, b'x' * 65536)", "within 6 s"),
    "it leaves a stray": (STRAY + "os._exit(1)", "status 1"),
    "it leaves strays that die hard": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STRAY * 5 + "time.sleep(600)",
        "within 6 s",
    ),
    "it kills its guard": (STRAY + "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)", "ended"),
    "it kills its group": (STRAY + "os.killpg(0, signal.SIGKILL)", "ended"),
    "it stops its guard": (STRAY + "os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)", "within 6 s"),
    "it removes its log": (
        "import glob, shutil, tempfile as t\n"  # noqa: ISC004 - two statements
        "[shutil.rmtree(x, True) for x in glob.glob(t.gettempdir() + '/gym-conformance-*')]\nos._exit(1)",
        "status 1",
    ),
}


def marked(server: LaunchedServer) -> list[int]:
    """What still runs of all that a server started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == server._mark and process.status() != psutil.STATUS_ZOMBIE:  # noqa: SLF001
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    "attack",
    # those that only the deadline ends take as long as it
    [pytest.param(name, marks=[pytest.mark.hostile] if _LATE in needs else []) for name, (_, needs) in ATTACKS.items()],
)
def test_a_launch_that_fails_says_one_thing_and_leaves_nothing(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    source, needs = ATTACKS[attack]
    server = application(tmp_path, ANNOUNCE + source, deadline=6.0)
    with pytest.raises(NotLaunched, match=needs) as refused:
        server.start()
    said = [refused.value.needs, *refused.value.log]
    assert said == [printable(line, 1_000) for line in said]
    assert SECRET not in "".join(said)
    assert len("".join(said)) < 10_000
    assert marked(server) == []
    assert not list(temporary.glob("gym-conformance-*"))


def test_what_a_killed_run_left_goes_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process that is no more, a folder; of one that lives, of somebody else's name, or a link, nothing."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"gym-conformance-{ended.pid}-abc"
    kept = [tmp_path / f"gym-conformance-{os.getpid()}-abc", tmp_path / "gym-conformance-mine", tmp_path / "other"]
    for folder in (left, *kept):
        folder.mkdir()
        (folder / "log").write_text("x")
    (link := tmp_path / f"gym-conformance-{ended.pid}-link").symlink_to(tmp_path / "other")
    remove_left_folders()
    assert not left.exists()
    assert all((folder / "log").exists() for folder in kept)
    assert link.is_symlink()


def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    """The guard ends all when whoever started it is gone."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom tests.launch.drills import application\n"
        f"server = application(Path({str(tmp_path)!r}), '').start()\n"
        "print(server._mark, flush=True)\nsys.stdin.read()\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert run.stdout
    mark = run.stdout.readline().strip()
    run.kill()
    run.communicate()
    server = application(tmp_path, "")
    server._mark = mark  # noqa: SLF001 - what the other one gave to all that it started
    deadline = time.monotonic() + 15
    while marked(server) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert marked(server) == []
