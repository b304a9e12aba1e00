"""One request and its reply, as a value."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from gym_conformance.contract.endpoints import OPENING
from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies, received
from gym_conformance.documents import DEEPEST, bulk, parsed_bytes, too_deep
from gym_conformance.session.server_fault import Fault

#: The most characters of an integer, with its sign, that are parsed as one.
_DIGITS = 300

#: Bytes of a reply that are still shown if the record is kept only for its requests.
_BEGINNING = 4096


@dataclass(frozen=True)
class Request:
    """A request. `cookies` are kept apart from `headers` because a reproduction must say where they came from.

    For the same reason `borrowed` gives, for headers whose values came from a reply, the number of its exchange. The
    body is `row`, the beginning that all requests with that row share, and what was `written` after it. `twin` is
    another request with the same large body.
    """

    method: str
    path: str
    written: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Cookies = NO_COOKIES
    borrowed: Mapping[str, int] = field(default_factory=dict)
    row: bytes = field(default=b"", repr=False)
    twin: "Request | None" = field(default=None, compare=False, repr=False)

    @property
    def body(self) -> bytes | None:
        """The body; None if there is none."""
        return self.written if self.written is None else self.row + self.written

    @property
    def size(self) -> int:
        """Bytes in the body, which need not be put together to count them."""
        return len(self.row) + len(self.written or b"")

    @property
    def own(self) -> tuple[bytes, bytes]:
        """What a twin must have in common with it."""
        return self.row, self.written or b""

    @property
    def weight(self) -> int:
        """Approximate size in memory, in bytes, without the row, which is there anyway."""
        return 0 if self.twin else len(self.written or b"")

    most_weight = weight

    def sharing(self, twin: "Request") -> "Request":
        """The same request, with the twin's body."""
        return replace(self, row=twin.row, written=twin.written, twin=twin)


