"""The display of progress while the suite works.

The live line, shown only on a terminal, says which check runs, how many examples it has tried, and how fast. It follows
what pytest has written on the line, and is erased when the check ends.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Final, TextIO, TypeVar

import pytest

from gym_conformance.printable import counted

T = TypeVar("T")

#: Seconds before a check is shown, so that quick ones never are, and between updates.
_FIRST: Final = 0.5
_NEXT: Final = 0.2

_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[K"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"

#: Columns below which there is no room for it.
_ROOM: Final = 20


@dataclass(frozen=True)
class Progress:
    """Writes the live line.

    Attributes:
        file: the terminal.
        room: returns how many columns are left on the line.
        colour: whether it may be dimmed.
    """

    file: TextIO
    room: Callable[[], int]
    colour: bool

    async def during(self, check: str, counts: Callable[[], tuple[int, int]], work: Awaitable[T]) -> T:
        """Await the work, showing the check meanwhile; `counts` returns the trials and requests of the run so far."""
        shown = asyncio.create_task(self._show(check, counts))
        try:
            return await work
        finally:
            shown.cancel()
            with suppress(asyncio.CancelledError):
                await shown

    def close(self) -> None:
        """Close the terminal's descriptor."""
        self.file.close()

    async def _show(self, check: str, counts: Callable[[], tuple[int, int]]) -> None:
        started, (trials, requests) = time.monotonic(), counts()
        await asyncio.sleep(_FIRST)
        try:
            while True:
                seconds = time.monotonic() - started
                tried, sent = (now - before for now, before in zip(counts(), (trials, requests), strict=True))
                self._write(line(check, tried, sent, seconds))
                await asyncio.sleep(_NEXT)
        finally:
            self._put(_ERASE)

    def _write(self, text: str) -> None:
        room = self.room() - 2
        if room < _ROOM:
            return
        text = f"{_DIM}{text[:room]}{_PLAIN}" if self.colour else text[:room]
        self._put(f"{_SAVE}{_ERASE} {text}{_RESTORE}")

    def _put(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone
            self.file.write(text)
            self.file.flush()


def line(check: str, trials: int, requests: int, seconds: float) -> str:
    """The text of the line."""
    examples = f"{trials:,} example{'s' if trials != 1 else ''}"
    return f"{check}: {examples}, {counted(requests, 'request')}, {requests / seconds:,.0f}/s, {seconds:.0f} s"


def progress_of(config: pytest.Config) -> Progress | None:
    """The live line of this run; None with -q, in CI, in a worker, or without a capable terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty or config.get_verbosity() < 0:
        return None
    if os.environ.get("CI") or os.environ.get("TERM", "dumb") == "dumb" or getattr(config.option, "numprocesses", None):
        return None
    writer = reporter._tw  # noqa: SLF001 - pytest has no public name for it
    try:  # pytest redirects the descriptor while a test runs, so this is a duplicate of it
        file = os.fdopen(os.dup(writer._file.fileno()), "w", encoding="utf-8", errors="replace")  # noqa: SLF001
    except (OSError, ValueError):
        return None
    return Progress(file, lambda: writer.fullwidth - writer.width_of_current_line, writer.hasmarkup)


def tell(config: pytest.Config, text: str) -> None:
    """Print a permanent line, from any process; nothing with -q."""
    if config.get_verbosity() < 0:
        return
    reporter, capture = map(config.pluginmanager.get_plugin, ("terminalreporter", "capturemanager"))
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        if reporter and not hasattr(config, "workerinput"):
            reporter.ensure_newline()
            reporter.write_line(text)
        else:  # an xdist worker, whose stderr is the controller's
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
