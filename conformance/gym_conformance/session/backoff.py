"""How long a server that is full may have a client wait: as long as it says itself, in bounds."""

import time
from http import HTTPStatus
from typing import Final

from gym_conformance.session.exchange import Reply

#: Statuses that say "later": nothing has been done by then.
_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

#: Seconds that one request may wait, at once and in all; and that a run may, however many requests wait at a time.
_AT_ONCE: Final = 10.0
_OF_ONE: Final = 30.0
_OF_ALL: Final = 180.0

#: The least that is waited, where the server says 0.
_LEAST: Final = 0.05


class Backoff:
    """Grants a request the time that a 429 or a 503 asks for in its `Retry-After`, and keeps count.

    A server may have room for so many sessions, or serve so many calls a second; that is how it says so. `left` is how
    many seconds may still be waited in a run; the time that several requests wait side by side counts once.
    """

    def __init__(self, seconds: float = _OF_ALL) -> None:
        self.left = seconds
        self._until = 0.0

    def grant(self, reply: Reply, began: float) -> float:
        """How many seconds to wait before the request is sent again; 0 where its reply stands.

        `began` is when it was sent first, in time.monotonic()'s seconds.
        """
        asked = _asked(reply)
        now = time.monotonic()
        if asked is None or asked > _AT_ONCE or now + asked - began > _OF_ONE:
            return 0.0
        seconds = max(asked, _LEAST)
        more = max(0.0, now + seconds - max(now, self._until))
        if more > self.left:
            return 0.0
        self.left -= more
        self._until = max(self._until, now + seconds)
        return seconds


def _asked(reply: Reply) -> float | None:
    """The seconds that a reply asks for; None where it asks for none, or for a date."""
    if reply.status not in _LATER:
        return None
    said = (reply.header("retry-after") or "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None  # noqa: PLR2004 - no sane time is longer
