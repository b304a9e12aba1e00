"""Carries the official client's HTTP over a channel of ours: its deadlines, its limits, its record."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from gym_conformance.contract.statuses import is_success
from gym_conformance.documents import bulk, parse_json
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, Request, reply_of
from gym_conformance.session.server_fault import NotSent, ServerFault

#: Of the client's own headers: the others are HTTP's business, or ours.
_SENT: Final = frozenset({"accept", "content-type", "mcp-protocol-version", "mcp-session-id"})

#: Stands in for what never came, so that the client does not wait for it.
_NO_ANSWER: Final = {"code": -32000, "message": "no usable answer"}

#: A status, the content type, the body.
CarriedReply = tuple[int, str, bytes]


class NotSpoken(Exception):
    """What came is no MCP; `expected` says what a client needs, `actual` what it got."""

    def __init__(self, expected: str, actual: str, reply: Reply | None = None) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.reply = reply


class Carrier:
    """One client's requests to one endpoint.

    A reply that the client could not use is kept in `failure` and a JSON-RPC error given in its place, since the
    versions of the client differ in what becomes of them, and some wait for ever.

    Args:
        channel: sends and records.
        path: of the endpoint.
        headers: sent with each request, the token among them.
        seeded: the number of the exchange whose reply those headers came from; None where we made them up.
    """

    def __init__(self, channel: Channel, path: str, headers: Mapping[str, str], seeded: int | None = None) -> None:
        self.channel = channel
        self.path = path
        self.headers = headers
        self.borrowed = {} if seeded is None else dict.fromkeys(headers, seeded)
        self.failure: Exception | None = None

    async def answer(self, method: str, headers: Mapping[str, str], body: bytes) -> CarriedReply:
        """The answer to one of the client's requests; never raises for what the server does."""
        if method == "GET":  # no stream of the server's own: it would have no end
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
    """Hold a reply to what every version of the client can use.

    Raises:
        NotSpoken: it is an error status or a redirect, or no JSON-RPC answer to the message of this number.
    """
    said = f"status {reply.status}, body {reply.text}" if reply.body else f"status {reply.status}, no body"
    if not is_success(reply.status):
        raise NotSpoken(f"a 2xx status to {method}", said, reply)
    if number is not None and not any(_answers(message, number) for message in _messages(reply)):
        raise NotSpoken(f"a JSON-RPC answer to {method}", said, reply)


def _answers(message: Any, number: Any) -> bool:
    return isinstance(message, dict) and message.get("id") == number and ("result" in message or "error" in message)


def _messages(reply: Reply) -> Iterator[Any]:
    """The messages of a reply: its JSON, or that of each of its server-sent events."""
    kind = (reply.header("content-type") or "").partition(";")[0].strip().lower()
    texts = [reply.text] if kind == "application/json" else []
    if kind == "text/event-stream":
        texts = [line.removeprefix("data:") for line in reply.text.splitlines() if line.startswith("data:")]
    for text in texts:
        with suppress(ValueError):
            if not bulk(text):
                yield parse_json(text)


def _instead(number: Any) -> CarriedReply:
    if number is None:
        return 202, "", b""
    return 200, "application/json", json.dumps({"jsonrpc": "2.0", "id": number, "error": _NO_ANSWER}).encode()
