"""How much of unfinished answers is held at once: beyond a limit, one of them at a time is read to its end."""

from collections import deque
from typing import Protocol


class WaitingReader(Protocol):
    """What reads an answer, and can be told to wait: a `Connection`."""

    def wait(self) -> None:
        """Read nothing for now."""

    def read_on(self) -> None:
        """Read again."""


class Intake:
    """The bytes of all unfinished answers of a transport.

    Once they come to more than `most`, one reader at a time goes on, and the others wait for it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._alone: WaitingReader | None = None
        self._waiting: deque[WaitingReader] = deque()

    def take(self, reader: WaitingReader, count: int) -> None:
        """Count bytes that came, and have the reader wait if there are too many."""
        self._held += count
        if self._held <= self._most or reader is self._alone:
            return
        if self._alone is None:
            self._alone = reader
        else:
            self._waiting.append(reader)
            reader.wait()

    def release(self, reader: WaitingReader, count: int) -> None:
        """Count the bytes of an answer no longer, and let others read on."""
        self._held -= count
        if reader is self._alone:
            self._alone = None
        elif reader in self._waiting:
            self._waiting.remove(reader)
        while self._waiting and (self._alone is None or self._held <= self._most):
            self._alone = self._waiting.popleft()
            self._alone.read_on()
