import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json as encode

JSON = "application/json"

NOT_JSON = (b"NaN", b"Infinity")


def to_json(value: Any) -> bytes:
    """Compact UTF-8 JSON; a value that UTF-8 cannot hold (a lone surrogate) is escaped instead of refused.

    nemo-gym's own replies cannot carry a lone surrogate (Starlette encodes without escapes), which turns
    every such rollout into a 500; JSON can, so this does.

    Raises:
        ValueError: the value holds NaN or an infinity, which JSON cannot carry.
    """
    try:
        encoded = encode(value)
    except ValueError:
        encoded = b""
    if encoded and not any(word in encoded for word in NOT_JSON):
        return encoded
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request, its body read whole.

    Attributes:
        method: upper case.
        path: decoded, without the query.
        headers: lower-case names; repeated `cookie` headers joined, of other repeated headers the last.
        body: the raw bytes.
        session_id: set by a server that keeps sessions, otherwise empty.
        query: the raw query string, without its question mark.
    """

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    session_id: str = ""
    query: str = ""

    def within(self, session_id: str) -> "HttpRequest":
        """The same request with the id of its session."""
        return HttpRequest(self.method, self.path, self.headers, self.body, session_id, self.query)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One HTTP reply: `body` is bytes, or an iterator of chunks for a stream."""

    status: int
    body: bytes | AsyncIterator[bytes] = b""
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> "HttpReply":
        """A reply whose body is `value` as JSON."""
        return cls(status, to_json(value), (("content-type", JSON), *headers))

    def plus(self, *headers: tuple[str, str]) -> "HttpReply":
        """The same reply with more headers."""
        return HttpReply(self.status, self.body, (*self.headers, *headers))
