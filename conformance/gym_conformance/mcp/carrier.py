"""Sends the official client's HTTP requests over one of our channels, with its deadlines, limits and record."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from gym_conformance.contract.statuses import is_success
from gym_conformance.documents import bulk, parse_json
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, Request, reply_of
from gym_conformance.session.server_fault import NotSent, ServerFault

#: The client's headers that are sent; the others belong to HTTP, or to us.
_SENT: Final = frozenset({"accept", "content-type", "mcp-protocol-version", "mcp-session-id"})

#: The JSON-RPC error that stands in for a missing answer, so that the client does not wait for one.
_NO_ANSWER: Final = {"code": -32000, "message": "no usable answer"}

#: The most events of a reply: a client takes seconds for so many that it cannot read, and keeps a report of each.
_MOST_EVENTS: Final = 10_000

#: Where a line of a stream of events ends, and begins that has data (WHATWG HTML, 9.2.6).
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_EVENT: Final = re.compile(rb"(?:\A|[\r\n])data:")

#: Status, content type, body.
CarriedReply = tuple[int, str, bytes]


class NotSpoken(Exception):
    """The reply is not MCP; `expected` says what a client needs, `actual` what it got."""

    def __init__(self, expected: str, actual: str, reply: Reply | None = None) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.reply = reply


class Carrier:
    """One client's requests to one endpoint.

    A reply that the client could not use is kept in `failure`, and the client gets a JSON-RPC error instead: its versions
    differ in how they treat such a reply, and some wait for ever.

    Args:
        channel: sends and records the requests.
        path: the path of the endpoint.
        headers: sent with each request, the token among them.
        seeded: the number of the exchange whose reply gave those headers; None if we made them up.
    """

    def __init__(self, channel: Channel, path: str, headers: Mapping[str, str], seeded: int | None = None) -> None:
        self.channel = channel
        self.path = path
        self.headers = headers
        self.borrowed = {} if seeded is None else dict.fromkeys(headers, seeded)
        self.failure: Exception | None = None

    async def answer(self, method: str, headers: Mapping[str, str], body: bytes) -> CarriedReply:
        """Answer one of the client's requests; never raises for what the server does."""
        if method == "GET":  # a stream of the server's messages, which would never end
            return 405, "", b""
        message = json.loads(body) if body else {}
        sent = {name: value for name, value in headers.items() if name.lower() in _SENT}
        request = Request(method, self.path, body or None, {**sent, **self.headers}, borrowed=self.borrowed)
        try:
            reply = reply_of(await self.channel.send(request))
            if method == "POST":
                expect_usable(reply, message.get("id"), str(message.get("method")))
        except (ServerFault, NotSent, NotSpoken) as failure:
            self.failure = failure
            return _instead(message.get("id"))
        return reply.status, reply.header("content-type") or "", reply.body


def expect_usable(reply: Reply, number: Any, method: str) -> None:
    """Check that every version of the client can use a reply.

    Raises:
        NotSpoken: it is an error status or a redirect, or not a JSON-RPC answer with this id.
    """
    said = f"status {reply.status}, body {reply.text}" if reply.body else f"status {reply.status}, no body"
    if not is_success(reply.status):
        raise NotSpoken(f"a 2xx status to {method}", said, reply)
    if (count := len(_EVENT.findall(reply.body))) > _MOST_EVENTS:
        raise NotSpoken(f"no more than {_MOST_EVENTS:,} events in answer to {method}", f"{count:,} of them", reply)
    if number is not None and not any(_answers(message, number) for message in _messages(reply)):
        raise NotSpoken(f"a JSON-RPC answer to {method}", said, reply)


def _answers(message: Any, number: Any) -> bool:
    return isinstance(message, dict) and message.get("id") == number and ("result" in message or "error" in message)


def _messages(reply: Reply) -> Iterator[Any]:
    """The messages of a reply: its JSON body, or the JSON of each server-sent event."""
    kind = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    if kind not in {"application/json", "text/event-stream"}:
        return
    for text in [reply.text] if kind == "application/json" else _events(reply.text):
        with suppress(ValueError):
            if not bulk(text):
                yield parse_json(text)


def _events(text: str) -> Iterator[str]:
    """The data of each event of a stream, which may have several lines; JSON may have Unicode's line separators within."""
    data: list[str] = []
    for line in _LINE_END.split(text):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:"))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


def _instead(number: Any) -> CarriedReply:
    if number is None:
        return 202, "", b""
    return 200, "application/json", json.dumps({"jsonrpc": "2.0", "id": number, "error": _NO_ANSWER}).encode()
