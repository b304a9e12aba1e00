"""Which seeds a server has accepted, and since when it accepts none any more."""

import time
from collections import deque
from typing import Final

from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.statuses import is_crash, is_error
from gym_conformance.session.exchange import Reply, Request

#: Seconds above which a refusal must have waited for something; after how many of these in a row to stop seeding; and
#: for how many seconds.
_SLOW: Final = 1.0
_IN_A_ROW: Final = 4
_PAUSE: Final = 20.0

#: How many calls to keep for reports, and how many accepted bodies to remember.
_CALLS: Final = 6
_KNOWN: Final = 2000


class Seeds:
    """Counts accepted seeds, and refusals of seeds that had been accepted before.

    Attributes:
        taken: how many seeds were accepted.
        refused: the last refusal of a seed that had been accepted before; None if one has been accepted since.
        before: the last distinct requests that were answered before the first of these refusals, with their statuses.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.refused: Reply | None = None
        self.before: tuple[str, ...] = ()
        self._calls: deque[tuple[str, int]] = deque(maxlen=_CALLS)
        self._known: set[int] = set()
        self._slow = 0
        self._since = 0.0

    def note(self, request: Request, reply: Reply) -> None:
        """Take note of the reply to a request."""
        if request.path != SEED_SESSION:
            call = (request.path, reply.status)
            if call not in self._calls and not is_crash(reply.status):
                self._calls.append(call)
        elif not is_error(reply.status):
            self.taken += 1
            self.refused, self._slow = None, 0
            if len(self._known) < _KNOWN:
                self._known.add(hash(request.own))
        elif hash(request.own) in self._known:
            self.before = self.before if self.refused else tuple(f"{path} ({status})" for path, status in self._calls)
            self.refused, self._since = reply, time.monotonic()
            self._slow += reply.elapsed > _SLOW

    def wait(self, request: Request) -> Reply | None:
        """The refusal to expect of this seed, if hearing it again would cost seconds; None if it may be sent."""
        if request.path != SEED_SESSION or self._slow < _IN_A_ROW or hash(request.own) not in self._known:
            return None
        return self.refused if time.monotonic() - self._since < _PAUSE else None
