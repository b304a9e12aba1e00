"""How much of a target's large requests and replies anybody still holds: records, outcomes, rollouts under way."""

import gc
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary, ref

from gym_conformance.session.exchange import Reply, Request

M = TypeVar("M", Request, Reply)

#: Bytes that they may take; whatever one server answers, a run stays below 400 MB with that.
_MOST = 64 << 20

#: What weighs less is not counted: of a few hundred sessions at once it comes to little.
_LIGHT = 32 << 10

#: Bytes of a body that is not even weighed: nearly all requests and replies have fewer.
_SMALL = 512


class Held:
    """Counts requests and replies for as long as they live, and has large ones with one body share it."""

    def __init__(self) -> None:
        self._large: list[ref[Request | Reply]] = []
        self._by_body: WeakValueDictionary[tuple[type, bytes | None], Any] = WeakValueDictionary()
        self._at_most = 0

    def shared(self, message: M) -> M:
        """The message, counted; where one that lives has the same large body, its twin.

        Most of what is large is the same again, such as what a tool says of the rules in each session.
        """
        if message.twin or len(message.body or b"") < _SMALL or (weight := message.most_weight) < _LIGHT:
            return message
        self._large.append(ref(message))  # also where a twin takes its place: whoever sends it still holds it
        self._at_most += weight
        first: M = self._by_body.setdefault((type(message), message.body), message)
        return message if first is message else replace(message, body=first.body, twin=first)

    def over(self) -> str:
        """Why there is no room for another; '' where there is."""
        if self._at_most > _MOST:
            self._count()
        if self._at_most > _MOST:
            gc.collect()  # a rollout and its generator hold each other
            self._count()
        return f"more than {_MOST >> 20} MB of rows and replies" if self._at_most > _MOST else ""

    def _count(self) -> None:
        self._large = [each for each in self._large if each() is not None]
        self._at_most = sum(message.weight for each in self._large if (message := each()) is not None)
