"""Forks runs of pytest, their xdist workers and demo, from a process that has imported it and the suite already. Run by path.

It reads one JSON object a line: `arguments`, `cwd`, `environment`, and `stdout` and `stderr`, which are files. For each
it answers with two lines: the process's id, and then its exit code.
"""

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self


def _import_all() -> None:
    """Import what a run imports, as pytest does it: it warns of plugins that are there before it."""
    import pytest  # noqa: PLC0415 - nothing is imported before the streams are ours

    pytest.main(["-q", "-p", "no:cacheprovider", "--collect-only", "--gym-url", "http://127.0.0.1:1"])
    import fastapi  # noqa: F401, PLC0415 - a mock's OpenAPI document needs it

    from gym_conformance.checks.registry import all_checks  # noqa: PLC0415
    from gym_mocks import reference, serving  # noqa: F401, PLC0415

    all_checks.cache_clear()  # a run may bring checks of its own
    gc.collect()
    gc.freeze()


def _become(request: dict[str, Any]) -> None:
    """Take on what a new process would have been given."""
    import xdist.plugin  # noqa: PLC0415
    from hypothesis.configuration import set_hypothesis_home_dir  # noqa: PLC0415

    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [sys.executable, *request["arguments"]]
    # As `python -m` does it
    sys.path[:0] = [str(Path.cwd()), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    xdist.plugin._sys_path[:] = sys.path  # noqa: SLF001 - what its workers get, as it was when it was imported
    set_hypothesis_home_dir(Path.cwd() / ".hypothesis")
    demos = [_prepare_demo()] if "--gym-demo" in sys.argv else []
    if "-n" in sys.argv:
        _prepare_workers(int(sys.argv[sys.argv.index("-n") + 1]), demos)


@dataclass(frozen=True)
class _Forked:
    """A fork with pipes, as much of `subprocess.Popen` as execnet and the demo use."""

    pid: int
    stdin: BinaryIO
    stdout: BinaryIO

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.stdout.close()


def _fork(work: Callable[[], object], others: Sequence[_Forked] = ()) -> _Forked:
    """Let a fork do that; `others` were forked before it. To be called before there are threads."""
    (asked, ask), (answer, answered) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid:
        os.close(asked)
        os.close(answered)
        return _Forked(pid, os.fdopen(ask, "wb"), os.fdopen(answer, "rb"))
    for other in others:  # whose input ends when our parent closes it
        other.__exit__()
    os.dup2(asked, 0)
    os.dup2(answered, 1)
    for each in (asked, ask, answer, answered):
        os.close(each)
    sys.stdin, sys.stdout, sys.argv = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False), ["-c"]
    try:
        work()
    finally:
        os._exit(0)


def _prepare_workers(count: int, others: Sequence[_Forked]) -> None:
    """Fork workers, which execnet takes before it starts any."""
    from execnet import gateway_io  # noqa: PLC0415

    workers: list[_Forked] = []
    for _ in range(count):
        workers.append(_fork(_work, (*others, *workers)))
    start = gateway_io.Popen2IOMaster.__init__

    def take(io: Any, arguments: Any, execmodel: Any) -> None:
        if not workers:
            start(io, arguments, execmodel)
            return
        io.popen = worker = workers.pop(0)
        super(gateway_io.Popen2IOMaster, io).__init__(worker.stdin, worker.stdout, execmodel=execmodel)

    gateway_io.Popen2IOMaster.__init__ = take  # type: ignore[assignment, method-assign]


def _work() -> None:
    """Do what `python -c` with execnet's first line does."""
    if line := sys.stdin.readline():
        exec(eval(line), {"__name__": "__main__"})  # noqa: S102, S307 - execnet's own words


def _prepare_demo() -> _Forked:
    """Fork the demo's server, which the run takes for the one that it starts."""
    from gym_conformance.plugin.demo import Demo  # noqa: PLC0415
    from gym_mocks.reference.__main__ import main  # noqa: PLC0415

    forked = _fork(main)

    def take(demo: Any) -> None:
        demo._process, demo._said = forked, []  # noqa: SLF001

    Demo.__init__ = take  # type: ignore[assignment, method-assign]
    return forked


def serve() -> int:
    """Fork until nobody asks any more; in each fork, the run's exit code."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    sys.path.pop(0)  # this script's folder
    _import_all()
    sys.stdout.flush()  # or each fork prints it once more
    import pytest  # noqa: PLC0415

    for line in os.fdopen(requests):  # closed with the process
        child = os.fork()
        if not child:
            os.close(replies)
            _become(json.loads(line))
            return int(pytest.main())
        os.write(replies, f"{child}\n".encode())
        os.write(replies, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(serve())
