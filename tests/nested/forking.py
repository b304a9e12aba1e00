"""Forks runs of pytest, and the xdist workers of `-n N`, from a process that has imported it and the suite already. Run by path.

It reads one JSON object a line: `arguments`, `cwd`, `environment`, and `stdout` and `stderr`, which are files. For each
it answers with two lines: the process's id, and then its exit code.
"""

import gc
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn


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
    if "-n" in sys.argv:
        _prepare_workers(int(sys.argv[sys.argv.index("-n") + 1]))


@dataclass(frozen=True)
class _Worker:
    """A process that waits for what execnet has it execute, as much of `subprocess.Popen` as execnet uses."""

    pid: int
    stdin: BinaryIO
    stdout: BinaryIO

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _prepare_workers(count: int) -> None:
    """Fork workers, which execnet takes before it starts any. They are forked before there are threads."""
    from execnet import gateway_io  # noqa: PLC0415

    workers: list[_Worker] = []
    for _ in range(count):
        (asked, ask), (answer, answered) = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            for each in workers:  # whose input ends when our parent closes it
                each.stdin.close()
                each.stdout.close()
            os.close(ask)
            os.close(answer)
            _work(asked, answered)
        os.close(asked)
        os.close(answered)
        workers.append(_Worker(pid, os.fdopen(ask, "wb"), os.fdopen(answer, "rb")))
    start = gateway_io.Popen2IOMaster.__init__

    def take(io: Any, arguments: Any, execmodel: Any) -> None:
        if not workers:
            start(io, arguments, execmodel)
            return
        io.popen = worker = workers.pop(0)
        super(gateway_io.Popen2IOMaster, io).__init__(worker.stdin, worker.stdout, execmodel=execmodel)

    gateway_io.Popen2IOMaster.__init__ = take  # type: ignore[assignment, method-assign]


def _work(asked: int, answered: int) -> NoReturn:
    """Do what `python -c` with execnet's first line does."""
    os.dup2(asked, 0)
    os.dup2(answered, 1)
    os.close(asked)
    os.close(answered)
    sys.stdin, sys.stdout, sys.argv = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False), ["-c"]
    try:
        if line := sys.stdin.readline():
            exec(eval(line), {"__name__": "__main__"})  # noqa: S102, S307 - execnet's own words
    finally:
        os._exit(0)


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
