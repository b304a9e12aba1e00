"""A pytest run inside a Ray task: a worker as xdist's are, which tells its reports in a file, a JSON line each.

Run as a script, it reads one JSON line, `{"arguments": [...], "nodes": [...], "told": PATH}`: the command line of the
run that it is part of, which of its items to run, and the file. On stdin, since arguments may hold secrets; and it ends
when its input does: then the task that started it is gone.
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

#: Characters of what it printed that are told when it fails.
_TAIL: Final = 2000

#: Seconds between two looks whether it has ended.
_LOOK: Final = 0.1


@dataclass(frozen=True)
class WorkerReport:
    """What a task says: the worker's lines, how it ended as pytest does, the end of what it printed, and on which node."""

    lines: tuple[dict[str, Any], ...]
    code: int
    printed: str
    node: str


def judge(arguments: Sequence[str], folder: str, nodes: Sequence[str]) -> WorkerReport:
    """The task: run these items in a process of its own, which may die of them.

    Raises:
        OSError: the folder is not there.
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
                time.sleep(_LOOK)  # Ray cancels by an interrupt that waits for Python's next step
        finally:
            process.kill()  # its server has a guard, which outlives it
        lines = tuple(json.loads(line) for line in told.read_text().splitlines(keepends=True) if line.endswith("\n"))
        return WorkerReport(lines, code, printed.read_text(errors="replace")[-_TAIL:], gethostname())


class Worker:
    """The plugin that makes a run a worker: only the given items, and their reports to `out`."""

    def __init__(self, nodes: Collection[str], out: TextIO) -> None:
        self._nodes = nodes
        self._out = out
        self._config: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: Any) -> None:
        """Be what plugins take for a worker, before they are configured: they write no files of their own then."""
        self._config = config
        config.workerinput, config.workeroutput = {"workerid": "ray"}, {}
        config.option.gym_ray = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what this worker is to run."""
        items[:] = [item for item in items if item.nodeid in self._nodes]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell a report."""
        self._tell(report=self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Tell what else there is, after all that end with the session."""
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
    """Run as told on stdin."""
    order = json.loads(sys.stdin.readline())
    Thread(target=_end_with, args=(sys.stdin,), daemon=True).start()
    with Path(order["told"]).open("w", encoding="utf-8") as out:
        return pytest.main(order["arguments"], plugins=[Worker(frozenset(order["nodes"]), out)])


if __name__ == "__main__":
    sys.exit(main())
