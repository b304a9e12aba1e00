"""How nemo-gym's servers ask each other (nemo_gym/server_utils.py of 0.4.0, whose client is aiohttp's)."""

import asyncio
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.cookies import SimpleCookie
from time import time
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic_core import to_json as encode

from gym_mocks.wire import HttpReply
from gym_mocks.wire.client import LocalClient
from gym_mocks.wire.messages import JSON

CookieValues = dict[str, str]

AGAIN_AFTER = 0.5  # seconds
# Where aiohttp asks on, and whether by the same request; elsewhere than at the same server this client does not ask.
REDIRECTS = {301: False, 302: False, 303: False, 307: True, 308: True}
MOST_REDIRECTS = 10

log = logging.getLogger("gym_mocks")


@dataclass(frozen=True)
class Peers:
    """The servers that an agent talks to: base URLs, without a last slash."""

    client: LocalClient
    resources: str
    model: str

    async def post(self, url: str, value: Any, cookies: CookieValues) -> HttpReply:
        """POST a value as nemo-gym's client does: `null` sends no body at all, and redirects are followed."""
        headers = {"cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())} if cookies else {}
        method, body, kind = "POST", orjson_like(value), JSON
        if value is None:
            body, kind = b"", "application/octet-stream"  # aiohttp's word for no body
        for _ in range(MOST_REDIRECTS):
            reply = await self._asked(method, url, body, headers | {"content-type": kind})
            to = _redirected(reply, url) if reply.status in REDIRECTS else None
            if to is None:
                return reply
            url = to
            if not REDIRECTS[reply.status]:
                method, body = "GET", b""
        raise RuntimeError(f"{url}: more than {MOST_REDIRECTS} redirects")

    async def _asked(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> HttpReply:
        """The reply to a request, which is sent again until one comes: what it does may then be done twice."""
        told = False
        while True:
            try:
                return await self.client.request(method, url, body, headers)
            except ConnectionError as error:
                if not told:
                    log.warning("%s %s is sent again until a reply comes, as nemo-gym would: %s", method, url, error)
                told = True
                await asyncio.sleep(AGAIN_AFTER)


def _redirected(reply: HttpReply, url: str) -> str | None:
    """Where a reply sends its client on the same server; None where it does not."""
    to = next((urljoin(url, location) for name, location in reply.headers if name == "location" and location), "")
    return to if urlsplit(to)[:2] == urlsplit(url)[:2] else None


def cookies_of(reply: HttpReply) -> CookieValues:
    """The cookies of a reply that are sent back: to an address and by plain HTTP, values with unusual letters in quotes."""
    given = {name: (value, until) for name, value, until in (_read(v) for n, v in reply.headers if n == "set-cookie")}
    return {name: value for name, (value, until) in given.items() if until > time()}


@lru_cache(1024)  # a session gets the same one with each reply for a second
def _read(header: str) -> tuple[str, str, float]:
    """A cookie's name, its value as it is sent back, and until when: never, if it is secure, or for a path or a domain."""
    (name, _, value), *attributes = (part.partition("=") for part in header.split(";"))
    said = {name.strip().lower(): value.strip() for name, _, value in attributes}
    foreign = bool({"secure", "domain"} & said.keys() or said.get("path", "").strip("/"))
    return name.strip(), _quoted(value.strip()), 0 if foreign else _until(said)


def _until(said: Mapping[str, str]) -> float:
    """When a cookie expires, in seconds since the epoch; `Max-Age` has the last word, as with aiohttp."""
    with suppress(ValueError):
        if "max-age" in said:
            return math.inf if int(said["max-age"]) > 0 else 0  # no rollout lasts so long
        if "expires" in said:
            return parsedate_to_datetime(said["expires"]).timestamp()
    return math.inf


def _quoted(value: str) -> str:
    return value if value.startswith('"') else SimpleCookie().value_encode(value)[1]


def orjson_like(value: Any) -> bytes:
    """JSON as orjson writes it: NaN is null, a lone surrogate an error.

    Raises:
        TypeError: orjson's refusals.
    """
    try:
        return encode(value, inf_nan_mode="null")
    except ValueError:
        raise TypeError("str is not valid UTF-8: surrogates not allowed") from None
