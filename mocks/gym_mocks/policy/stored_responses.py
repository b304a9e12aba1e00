"""Responses that a client goes on from by `previous_response_id`, or whose items it sends back by id, as OpenAI keeps them."""

import json
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from gym_mocks.policy.conversation import MARK, answer_key
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
        self.forget(name)
        self._kept[name] = (asked, said)
        self._held += len(asked) + len(said)
        while len(self._kept) > self._limit or (self._held > self._size and len(self._kept) > 1):
            self.forget(next(iter(self._kept)))

    def said(self, name: str) -> bytes | None:
        """A response as it was on the wire; None where it is not kept."""
        return self._kept.get(name, (b"", None))[1]

    def input_items(self, name: str) -> list[Any]:
        """What a response that is kept answers, from the conversation's beginning, each item with an id.

        Raises:
            HttpRefusal: see `whole`.
        """
        items = _items(self.whole(json.loads(self._kept[name][0])))
        return [{"id": f"item_{at}", **_spelt_out(item)} for at, item in enumerate(items)]

    def forget(self, name: str) -> None:
        """Keep a response no longer; one that is not kept changes nothing."""
        self._held -= sum(map(len, self._kept.pop(name, ())))

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request with the whole conversation as its input.

        Raises:
            HttpRefusal: 400 where what it refers to is not kept, 413 where that is too much.
        """
        name, size = body.get("previous_response_id"), 0
        if not name and not any(_is_reference(item) for item in _items(body)):
            return body
        requests, outputs = [_items(body)], list[list[Any]]()
        while name:
            asked, said = self._kept.get(name, (b"", b""))
            size += len(asked) + len(said)
            if not said:
                wanted = "send the whole conversation as input"
                why = f"previous_response_id: no response {name!r:.100} is kept; {wanted}"
                raise HttpRefusal(400, why, code="previous_response_not_found")
            if size > BODY_LIMIT:
                raise HttpRefusal(413, "previous_response_id: the conversation is too large")
            before = json.loads(asked)
            requests.append(_items(before))
            outputs.append(json.loads(said)["output"])
            name = before.get("previous_response_id")
        turns: Any = zip_longest(reversed(requests), reversed(outputs), fillvalue=[])  # the last has no output yet
        return {**body, "input": self._meant([item for turn in turns for part in turn for item in part])}

    def _meant(self, items: list[Any]) -> list[Any]:
        """The same with the items of responses that are kept in the place of references to them."""
        wanted = [answer_key(item) for item in items if _is_reference(item)]
        said = [self._kept.get(f"resp_{MARK}_{key}_0", (b"", b""))[1] for key in dict.fromkeys(wanted)]
        kept = {item["id"]: item for each in said if each for item in json.loads(each)["output"]}
        for item in items:
            if _is_reference(item) and str(item.get("id")) not in kept:
                raise HttpRefusal(400, f"input: no item {item.get('id')!r:.100} is kept; send the item itself")
        return [kept[item["id"]] if _is_reference(item) else item for item in items]


def _items(body: Mapping[str, Any]) -> list[Any]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _spelt_out(item: dict[str, Any]) -> dict[str, Any]:
    """An item with what it may leave out: a message's type and the kind of its text, and that it is complete."""
    if isinstance(content := item.get("content"), str):
        said = {"type": "output_text", "annotations": []} if item.get("role") == "assistant" else {"type": "input_text"}
        item = {**item, "content": [{**said, "text": content}]}
    return {"type": "message", "status": "completed", **item}


def _is_reference(item: Mapping[str, Any]) -> bool:
    """Whether a client sends an item back by its id alone."""
    return item.get("type") == "item_reference"
