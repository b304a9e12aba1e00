"""How long to wait for a server that is full: as long as it asks, within bounds."""

import time
from http import HTTPStatus
from typing import Final

from gym_conformance.session.exchange import Reply

#: Statuses that mean "later": the request had no effect.
_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

#: Seconds that one request may wait, per retry and in total; and that a run may wait, counting concurrent waits once.
_AT_ONCE: Final = 10.0
_OF_ONE: Final = 30.0
_OF_ALL: Final = 180.0

#: Seconds to wait at least, for a server that says 0.
_LEAST: Final = 0.05


class Backoff:
    """Grants a request the delay that a 429 or a 503 asks for in `Retry-After`, and keeps a budget.

    That is how a server says that it has no room for more sessions, or serves only so many calls a second. `left` is
    how many seconds the run may still wait; concurrent waits count once.
    """

    def __init__(self, seconds: float = _OF_ALL) -> None:
        self.left = seconds
        self._until = 0.0

    def grant(self, reply: Reply, began: float) -> float:
        """Seconds to wait before the request is sent again; 0 if its reply is final.

        `began`: when it was first sent, as `time.monotonic()` has it.
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
    """The seconds that a reply asks for; None if it asks for none, or names a date."""
    if reply.status not in _LATER:
        return None
    said = (reply.header("retry-after") or "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None  # noqa: PLR2004 - none is longer
