"""The server of `--gym-demo`: in a process of its own, which starts while this one imports the suite. Light to import."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Seconds that it may take to start, and to end.
_START, _STOP = 60.0, 5.0


class NoDemo(Exception):
    """The server has not started; the message says how it ended."""


class Demo:
    """The embedded reference server: it begins to start when this is made, and is stopped by `close`."""

    def __init__(self) -> None:
        # -P: where pytest runs there may be modules named like those that it imports
        command = [sys.executable, "-P", "-m", "gym_mocks.reference"]
        # A session of its own: Ctrl-C is for this process, which ends it.
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._said: list[str] = []

    @property
    def url(self) -> str:
        """Where it answers.

        Raises:
            NoDemo: it has not started.
        """
        return self._told()[0]

    @property
    def data(self) -> Path:
        """The file of its rows.

        Raises:
            NoDemo: it has not started.
        """
        return Path(self._told()[1])

    def close(self) -> None:
        """End it."""
        with self._process as process, self._killed_after(_STOP):
            assert process.stdin is not None  # noqa: S101 - a pipe
            process.stdin.close()
            process.wait()

    def _told(self) -> list[str]:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        if not self._said:
            with self._killed_after(_START):
                lines = [self._process.stdout.readline().decode().rstrip("\r\n") for _ in range(2)]
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
    """The demo of this run, which begins to start when this is first asked, and is stopped when pytest ends."""
    if _DEMO not in config.stash:
        try:
            config.stash[_DEMO] = demo = Demo()
        except OSError as error:  # no process, or no file, is left to us
            raise pytest.UsageError(f"--gym-demo: its server cannot be started: {error.strerror}") from None
        config.add_cleanup(demo.close)
    return config.stash[_DEMO]
