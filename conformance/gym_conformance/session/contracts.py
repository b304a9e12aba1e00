"""Session contracts: how a client opens a session, calls tools in it, has it verified, and closes it.

Checks use a `Session` without knowing which contract it follows.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
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
    """Which client's treatment of cookies a session imitates."""

    REPLACING = "an agent that replaces its cookies with those of each reply"  # simple_agent/app.py, 0.4.0
    KEEPING = "a client that keeps the cookies of the seed"  # Verifiers' NeMo Gym taskset, 0.3.0 and 0.4.0
    COLLECTING = "a client that keeps each cookie until it is replaced"  # RFC 6265: browsers, httpx, requests


class Session(Protocol):
    """One open session; `channel` sends its requests."""

    channel: Channel

    @property
    def id(self) -> str | None:
        """The session's id, if a client can see it."""

    async def seed(self) -> Exchange:
        """Seed the session; a session that was seeded already is seeded again."""

    async def call(self, call: Call) -> Exchange:
        """Run one tool call as the agent does."""

    async def call_raw(self, tool: str, body: bytes | None) -> Exchange:
        """Post these bytes, or no body, to the tool's route."""

    async def verify(self, response: Mapping[str, Any], **fields: Any) -> Exchange:
        """Have the response scored; `fields` are sent in addition to those of the row."""

    async def send(self, request: Request) -> Exchange:
        """Send any request in the session."""

    def shared(self) -> "Session":
        """The same session for a second client, which has what the first one has now."""

    async def close(self) -> Exchange | None:
        """Close the session; None if the contract has no request for that."""


class SessionContract(Protocol):
    """How sessions work under one contract."""

    @property
    def name(self) -> str:
        """The contract's name, for reports."""

    def session(self, channel: Channel, row: Row, habit: CookieHabit = CookieHabit.REPLACING) -> Session:
        """A new session, not yet seeded."""


def post(path: str, body: Any, cookies: Cookies = NO_COOKIES) -> Request:
    """A POST of JSON, in ASCII only, so that a lone surrogate is sent as the escape that JSON allows."""
    return Request("POST", path, json.dumps(body, separators=(",", ":")).encode(), JSON_HEADERS, cookies)


Client = TypeVar("Client", bound="CookieSession")


class CookieSession:
    """A session that is identified by a signed cookie."""

    def __init__(self, channel: Channel, row: Row, habit: CookieHabit) -> None:
        self.channel = channel
        self.row = row
        self.habit = habit
        self.cookies = NO_COOKIES
        self.nonce = uuid4().bytes

    @property
    def id(self) -> str | None:
        """The id inside the cookie, if Starlette signed it."""
        return self.cookies.session_id

    async def seed(self) -> Exchange:
        """`POST /seed_session` with the whole row; the cookies of the first reply are the session's from then on."""
        request = Request("POST", SEED_SESSION, b"}", JSON_HEADERS, self.cookies, row=self.row.opening)
        return self._seeded(await self.channel.send(request))

    def _seeded(self, exchange: Exchange) -> Exchange:
        if self.habit is CookieHabit.REPLACING or not self.cookies:
            self.cookies = exchange.received
        return exchange

    async def call(self, call: Call) -> Exchange:
        """`POST /<tool>` with the arguments as the body."""
        return await self.send(post(tool_path(call.name), call.arguments))

    async def call_raw(self, tool: str, body: bytes | None) -> Exchange:
        """`POST /<tool>` with any body, declared as JSON, or with none."""
        return await self.send(Request("POST", tool_path(tool), body, {} if body is None else JSON_HEADERS))

    async def verify(self, response: Mapping[str, Any], **fields: Any) -> Exchange:
        """`POST /verify` with row | response; the response gets an id if it has none."""
        response = self._named(response)
        added = {**fields, "response": response}
        if not added.keys().isdisjoint(self.row.data):
            return await self.send(post(VERIFY, {**self.row.data, **added}))
        written = json.dumps(added, separators=(",", ":")).encode()
        return await self.send(Request("POST", VERIFY, b"," + written[1:], JSON_HEADERS, row=self.row.opening))

    def _named(self, response: Mapping[str, Any]) -> Mapping[str, Any]:
        """The response with a unique id, as a model server gives; within a session, the same response keeps its id.

        A server may store the reward under that id, to give the same answer when the response is sent again.
        """
        if response.get("id") != UNNAMED:
            return response
        digest = blake2b(json.dumps(response).encode(), digest_size=16, key=self.nonce)
        return {**response, "id": f"resp_{digest.hexdigest()}"}

    def shared(self) -> "CookieSession":
        """A second client with the same cookies."""
        return self._known_to(CookieSession(self.channel, self.row, self.habit))

    def _known_to(self, other: Client) -> Client:
        """The cookies of this session that another client of it has."""
        other.cookies, other.nonce = self.cookies, self.nonce
        return other

    async def close(self) -> Exchange | None:
        """Nothing: cookie sessions have no close request."""
        return None

    async def send(self, request: Request) -> Exchange:
        """Send any request with the session's cookies, and treat those of the reply as the client does."""
        exchange = await self.channel.send(replace(request, cookies=self.cookies))
        if self.habit is CookieHabit.REPLACING:
            self.cookies = exchange.received
        if self.habit is CookieHabit.COLLECTING:
            self.cookies = self.cookies.updated(exchange.received)
        return exchange


class CookieContract:
    """The contract of every nemo-gym version: a signed session cookie, set by `/seed_session`."""

    name = "cookie"

    def session(self, channel: Channel, row: Row, habit: CookieHabit = CookieHabit.REPLACING) -> CookieSession:
        """A new session, not yet seeded, without a cookie."""
        return CookieSession(channel, row, habit)
