"""One request and what came back, as a value."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies, received
from gym_conformance.documents import DEEPEST, bulk, parsed_bytes, too_deep
from gym_conformance.session.server_fault import Fault

#: Of an integer, its sign counted.
_DIGITS = 300


@dataclass(frozen=True)
class Request:
    """What was sent. `cookies` stand apart from `headers`, for a reproduction must say where they came from.

    `borrowed` says of headers whose values a reply gave, by the number of its exchange, for the same reason.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Cookies = NO_COOKIES
    borrowed: Mapping[str, int] = field(default_factory=dict)

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return len(self.body or b"")

    most_weight = weight


@dataclass(frozen=True)
class Reply:
    """What came back. `elapsed` is in seconds, from before the connection to the last byte."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    elapsed: float

    def header(self, name: str) -> str | None:
        """The first header of that (lower-case) name."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def set_cookies(self) -> tuple[str, ...]:
        """The raw `Set-Cookie` headers, in order."""
        return tuple([value for key, value in self.headers if key == "set-cookie"])

    @property
    def text(self) -> str:
        """The body for showing and comparing; bytes that are not UTF-8 become U+FFFD."""
        return self.body.decode(errors="replace")

    @property
    def weight(self) -> int:
        """About how many bytes it takes with what was made of it: its text, and its value once that was asked for."""
        return self._text_weight if "_parsed" not in self.__dict__ else self.most_weight

    @property
    def most_weight(self) -> int:
        """About how many bytes it may come to."""
        return self._text_weight + parsed_bytes(self.body)

    @property
    def _text_weight(self) -> int:
        # one character beyond the BMP makes all of a text four bytes wide
        return len(self.body) * (2 if self.body.isascii() else 5)

    def beginning(self, most: int) -> "Reply":
        """The same with no more than so many bytes of its body, and nothing made of them yet."""
        return replace(self, body=self.body[:most])

    @property
    def is_json(self) -> bool:
        """Whether the body parses as JSON (RFC 8259: no NaN, no Infinity)."""
        return not self._parsed[1]

    def json(self) -> Any:
        """The parsed body.

        Raises:
            ValueError: the body is not JSON, not UTF-8, nested too deep to read, or holds the NaN and Infinity that
                JSON has not.
        """
        value, flaw = self._parsed
        if flaw:
            raise ValueError(flaw)
        return value

    @cached_property
    def _parsed(self) -> tuple[Any, str]:
        """The value, or why there is none; each body is parsed only once."""
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
        """The parsed body, its text where it is not JSON."""
        try:
            return self.json()
        except ValueError:
            return self.text

    @property
    def fields(self) -> dict[str, Any]:
        """The members of the JSON object that it is; none where it is none."""
        return self.said if isinstance(self.said, dict) else {}


@dataclass(frozen=True)
class Exchange:
    """A request and its reply, or the fault that came instead. `number` counts from 1 within one trial.

    `group` are the requests that were sent at the same time because the server answers this one only with them.
    """

    number: int
    request: Request
    reply: Reply | None = None
    fault: str = ""
    group: tuple[Request, ...] = ()

    @property
    def hung(self) -> bool:
        """Whether no answer came in time."""
        return self.fault.startswith(Fault.HANG)

    @property
    def received(self) -> Cookies:
        """The cookies that a client holds when it keeps those of this reply and no others."""
        return received(self.reply.set_cookies if self.reply else (), self.number)

    def __str__(self) -> str:
        outcome = self.fault or (self.reply and self.reply.status)
        return f"#{self.number} {self.request.method} {self.request.path} -> {outcome}"


def reply_of(exchange: Exchange) -> Reply:
    """The reply of an exchange that had no fault, as every exchange that `Channel.send` returns."""
    if exchange.reply is None:
        raise AssertionError(f"no reply in {exchange}")
    return exchange.reply


def _integer(digits: str) -> int | float:
    """The number; beyond a double's range it is what a double makes of it, as JavaScript reads it."""
    if len(digits) <= _DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


#: Made once, since `json.loads` makes one for each text.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer)
