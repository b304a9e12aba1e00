from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gym_mocks.policy.conversation import PolicyApi, PolicyRequest
from gym_mocks.policy.items import Turn
from gym_mocks.wire import HttpRequest, json_body


@dataclass(frozen=True)
class PolicyCall:
    """One request that a policy server got, and what became of it.

    Attributes:
        api: the API it came by.
        raw: the request's body.
        route: the route that took it; empty for the default policy, or where none did.
        status: of the reply.
        turn: what the policy said; empty where it did not come to that.
    """

    api: PolicyApi
    raw: bytes = field(repr=False)
    route: str
    status: int
    turn: Turn = ()

    @cached_property
    def request(self) -> PolicyRequest:
        """The request as the policy saw it."""
        body = json_body(HttpRequest("POST", "", {"content-type": "application/json"}, self.raw))
        return PolicyRequest(self.api, body, route=self.route)

    @property
    def body(self) -> dict[str, Any]:
        """The request's JSON object."""
        return self.request.body

    @property
    def model(self) -> str:
        """The model asked for."""
        return self.request.model

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools offered: the schema of each one's parameters, by name."""
        return self.request.tools


class Calls:
    """The last calls, oldest first; only so many are kept, but all are counted.

    Attributes:
        count: how many there have been.

    Args:
        limit: how many are kept.
        size: how many bytes their bodies may have together; the last call is kept whatever its size.
    """

    def __init__(self, limit: int, size: int = 256 * 2**20) -> None:
        self.count = 0
        self._limit = limit
        self._size = size
        self._held = 0
        self._kept: deque[PolicyCall] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[PolicyCall]:
        return iter(list(self._kept))

    def __getitem__(self, index: int) -> PolicyCall:
        return self._kept[index]

    @property
    def last(self) -> PolicyCall:
        """The latest call.

        Raises:
            LookupError: there has been none.
        """
        if not self._kept:
            raise LookupError("the policy has not been called")
        return self._kept[-1]

    def of(self, route: str) -> list[PolicyCall]:
        """The calls of one route."""
        return [call for call in self if call.route == route]

    def add(self, call: PolicyCall) -> None:
        """Keep a call."""
        self.count += 1
        self._kept.append(call)
        self._held += len(call.raw)
        while len(self._kept) > self._limit or (self._held > self._size and len(self._kept) > 1):
            self._held -= len(self._kept.popleft().raw)

    def clear(self) -> None:
        """Forget them all."""
        self.count = self._held = 0
        self._kept.clear()
