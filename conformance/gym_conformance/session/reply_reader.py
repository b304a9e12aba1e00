"""Reads replies without I/O: bytes in, a reply or a flaw out.

llhttp, used through httptools, parses the grammar strictly; nemo-gym's own client (aiohttp) uses it in lenient mode.
This module decides when a reply is complete, and how large it may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import httptools

from gym_conformance.session.server_fault import PARTIAL_LIMIT, Fault

HEAD_LIMIT = 64 * 1024  # bytes of all header fields, or of one unfinished element; servers refuse far less
INTERIM_LIMIT = 32  # 1xx replies before the final one: a flood would keep the loop busy until the deadline


@dataclass(slots=True)
class ParsedReply:
    """A reply as parsed from the wire.

    Attributes:
        headers: names, in lower case, and values, in the order sent, decoded as Latin-1, which represents any bytes, so
            that they can be sent back unchanged. Trailers are left out.
        body: without its transfer coding, but still in its content coding.
        reusable: whether the connection may carry another exchange.
    """

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    reusable: bool = False

    def values(self, name: str) -> list[str]:
        """All values of a header; `name` in lower case."""
        return [value for key, value in self.headers if key == name]


@lru_cache(256)
def _lower(name: bytes) -> str:
    """A header's name in lower case, cached: servers send few different ones."""
    return name.lower().decode("latin-1")


class Flaw(NamedTuple):
    """Why there is no reply: the fault, and one line of detail."""

    fault: Fault
    detail: str


class Reader:
    """Reads the replies of one connection, one at a time; unusable after a flaw.

    Args:
        limit: how many bytes a body may have, as sent.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parser = httptools.HttpResponseParser(self)
        self._answer = ParsedReply()
        self.expect("GET")

    def expect(self, method: str) -> None:
        """Start waiting for the reply to a request with this method; forgets the previous reply."""
        self.seen = b""  # the reply's first bytes, at most PARTIAL_LIMIT
        self._method = method
        self._interims = 0
        self._weight = 0  # bytes of header fields
        self._unfinished = 0  # bytes since the parser last completed an element
        self._headed = False
        self._whole = False
        self._flaw: Flaw | None = None

    def feed(self, data: bytes) -> ParsedReply | Flaw | None:
        """Parse bytes; None while the reply is incomplete."""
        if len(self.seen) < PARTIAL_LIMIT:
            self.seen = (self.seen + data)[:PARTIAL_LIMIT]
        self._unfinished += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(Fault.INVALID, "it switches protocols without being asked")
        except httptools.HttpParserError as error:
            self._refuse(Fault.INVALID, f"{error}, {'after the end' if self._whole else self.progress()}")
        if self._unfinished > HEAD_LIMIT and not self._whole:
            self._refuse(Fault.OVERSIZED, f"over {HEAD_LIMIT} bytes of headers or framing, {self.progress()}")
        return self._flaw or (self._answer if self._whole else None)

    def end(self) -> ParsedReply | Flaw:
        """Handle the end of the stream, which also ends a reply without a stated length."""
        answer = self._answer
        if self._headed and not answer.values("content-length") and not self._chunked():
            return answer
        return Flaw(Fault.BROKEN, f"closed, {self.progress()}")

    def let_go(self) -> None:
        """Drop the reply: an idle connection would keep its body in memory."""
        self._answer = ParsedReply()

    def progress(self) -> str:
        """How much of the reply has arrived."""
        if not self.seen:
            return "no byte of an answer had arrived"
        if not self._headed:
            return "the headers were unfinished"
        length = self._answer.values("content-length")
        of = f" of {int(length[0])}" if length else ""
        return f"the body was unfinished at {len(self._answer.body)}{of} bytes"

    def _chunked(self) -> bool:
        return any("chunked" in value.lower() for value in self._answer.values("transfer-encoding"))

    def _refuse(self, fault: Fault, detail: str) -> None:
        self._flaw = self._flaw or Flaw(fault, detail)

    # httptools' callbacks: it would wrap an exception raised here in one of its own, so flaws are noted instead

    def on_message_begin(self) -> None:
        """Start a reply; after a complete one, this most likely means a wrong Content-Length (RFC 9112, 6.3)."""
        if self._whole:
            self._refuse(Fault.INVALID, "bytes follow the end of the answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or trailer field."""
        self._unfinished = 0
        self._weight += len(name) + len(value)
        if self._weight > HEAD_LIMIT:
            self._refuse(Fault.OVERSIZED, f"over {HEAD_LIMIT} bytes of headers")
        elif not self._headed:
            self._answer.headers.append((_lower(name), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Finish the head, which determines how much is to come."""
        if self._whole:
            return
        self._headed, self._unfinished = True, 0
        answer, parser = self._answer, self._parser
        answer.status = parser.get_status_code()
        answer.reusable = parser.should_keep_alive()
        if self._method == "HEAD" and answer.status >= 200:  # noqa: PLR2004 - the first final status
            self._whole, answer.reusable = True, False  # llhttp does not know that, and waits for a body
        elif any(int(length) > self._limit for length in answer.values("content-length")):
            self._refuse(Fault.OVERSIZED, f"content-length is over the limit of {self._limit} bytes")

    def on_body(self, data: bytes) -> None:
        """Take a part of the body."""
        self._unfinished = 0
        if self._whole or self._flaw:
            return
        self._answer.body += data
        if len(self._answer.body) > self._limit:
            self._refuse(Fault.OVERSIZED, f"the body is over the limit of {self._limit} bytes")

    def on_message_complete(self) -> None:
        """Finish the reply, unless it is an interim one."""
        if self._whole or self._answer.status >= 200:  # noqa: PLR2004 - the first final status
            self._whole = True
            return
        self._interims += 1
        self._answer, self._headed = ParsedReply(), False
        if self._interims > INTERIM_LIMIT:
            self._refuse(Fault.INVALID, f"more than {INTERIM_LIMIT} interim (1xx) answers")
