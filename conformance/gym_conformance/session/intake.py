"""Limits the memory of unfinished replies: above it, only one of them at a time is read to its end."""

from collections import deque
from typing import Protocol


class WaitingReader(Protocol):
    """A reader of replies that can be paused: a `Connection`."""

    def wait(self) -> None:
        """Pause reading."""

    def read_on(self) -> None:
        """Resume reading."""


class Intake:
    """Counts the bytes of all unfinished replies of a transport.

    Once there are more than `most`, one reader at a time goes on while the others wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._alone: WaitingReader | None = None
        self._waiting: deque[WaitingReader] = deque()

    def take(self, reader: WaitingReader, count: int) -> None:
        """Count bytes that arrived, and pause the reader if there are too many."""
        self._held += count
        if self._held <= self._most or reader is self._alone:
            return
        if self._alone is None:
            self._alone = reader
        else:
            self._waiting.append(reader)
            reader.wait()

    def release(self, reader: WaitingReader, count: int) -> None:
        """Stop counting the bytes of a reply, and let others resume."""
        self._held -= count
        if reader is self._alone:
            self._alone = None
        elif reader in self._waiting:
            self._waiting.remove(reader)
        while self._waiting and (self._alone is None or self._held <= self._most):
            self._alone = self._waiting.popleft()
            self._alone.read_on()
