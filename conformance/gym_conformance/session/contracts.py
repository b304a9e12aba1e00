"""Session contracts: how a client opens a session, calls tools in it, has it verified, and closes it.

A check asks a `Session`, never which contract it is under.
"""

import json
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import SEED_SESSION, VERIFY, tool_path
from gym_conformance.contract.policy_output import UNNAMED
from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Exchange, Request

JSON_HEADERS = {"Content-Type": "application/json"}


class CookieHabit(Enum):
    """Whose habits with cookies a session has."""

    REPLACING = "an agent that replaces its cookies with those of each reply"  # simple_agent/app.py, 0.4.0
    KEEPING = "a client that keeps the cookies of the seed"  # Verifiers' NeMo Gym taskset, 0.3.0 and 0.4.0
    COLLECTING = "a client that keeps each cookie until it is replaced"  # RFC 6265: browsers, httpx, requests


class Session(Protocol):
    """One open session; `channel` is what its requests go over."""

    channel: Channel

    @property
    def id(self) -> str | None:
        """The session's id where a client can see it."""

    async def seed(self) -> Exchange:
        """Seed the session, again where it was seeded before."""

    async def call(self, call: Call) -> Exchange:
        """Run one tool call as the agent does."""

    async def call_raw(self, tool: str, body: bytes | None) -> Exchange:
        """Post these bytes, or no body at all, where the tool's calls go."""

    async def verify(self, response: Mapping[str, Any], **fields: Any) -> Exchange:
        """Have the response scored, with `fields` beside the row's own."""

    async def send(self, request: Request) -> Exchange:
        """Send any request within the session."""

    def shared(self) -> "Session":
        """The same session in the hands of a second client, which was given what the first one has now."""

    async def close(self) -> Exchange | None:
        """Release the session; None where the contract knows no request for it."""


class SessionContract(Protocol):
    """How sessions are made under one contract."""

    @property
    def name(self) -> str:
        """As the report names it."""

    def session(self, channel: Channel, row: Row, habit: CookieHabit = CookieHabit.REPLACING) -> Session:
        """A session that is not seeded yet."""


def post(path: str, body: Any, cookies: Cookies = NO_COOKIES) -> Request:
    """A POST of JSON. ASCII only, so that a lone surrogate travels as the escape that JSON allows."""
    return Request("POST", path, json.dumps(body, separators=(",", ":")).encode(), JSON_HEADERS, cookies)


Client = TypeVar("Client", bound="CookieSession")


class CookieSession:
    """A session that a signed cookie names."""

    def __init__(self, channel: Channel, row: Row, habit: CookieHabit) -> None:
        self.channel = channel
        self.row = row
        self.habit = habit
        self.cookies = NO_COOKIES
        self.nonce = uuid4().bytes

    @property
    def id(self) -> str | None:
        """The id inside the cookie, where Starlette signed it."""
        return self.cookies.session_id

    async def seed(self) -> Exchange:
        """`POST /seed_session` with the whole row; the cookies of the first are the session's from now on."""
        request = Request("POST", SEED_SESSION, self.row.body, JSON_HEADERS, self.cookies)
        return self._seeded(await self.channel.send(request))

    def _seeded(self, exchange: Exchange) -> Exchange:
        if self.habit is CookieHabit.REPLACING or not self.cookies:
            self.cookies = exchange.received
        return exchange

    async def call(self, call: Call) -> Exchange:
        """`POST /<tool>` with the arguments as body."""
        return await self.send(post(tool_path(call.name), call.arguments))

    async def call_raw(self, tool: str, body: bytes | None) -> Exchange:
        """`POST /<tool>` with any body, declared as JSON, or with none."""
        return await self.send(Request("POST", tool_path(tool), body, {} if body is None else JSON_HEADERS))

    async def verify(self, response: Mapping[str, Any], **fields: Any) -> Exchange:
        """`POST /verify` with row | response, which gets an id if it has none."""
        response = self._named(response)
        if fields or "response" in self.row.data:
            return await self.send(post(VERIFY, {**self.row.data, **fields, "response": response}))
        # the row, which is written once, but for its last brace
        written = json.dumps(response, separators=(",", ":")).encode()
        body = b'%b,"response":%b}' % (self.row.body[:-1], written)
        return await self.send(Request("POST", VERIFY, body, JSON_HEADERS))

    def _named(self, response: Mapping[str, Any]) -> Mapping[str, Any]:
        """An id that no other response has, as a model server gives; the same for what is sent again in this session.

        A server may keep the reward of a response, to answer as before where it is sent again.
        """
        if response.get("id") != UNNAMED:
            return response
        digest = blake2b(json.dumps(response).encode(), digest_size=16, key=self.nonce)
        return {**response, "id": f"resp_{digest.hexdigest()}"}

    def shared(self) -> "CookieSession":
        """Another client with the cookies of this one."""
        return self._known_to(CookieSession(self.channel, self.row, self.habit))

    def _known_to(self, other: Client) -> Client:
        """What another client of this session has been given of it."""
        other.cookies, other.nonce = self.cookies, self.nonce
        return other

    async def close(self) -> Exchange | None:
        """Cookie sessions have no end."""
        return None

    async def send(self, request: Request) -> Exchange:
        """Send any request with the session's cookies, and treat the reply's as the client does."""
        exchange = await self.channel.send(
            Request(request.method, request.path, request.body, request.headers, self.cookies)
        )
        if self.habit is CookieHabit.REPLACING:
            self.cookies = exchange.received
        if self.habit is CookieHabit.COLLECTING:
            self.cookies = self.cookies.updated(exchange.received)
        return exchange


class CookieContract:
    """The contract of every nemo-gym version: a signed session cookie, set by `/seed_session`."""

    name = "cookie"

    def session(self, channel: Channel, row: Row, habit: CookieHabit = CookieHabit.REPLACING) -> CookieSession:
        """A session that is not seeded yet and has no cookie."""
        return CookieSession(channel, row, habit)
