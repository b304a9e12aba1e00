"""Responses that a client goes on from by `previous_response_id`, sending only what is new, as OpenAI keeps them."""

import json
from collections.abc import Mapping
from typing import Any

from gym_mocks.wire import HttpRefusal
from gym_mocks.wire.app import BODY_LIMIT


class StoredResponses:
    """The last responses with their requests, by id.

    They change nothing of what a policy says: a conversation that is put together from them is read as if it had been
    sent whole. An id tells which turn of which conversation a response is, so rollouts that say the same share one.

    Args:
        limit: how many are kept.
        size: how many bytes they and their requests may have together; the last one is kept whatever its size.
    """

    def __init__(self, limit: int, size: int = 256 * 2**20) -> None:
        self._limit = limit
        self._size = size
        self._held = 0
        self._kept: dict[str, tuple[bytes, bytes]] = {}

    def keep(self, name: str, asked: bytes, said: bytes) -> None:
        """Keep a response and the request that it answers, as they were on the wire."""
        self._forget(name)
        self._kept[name] = (asked, said)
        self._held += len(asked) + len(said)
        while len(self._kept) > self._limit or (self._held > self._size and len(self._kept) > 1):
            self._forget(next(iter(self._kept)))

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request with the whole conversation as its input.

        Raises:
            HttpRefusal: 400 where what it goes on from is not kept, 413 where that is too much.
        """
        parts, name, size = [_items(body)], body.get("previous_response_id"), 0
        while name:
            asked, said = self._kept.get(name, (b"", b""))
            size += len(asked) + len(said)
            if not said:
                wanted = "send the whole conversation as input"
                raise HttpRefusal(400, f"previous_response_id: no response {name!r:.100} is kept; {wanted}")
            if size > BODY_LIMIT:
                raise HttpRefusal(413, "previous_response_id: the conversation is too large")
            before = json.loads(asked)
            parts.append([*_items(before), *json.loads(said)["output"]])
            name = before.get("previous_response_id")
        return body if len(parts) == 1 else {**body, "input": [item for part in reversed(parts) for item in part]}

    def _forget(self, name: str) -> None:
        self._held -= sum(map(len, self._kept.pop(name, ())))


def _items(body: Mapping[str, Any]) -> list[Any]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given
