"""The memory that a target's large requests and replies take while records, outcomes or rollouts refer to them."""

import gc
from typing import Any, TypeVar
from weakref import WeakValueDictionary, ref

from gym_conformance.session.exchange import Reply, Request

M = TypeVar("M", Request, Reply)

#: Bytes that they may take; this keeps a run below 400 MB whatever a server answers.
_MOST = 64 << 20

#: Bytes by which they grow before cycles are looked for once more: each time all objects of the process are gone through.
_GROWTH = _MOST >> 4

#: Bytes below which a message is not counted: a few hundred concurrent sessions have little of those.
_LIGHT = 32 << 10

#: Bytes of a body below which a message is not even weighed, as with nearly all of them.
_SMALL = 512


class Held:
    """Counts requests and replies as long as they live, and lets large ones with the same body share it."""

    def __init__(self) -> None:
        self._large: list[ref[Request | Reply]] = []
        self._by_body: WeakValueDictionary[tuple[type, bytes | tuple[bytes, bytes]], Any] = WeakValueDictionary()
        self._at_most = 0
        self._left = 0  # by the last search for cycles, or fewer since

    def shared(self, message: M) -> M:
        """The message, now counted; if a live message has the same large body, a copy that shares it.

        Most large messages are repetitions, such as the rules that a tool gives in each session.
        """
        if message.twin or message.weight < _SMALL or (weight := message.most_weight) < _LIGHT:
            return message
        self._large.append(ref(message))  # even if a twin replaces it: its sender still holds it
        self._at_most += weight
        first: M = self._by_body.setdefault((type(message), message.own), message)
        return message if first is message else message.sharing(first)

    def over(self) -> str:
        """Why there is no room for another message; '' if there is."""
        if self._at_most > _MOST:
            self._count()
        if self._at_most > max(_MOST, self._left + _GROWTH):
            gc.collect()  # a rollout and its generator refer to each other
            self._count()
            self._left = self._at_most
        return f"more than {_MOST >> 20} MB of rows and replies" if min(self._left, self._at_most) > _MOST else ""

    def _count(self) -> None:
        self._large = [each for each in self._large if each() is not None]
        self._at_most = sum(message.weight for each in self._large if (message := each()) is not None)
        self._left = min(self._left, self._at_most)
