"""A pytest run inside a Ray task: a worker like those of xdist, which writes its reports to a file, one JSON line each.

Run as a script, it reads one JSON line, `{"arguments": [...], "nodes": [...], "told": PATH}`: the command line of the
main run, the node ids of the items to run, and the file. They come on stdin because arguments may hold secrets. The
worker ends at end of input, which means that the task that started it is gone.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final, TextIO

import pytest

#: How many characters of a worker's output to show when it fails.
_TAIL: Final = 2000

#: Seconds between checks whether the worker has ended.
_POLL: Final = 0.1


@dataclass(frozen=True)
class WorkerReport:
    """The result of a task: the worker's lines, pytest's exit status, the end of its output, and the node it ran on."""

    lines: tuple[dict[str, Any], ...]
    code: int
    printed: str
    node: str


def judge(arguments: Sequence[str], folder: str, nodes: Sequence[str]) -> WorkerReport:
    """The Ray task: run these items in a separate process, so that a crash does not take Ray's own down.

    Raises:
        OSError: the folder does not exist.
    """
    with TemporaryDirectory() as kept:
        told, printed = Path(kept, "told"), Path(kept, "printed")
        told.touch()
        with printed.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - this Python, this module
                [sys.executable, "-m", __name__], cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True
            )
        try:
            assert process.stdin  # noqa: S101 - for the type checker: it is a pipe
            order = {"arguments": list(arguments), "nodes": list(nodes), "told": str(told)}
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            while (code := process.poll()) is None:
                time.sleep(_POLL)  # Ray cancels by an interrupt, which Python only notices between two steps
        finally:
            process.kill()  # the guard of its server outlives it, and stops the server
        lines = tuple(json.loads(line) for line in told.read_text().splitlines(keepends=True) if line.endswith("\n"))
        return WorkerReport(lines, code, printed.read_text(errors="replace")[-_TAIL:], gethostname())


class Worker:
    """The pytest plugin of a worker: it runs only the given items, and writes their reports to `out`."""

    def __init__(self, nodes: Collection[str], out: TextIO) -> None:
        self._nodes = nodes
        self._out = out
        self._config: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: Any) -> None:
        """Look like an xdist worker before other plugins are configured, so that they write no files of their own."""
        self._config = config
        config.workerinput, config.workeroutput = {"workerid": "ray"}, {}
        config.option.gym_ray = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep only the items of this worker."""
        items[:] = [item for item in items if item.nodeid in self._nodes]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a report."""
        self._tell(report=self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Write the remaining data of the session, after all other plugins have finished it."""
        result = yield
        self._tell(output=self._config.workeroutput)
        return result

    def _tell(self, **line: Any) -> None:
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def _end_with(parent: TextIO) -> None:
    parent.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run what stdin specifies."""
    order = json.loads(sys.stdin.readline())
    Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    with Path(order["told"]).open("w", encoding="utf-8") as out:
        return pytest.main(order["arguments"], plugins=[Worker(frozenset(order["nodes"]), out)])


if __name__ == "__main__":
    sys.exit(main())
