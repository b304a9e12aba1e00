"""The server of `--gym-demo`: a separate process, which starts while this one imports the suite. Cheap to import."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Seconds that it has to start, and to end.
_START, _STOP = 60.0, 5.0


class NoDemo(Exception):
    """The server did not start; the message says how it ended."""


class Demo:
    """The embedded reference server: starting begins with this object, and `close` stops it."""

    def __init__(self) -> None:
        # -P: the current folder may contain modules with the names of those that it imports
        command = [sys.executable, "-P", "-m", "gym_mocks.reference"]
        # A session of its own: Ctrl-C must reach only this process, which then ends it.
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._said: list[str] = []

    @property
    def url(self) -> str:
        """Its URL.

        Raises:
            NoDemo: it did not start.
        """
        return self._told()[0]

    @property
    def data(self) -> Path:
        """The file of its rows.

        Raises:
            NoDemo: it did not start.
        """
        return Path(self._told()[1])

    def close(self) -> None:
        """Stop it."""
        with self._process as process, self._killed_after(_STOP):
            assert process.stdin is not None  # noqa: S101 - a pipe
            process.stdin.close()
            process.wait()

    def _told(self) -> list[str]:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        if not self._said:
            with self._killed_after(_START):
                lines = [os.fsdecode(self._process.stdout.readline()).rstrip("\n") for _ in range(2)]
            if not all(lines):
                raise NoDemo(
                    f"--gym-demo: its server has not started: {sys.executable} ended with {self._process.wait()}"
                )
            self._said = lines
        return self._said

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[None]:
        late = threading.Timer(seconds, self._process.kill)
        late.start()
        try:
            yield
        finally:
            late.cancel()


_DEMO = pytest.StashKey[Demo]()


def demo_of(config: pytest.Config) -> Demo:
    """The demo server of this run: it begins to start at the first call, and stops when pytest ends."""
    if _DEMO not in config.stash:
        try:
            config.stash[_DEMO] = demo = Demo()
        except OSError as error:  # the limit of processes or of open files is reached
            raise pytest.UsageError(f"--gym-demo: its server cannot be started: {error.strerror}") from None
        config.add_cleanup(demo.close)
    return config.stash[_DEMO]
