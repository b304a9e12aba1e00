"""Twins that lose, swap or give away sessions by their cookies."""

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import uuid4

from itsdangerous import BadSignature, TimestampSigner

from gym_mocks.reference import FunctionTool, ReferenceServer, SignedCookie, StoredSession
from gym_mocks.reference.stockroom import Stock
from gym_mocks.wire import App, HttpReply, HttpRequest
from tests.twins.innocent import RefusesStrangers, SingleTurn
from tests.twins.seed import NAME
from tests.twins.twin import Twin, dataset, twin, unrecorded


class CookieOnce(ReferenceServer):
    """nemo-gym 0.2.0: the cookie is set on the first reply only."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if session_id := self.cookie.read(request.headers.get("cookie", "")):
            return await App.dispatch(self, replace(request, session_id=session_id))
        return await super().dispatch(request)


class GradesOnce(SingleTurn, CookieOnce):
    """Sets the cookie at the seed, after which nothing comes but verify."""


def without_tools() -> Any:
    """Rows that declare no tool, and no rollouts."""
    return replace(dataset(lambda row: row["responses_create_params"]["tools"].clear()), rollouts=())


class CookieLostOnOneWay(ReferenceServer):
    """What lacks an amount is answered before the cookie is set."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if request.path != "/add_stock" or request.body[:1] != b"{" or b'"amount"' in request.body:
            return reply
        return replace(reply, headers=tuple(each for each in reply.headers if each[0].lower() != "set-cookie"))


class CookieLostOnErrors(ReferenceServer):
    """The exception handlers sit outside the session."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if reply.status < 400:
            return reply
        return replace(reply, headers=tuple(pair for pair in reply.headers if pair[0] != "set-cookie"))


class RefusedSeedSetsNone(ReferenceServer):
    """A seed that is refused sets no cookie: there the rollout ends."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if reply.status < 400 or request.path != "/seed_session":
            return reply
        return replace(reply, headers=tuple(pair for pair in reply.headers if pair[0] != "set-cookie"))


class ReadsWhenItExpires(ReferenceServer):
    """Behind the signature stands when it expires, which is read before the signature is looked at, as in Litestar's cookies."""

    EXPIRES = ".20991231235959"

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        header = request.headers.get("cookie", "")
        if re.search(r"\.\w{14}$", header) and not header[-14:].isdigit():
            raise ValueError(header[-14:])
        signed = header.removesuffix(self.EXPIRES)
        reply = await super().dispatch(replace(request, headers={**request.headers, "cookie": signed}))
        written = tuple(
            (name, value.replace("; ", f"{self.EXPIRES}; ", 1) if name == "set-cookie" else value)
            for name, value in reply.headers
        )
        return replace(reply, headers=written)


class StateInCookie(ReferenceServer):
    """The state travels in the cookie, as in `request.session["stock"] = ...`."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        session_id = self.cookie.read(request.headers.get("cookie", "")) or str(uuid4())
        before = self._state(request)
        if before is not None and (session := self.sessions.get(session_id)):
            session.state = before
        reply = await App.dispatch(self, replace(request, session_id=session_id))
        after = self.sessions.get(session_id)
        return reply.plus(("set-cookie", self._cookie(session_id, after.state if after else Stock())))

    def _cookie(self, session_id: str, stock: Stock) -> str:
        pieces = [[*key, count] for key, count in stock.pieces.items()]
        content = {"session_id": session_id, "pieces": pieces, "reads": stock.reads}
        signed = TimestampSigner(self.cookie.key).sign(b64encode(json.dumps(content).encode()))
        return f"{self.cookie.name}={signed.decode()}; path=/"

    def _state(self, request: HttpRequest) -> Stock | None:
        header = request.headers.get("cookie", "")
        if self.cookie.read(header) is None:
            return None
        value = header.partition(f"{self.cookie.name}=")[2].partition(";")[0]
        content = json.loads(b64decode(value.partition(".")[0]))
        pieces: Any = {(item, category, place): count for item, category, place, count in content["pieces"]}
        return Stock(Counter(pieces), content["reads"])


class NewIdForEachReply(ReferenceServer):
    """The session moves to a new id with each reply, as after a log-in."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        old = self.cookie.read(request.headers.get("cookie", "")) or str(uuid4())
        reply = await App.dispatch(self, replace(request, session_id=old))
        if request.path == "/seed_session":
            return reply.plus(("set-cookie", self.cookie.write(old)))
        new = str(uuid4())
        if session := self.sessions.get(old):
            self.sessions.put(new, session)
            self.sessions.put(old, StoredSession(self.new_state({})))
        return reply.plus(("set-cookie", self.cookie.write(new)))


class ToolsSetNone(ReferenceServer):
    """A call that is taken sets no cookie."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if reply.status != 200 or request.path in {"/seed_session", "/verify"}:
            return reply
        return replace(reply, headers=tuple(pair for pair in reply.headers if pair[0] != "set-cookie"))


class CrashesOnBadSignature(SignedCookie):
    def read(self, header: str) -> str | None:
        session_id = super().read(header)
        if session_id is None and f"{self.name}=" in header:
            raise BadSignature("the cookie's signature does not match")
        return session_id


class ChecksNoSignature(SignedCookie):
    def read(self, header: str) -> str | None:
        value = header.partition(f"{self.name}=")[2].partition(";")[0]
        try:
            session_id: str = json.loads(b64decode(value.partition(".")[0]))["session_id"]
        except (ValueError, KeyError):
            return None
        return session_id


class AdoptsPlainIds(SignedCookie):
    def read(self, header: str) -> str | None:
        return super().read(header) or header.partition(f"{self.name}=")[2].partition(";")[0]


class ReadsFirstCookie(SignedCookie):
    def read(self, header: str) -> str | None:
        return super().read(f"{self.name}={header.partition(';')[0].partition('=')[2]}")


class ToolNeedsSession(ReferenceServer):
    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        if self.sessions.get(session_id) is None:
            raise KeyError(session_id)
        return await super().call(session_id, tool, arguments)


class ToolNeedsCookie(ReferenceServer):
    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        request.headers["cookie"].partition("=")
        return await super()._call_tool(request)


class BehindProxy(ReferenceServer):
    """A proxy sets a cookie of its own before the server's, which is signed with its own name."""

    def __init__(self) -> None:
        super().__init__(cookie=SignedCookie(NAME, key=NAME))

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        return replace(reply, headers=(("set-cookie", "sticky=backend-3; path=/"), *reply.headers))


def cookie(kind: type[SignedCookie], **fields: str) -> Any:
    return lambda: ReferenceServer(cookie=kind(NAME, **fields))


class NewCookieForAdding(RefusesStrangers):
    """What was added to is answered with the cookie of a new session, and others are refused."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if request.path != "/add_stock":
            return reply
        headers = [(name, value) for name, value in reply.headers if name != "set-cookie"]
        return replace(reply, headers=(*headers, ("set-cookie", self.cookie.write(uuid4().hex))))


TWINS: tuple[Twin, ...] = (
    twin(
        "one tool's reply sets the cookie of another session",
        "cookie-replacing-client",
        NewCookieForAdding,
    ),
    twin("cookie on the first reply only", "cookie-sent-again cookie-replacing-client repeat-recorded", CookieOnce),
    twin("cookie on the first reply only, and no tools", "", GradesOnce, data=without_tools(), tempts="cookie seed"),
    twin(
        "cookie on the first reply only, and no tool is executed",
        "",
        GradesOnce,
        data=unrecorded(),
        tempts="cookie seed",
    ),
    twin("cookie lost on errors", "cookie-sent-again", CookieLostOnErrors),
    twin("no cookie with a refused seed", "", RefusedSeedSetsNone, tempts="cookie seed"),
    twin("when the cookie expires is not signed", "", ReadsWhenItExpires, tempts="cookie"),
    twin("state in the cookie", "cookie-keeping-client", StateInCookie),
    twin("a new id for each reply", "cookie-keeping-client", NewIdForEachReply),
    twin("a new id for each reply, unrecorded", "cookie-keeping-client", NewIdForEachReply, data=unrecorded()),
    twin(
        "no cookie with a call, unrecorded",
        "cookie-sent-again cookie-replacing-client",
        ToolsSetNone,
        data=unrecorded(),
    ),
    twin("bad signature crashes", "cookie-tampered cookie-unsigned-id", cookie(CrashesOnBadSignature)),
    twin(
        "signature not checked",
        "cookie-tampered cookie-unsigned-id",
        cookie(ChecksNoSignature),
    ),
    twin("plain id adopted", "cookie-unsigned-id", cookie(AdoptsPlainIds)),
    twin("key is the cookie's name", "cookie-signing-key", cookie(SignedCookie, key=NAME)),
    twin("key is the cookie's name, behind a proxy", "cookie-signing-key", BehindProxy),
    twin("first cookie read", "cookie-foreign", cookie(ReadsFirstCookie)),
    twin("tools need a known session", "cookie-unknown-session cookie-tampered", ToolNeedsSession),
    twin("tools need a cookie", "cookie-unknown-session", ToolNeedsCookie),
)
