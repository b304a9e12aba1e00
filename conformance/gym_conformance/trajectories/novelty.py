"""Whether a search still meets anything new: a status, a shape of reply, or a reward. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gym_conformance.session.exchange import Exchange

#: How deep, and how many members, of a reply are considered.
_DEPTH, _MEMBERS = 4, 20


@dataclass
class Novelty:
    """What this search and earlier ones have met; `quiet` counts the latest trials in a row that added nothing new."""

    quiet: int = 0
    met: set[Any] = field(default_factory=set, repr=False)

    def take(self, exchanges: Iterable[Exchange]) -> None:
        """Record the replies of one trial."""
        fresh = {_trait(exchange) for exchange in exchanges} - self.met
        self.met |= fresh
        self.quiet = 0 if fresh else self.quiet + 1


def _trait(exchange: Exchange) -> Any:
    reply = exchange.reply
    if reply is None:
        return exchange.request.path, None
    body = reply.json() if reply.is_json else None
    reward = repr(reply.fields["reward"]) if "reward" in reply.fields else ""
    return exchange.request.path, reply.status, _form(body), reward


def _form(value: Any, depth: int = 0) -> Any:
    if depth < _DEPTH and isinstance(value, dict):
        return tuple((key, _form(inner, depth + 1)) for key, inner in sorted(value.items())[:_MEMBERS])
    if depth < _DEPTH and isinstance(value, list):
        return frozenset(_form(inner, depth + 1) for inner in value[:_MEMBERS])
    return type(value).__name__
