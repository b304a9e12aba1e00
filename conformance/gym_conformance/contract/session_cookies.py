"""Session cookies as values: what a reply sets, what a client sends back, and which session it identifies.

Source of the rules: Starlette's SessionMiddleware, which every nemo-gym server uses (`setup_session_middleware` in
nemo_gym/server_utils.py), and RFC 6265.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from gym_conformance.contract.endpoints import SESSION_ID_KEY

#: A `Max-Age` that expires at once (RFC 6265, section 5.2.2).
_PAST: Final = re.compile(r"-[0-9]+|0+")
_MAY_EXPIRE: Final = re.compile(r"=\s*[-0]|expires", re.IGNORECASE)

#: The last moment that no clock shows any more: an `Expires` before it means what `Max-Age=0` does.
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SetCookie:
    """One `Set-Cookie` header. `attributes` has lower-case names; a bare flag such as `secure` has the value ''."""

    name: str
    value: str
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def expires_at_once(self) -> bool:
        """Whether the header deletes the cookie instead of setting it."""
        until = self.expires
        return _PAST.fullmatch(self.attributes.get("max-age", "")) is not None or (
            until is not None and until < _LONG_AGO
        )

    @property
    def max_age(self) -> float | None:
        """Its `Max-Age` in seconds; None if it has none that is positive."""
        max_age = self.attributes.get("max-age", "")
        return float(max_age) if max_age.isascii() and max_age.isdigit() else None

    @property
    def expires(self) -> datetime | None:
        """The date of its `Expires`; None if it has none, or a `Max-Age`, which comes first (RFC 6265, section 5.3)."""
        return None if self.max_age is not None else read_date(self.attributes.get("expires", ""))

    def seconds(self, now: datetime) -> float:
        """How long clients keep it from now on, in seconds; infinity if it does not say."""
        if self.max_age is not None:
            return self.max_age
        return math.inf if self.expires is None else (self.expires - now).total_seconds()


@dataclass(frozen=True)
class Cookies:
    """The cookies that a client sends. `origin` is the index of the exchange that set them, None for made-up ones."""

    pairs: tuple[tuple[str, str], ...] = ()
    origin: int | None = None

    def __bool__(self) -> bool:
        """Whether there is any cookie."""
        return bool(self.pairs)

    @property
    def header(self) -> str:
        """The `Cookie` request header; '' if there is nothing to send."""
        return "; ".join([f"{name}={value}" for name, value in self.pairs])

    @property
    def session_id(self) -> str | None:
        """The session's id if the cookie is readable (Starlette signs but does not encrypt it), else None."""
        for _, value in self.pairs:
            if (session_id := read_session_id(value)) is not None:
                return session_id
        return None

    @property
    def session(self) -> tuple[str, str]:
        """The cookie that identifies the session, else the first: a proxy may set its own cookies."""
        return next((pair for pair in self.pairs if read_session_id(pair[1]) is not None), self.pairs[0])

    def updated(self, received: "Cookies") -> "Cookies":
        """These cookies after a reply that set others: each is kept until it is set again."""
        pairs = dict(self.pairs) | dict(received.pairs)
        if not received or len(pairs) > len(received.pairs):
            return Cookies(tuple(pairs.items()), None if received else self.origin)
        return received

    def with_value(self, value: str) -> "Cookies":
        """The same cookie names, each with another value, as a forger would send."""
        return Cookies(tuple((name, value) for name, _ in self.pairs))


NO_COOKIES: Final = Cookies()


def parse_set_cookie(header: str) -> SetCookie:
    """Read one `Set-Cookie` header as user agents do (RFC 6265, section 5.2): leniently, without failing."""
    pair, *attributes = header.split(";")
    name, _, value = pair.partition("=")
    parsed = (attribute.partition("=") for attribute in attributes)
    return SetCookie(
        name.strip(),
        value.strip().strip('"'),
        {key.strip().lower(): setting.strip() for key, _, setting in parsed},
    )


def read_date(text: str) -> datetime | None:
    """A date as HTTP writes it, in any of its forms; None for any other text."""
    try:
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def received(headers: Iterable[str], origin: int | None = None) -> Cookies:
    """The cookies that a client holds after a reply with these `Set-Cookie` headers, and no others."""
    kept: dict[str, str] = {}
    for header in headers:
        pair, _, attributes = header.partition(";")
        name, _, value = pair.partition("=")
        # hardly any server sets Max-Age to zero, or Expires, so the attributes are only read in that case
        if _MAY_EXPIRE.search(attributes) and parse_set_cookie(header).expires_at_once:
            kept.pop(name.strip(), None)
        else:
            kept[name.strip()] = value.strip().strip('"')
    return Cookies(tuple(kept.items()), origin if kept else None)


def read_session_id(value: str) -> str | None:
    """The id inside one of Starlette's signed cookies, `base64(json).timestamp.signature`; None for any other."""
    try:
        payload = json.loads(base64.b64decode(value.split(".", maxsplit=1)[0], validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    session_id = payload.get(SESSION_ID_KEY) if isinstance(payload, dict) else None
    return session_id if isinstance(session_id, str) else None


def payload_of(session_id: str) -> str:
    """The unsigned first part of a cookie for this session."""
    return base64.b64encode(json.dumps({SESSION_ID_KEY: session_id}).encode()).decode()
