"""How nemo-gym's servers ask each other (nemo_gym/server_utils.py of 0.4.0, whose client is aiohttp's)."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
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
    set_cookies = (value.split(";") for name, value in reply.headers if name == "set-cookie")
    pairs = ([part.partition("=") for part in parts] for parts in set_cookies)
    given = {name.strip(): (value.strip(), rest) for (name, _, value), *rest in pairs}
    return {name: _quoted(value) for name, (value, rest) in given.items() if _is_sent_back(rest)}


def _is_sent_back(attributes: list[tuple[str, str, str]]) -> bool:
    """Whether aiohttp would: no cookie that is secure, has expired or is for a path or a domain."""
    said = {name.strip().lower(): value.strip() for name, _, value in attributes}
    if {"secure", "domain"} & said.keys() or said.get("path", "").strip("/"):
        return False
    with suppress(ValueError):
        if "max-age" in said:
            return int(said["max-age"]) > 0
        if "expires" in said:
            return parsedate_to_datetime(said["expires"]).timestamp() > time()
    return True


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
