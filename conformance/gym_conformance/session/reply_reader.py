"""Reading answers, with no I/O: bytes in, an answer or a flaw out.

llhttp, by httptools, knows the grammar and is strict; nemo-gym's own client (aiohttp) uses it leniently. This
file knows when an answer is whole, and what it may weigh.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import httptools

from gym_conformance.session.server_fault import PARTIAL_LIMIT, Fault

HEAD_LIMIT = 64 * 1024  # bytes of header fields, or of any one thing unfinished: servers refuse far less
INTERIM_LIMIT = 32  # 1xx answers before the real one: a flood of them would keep the loop busy until the deadline


@dataclass(slots=True)
class ParsedReply:
    """A response as it came off the wire.

    Attributes:
        headers: Names, in lower case, and values, in the order sent, as Latin-1, which any bytes are: a guess may not be
            sent back as it came. Trailers are left out.
        body: Free of its transfer coding, still in its content coding.
        reusable: Whether the connection may carry another exchange.
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
    """A header's name; a server sends few different ones."""
    return name.lower().decode("latin-1")


class Flaw(NamedTuple):
    """Why there is no answer: the fault and one line of detail."""

    fault: Fault
    detail: str


class Reader:
    """Reads the answers of one connection, one at a time, and is useless after a flaw.

    Args:
        limit: How many bytes a body may have, as sent.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parser = httptools.HttpResponseParser(self)
        self._answer = ParsedReply()
        self.expect("GET")

    def expect(self, method: str) -> None:
        """Begin to wait for the answer to a request of this method; the last one is let go of."""
        self.seen = b""  # the answer's first bytes, at most PARTIAL_LIMIT
        self._method = method
        self._interims = 0
        self._weight = 0  # bytes of header fields
        self._unfinished = 0  # bytes since the parser last made something of them
        self._headed = False
        self._whole = False
        self._flaw: Flaw | None = None

    def feed(self, data: bytes) -> ParsedReply | Flaw | None:
        """Take in bytes; None while the answer is unfinished."""
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
        """Take in the end of the stream, which is also the end of an answer of no stated length."""
        answer = self._answer
        if self._headed and not answer.values("content-length") and not self._chunked():
            return answer
        return Flaw(Fault.BROKEN, f"closed, {self.progress()}")

    def let_go(self) -> None:
        """Hold no answer any longer: an idle connection would keep its body."""
        self._answer = ParsedReply()

    def progress(self) -> str:
        """How far the answer has come."""
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

    # httptools' side: an exception raised in here would be wrapped in its own, so flaws are noted instead

    def on_message_begin(self) -> None:
        """Begin an answer: one after the whole one is a wrong content-length, most likely (RFC 9112, 6.3)."""
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
        """Close the head, and know by it how much is to come."""
        if self._whole:
            return
        self._headed, self._unfinished = True, 0
        answer, parser = self._answer, self._parser
        answer.status = parser.get_status_code()
        answer.reusable = parser.should_keep_alive()
        if self._method == "HEAD" and answer.status >= 200:  # noqa: PLR2004 - the first final status
            self._whole, answer.reusable = True, False  # llhttp cannot be told, and waits for the body
        elif any(int(length) > self._limit for length in answer.values("content-length")):
            self._refuse(Fault.OVERSIZED, f"content-length is over the limit of {self._limit} bytes")

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._unfinished = 0
        if self._whole or self._flaw:
            return
        self._answer.body += data
        if len(self._answer.body) > self._limit:
            self._refuse(Fault.OVERSIZED, f"the body is over the limit of {self._limit} bytes")

    def on_message_complete(self) -> None:
        """Close the answer, unless it is an interim one."""
        if self._whole or self._answer.status >= 200:  # noqa: PLR2004 - the first final status
            self._whole = True
            return
        self._interims += 1
        self._answer, self._headed = ParsedReply(), False
        if self._interims > INTERIM_LIMIT:
            self._refuse(Fault.INVALID, f"more than {INTERIM_LIMIT} interim (1xx) answers")
