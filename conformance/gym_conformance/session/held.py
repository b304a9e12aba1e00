"""How much of a target's large requests and replies anybody still holds: records, outcomes, rollouts under way."""

import gc
from dataclasses import replace
from weakref import WeakValueDictionary, ref

from gym_conformance.session.exchange import Reply, Request

#: Bytes that they may take; whatever one server answers, a run stays below 400 MB with that.
_MOST = 96 << 20

#: What weighs less is not counted: of a few hundred sessions at once it comes to little.
_LIGHT = 32 << 10

#: Bytes of a body that is not even weighed: nearly all requests and replies have fewer.
_SMALL = 512


class Held:
    """Counts requests and replies for as long as they live, and has large replies with one body share it."""

    def __init__(self) -> None:
        self._large: list[ref[Request | Reply]] = []
        self._by_body: WeakValueDictionary[bytes, Reply] = WeakValueDictionary()
        self._at_most = 0

    def add(self, message: Request | Reply) -> None:
        """Count one more."""
        if len(message.body or b"") < _SMALL:
            return
        if (weight := message.most_weight) >= _LIGHT:
            self._large.append(ref(message))
            self._at_most += weight

    def shared(self, reply: Reply) -> Reply:
        """The reply, counted; where one that lives has the same large body, its twin.

        Most of what is large is the same again, such as what a tool says of the rules in each session.
        """
        if reply.twin or len(reply.body) < _SMALL or reply.most_weight < _LIGHT:
            return reply
        first = self._by_body.setdefault(reply.body, reply)
        if first is not reply:
            return replace(reply, body=first.body, twin=first)
        self.add(reply)
        return reply

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