@dataclass(frozen=True)
class Reply:
    """A reply. `elapsed` is in seconds, from before the connection to the last byte.

    `twin` is another reply with the same large body; it decodes and parses the body for both.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    elapsed: float
    twin: "Reply | None" = field(default=None, compare=False, repr=False)

    @property
    def own(self) -> bytes:
        """What a twin must have in common with it."""
        return self.body

    def sharing(self, twin: "Reply") -> "Reply":
        """The same reply, with the twin's body."""
        return replace(self, body=twin.body, twin=twin)

    def header(self, name: str) -> str | None:
        """The first header with this (lower-case) name."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def set_cookies(self) -> tuple[str, ...]:
        """The raw `Set-Cookie` headers, in order."""
        return tuple([value for key, value in self.headers if key == "set-cookie"])

    @cached_property
    def text(self) -> str:
        """The body as text, for display and comparison; bytes that are not UTF-8 become U+FFFD."""
        return self.twin.text if self.twin else self.body.decode(errors="replace")

    @property
    def weight(self) -> int:
        """Approximate size in memory, in bytes, with the text and the value if they exist by now."""
        if self.twin:
            return 0
        made = self.__dict__
        text = self._text_weight if "text" in made else 0
        value = self._value_weight if "_parsed" in made and self.is_json else 0
        return len(self.body) + text + value

    @property
    def most_weight(self) -> int:
        """Approximate size in memory that it may reach, in bytes."""
        return 0 if self.twin else len(self.body) + self._text_weight + self._value_weight

    @cached_property
    def _text_weight(self) -> int:
        return len(self.body) * _width(
            ascii_only=self.body.isascii(), beyond_bmp=any(lead in self.body for lead in range(0xF0, 0xF5))
        )

    @cached_property
    def _value_weight(self) -> int:
        escaped = len(self.body) * _width(
            ascii_only=b"\\u" not in self.body, beyond_bmp=b"\\ud" in self.body or b"\\uD" in self.body
        )
        return max(self._text_weight, escaped) + parsed_bytes(self.body)

    def beginning(self, most: int) -> "Reply":
        """A copy with at most `most` bytes of the body, not yet decoded or parsed."""
        return replace(self, body=self.body[:most], twin=None)

    @property
    def is_json(self) -> bool:
        """Whether the body parses as JSON (RFC 8259: no NaN, no Infinity)."""
        return not self._parsed[1]

    def json(self) -> Any:
        """The parsed body.

        Raises:
            ValueError: the body is not JSON, not UTF-8, nested too deep to read, or contains NaN or Infinity, which are
                not JSON.
        """
        value, flaw = self._parsed
        if flaw:
            raise ValueError(flaw)
        return value

    @cached_property
    def _parsed(self) -> tuple[Any, str]:
        """The value, or the reason why there is none; each body is parsed only once."""
        if self.twin:
            return self.twin._parsed  # noqa: SLF001 - of the same class
        if too_much := bulk(self.body):
            return None, too_much
        try:
            value = _DECODER.decode(self.body.decode())
        except RecursionError:
            return None, "nested too deep to read"
        except ValueError as error:
            return None, str(error) or "not JSON"
        deep = self.body.count(b"[") + self.body.count(b"{") > DEEPEST and too_deep(value)
        return (None, "nested too deep to read") if deep else (value, "")

    @property
    def said(self) -> Any:
        """The parsed body; its text if it is not JSON."""
        try:
            return self.json()
        except ValueError:
            return self.text

    @property
    def fields(self) -> dict[str, Any]:
        """The members of a JSON object; empty if the body is anything else."""
        return self.said if isinstance(self.said, dict) else {}


@dataclass(frozen=True)
class Exchange:
    """A request and its reply, or the fault that occurred instead. `number` counts from 1 within one trial.

    `group`: requests that were sent at the same time because the server answers this one only together with them.
    """

    number: int
    request: Request
    reply: Reply | None = None
    fault: str = ""
    group: tuple[Request, ...] = ()

    def light(self) -> "Exchange":
        """A copy with only the beginning of its reply: a reproduction needs the request, and the reply's cookies."""
        if self.reply is None or self.reply_bytes <= _BEGINNING:
            return self
        return replace(self, reply=self.reply.beginning(_BEGINNING))

    @property
    def reply_bytes(self) -> int:
        """Bytes in the reply's body; 0 if there is no reply."""
        return len(self.reply.body) if self.reply else 0

    @property
    def hung(self) -> bool:
        """Whether no reply came in time."""
        return self.fault.startswith(Fault.HANG)

    @property
    def received(self) -> Cookies:
        """The cookies of a client that keeps those of this reply, and no others."""
        return received(self.reply.set_cookies if self.reply else (), self.number)

    def __str__(self) -> str:
        outcome = self.fault or (self.reply and self.reply.status)
        return f"#{self.number} {self.request.method} {self.request.path} -> {outcome}"


def reply_of(exchange: Exchange) -> Reply:
    """The reply of an exchange without a fault; `Channel.send` only returns such exchanges."""
    if exchange.reply is None:
        raise AssertionError(f"no reply in {exchange}")
    return exchange.reply


def _width(*, ascii_only: bool, beyond_bmp: bool) -> int:
    """Bytes per character of a text: its widest character decides for all of them."""
    return 1 if ascii_only else 4 if beyond_bmp else 2


def _integer(digits: str) -> int | float:
    """The number; beyond the range of a double it becomes what a double makes of it, as in JavaScript."""
    if len(digits) <= _DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


#: Made once, because `json.loads` makes one for each text if it gets these arguments.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer)


def sessions_with(replies: Collection[Reply], exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges of the sessions in which one of these very replies came, from the seed to that reply.

    If a reply is not among them, all exchanges. A session begins with its seed, and sessions do not overlap.
    """
    kept, session, missing = list[Exchange](), list[Exchange](), set(map(id, replies))
    for exchange in exchanges:
        session = [exchange] if exchange.request.path in OPENING else [*session, exchange]
        if id(exchange.reply) in missing:
            missing.remove(id(exchange.reply))
            kept, session = [*kept, *session], []
    return list(exchanges) if missing else kept
