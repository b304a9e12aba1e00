"""Twins that are not there, or that open sessions badly."""

import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from random import Random
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from gym_mocks.reference import ReferenceServer, SignedCookie
from gym_mocks.reference.stockroom import StockRow
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire import App, HttpRefusal, HttpReply, HttpRequest
from tests.twins.twin import Twin, changed, crashing, dataset, edited, twin

NAME = "StockroomResourcesServer___stockroom"
AFTER_VERIFY = """verify-degenerate verify-malformed-calls verify-framework-types verify-raw-surrogate verify-reward-finite verify-echoes
    verify-echoes-tokens verify-keeps-row-fields verify-reward-components verify-without-session verify-floor
    verify-malformed verify-unfinished repeat-recorded repeat-declares-stateless repeat-compressed reward-form reward-extra-read
    reward-claim reward-any-text reward-farmed resources-loop-free resources-program-ends resources-program-stopped
    resources-reward-kept metrics-shape metrics-order seed-reads-row
    calibration-gold calibration-scored calibration-floor calibration-swap calibration-pressed calibration-strict calibration-deeds
    calibration-odd calibration-separates verify-failure-kind verify-long-rollout"""
NEED_COOKIE = "cookie-sent-again cookie-tampered cookie-unsigned-id cookie-signing-key cookie-foreign"


class CrashingLiveness(ReferenceServer):
    def __init__(self) -> None:
        super().__init__()
        self.handlers["GET", "/"] = self._fails

    async def _fails(self, _: HttpRequest) -> HttpReply:
        raise RuntimeError("the database is not there")


class WithoutVerify(ReferenceServer):
    def __init__(self) -> None:
        super().__init__()
        del self.handlers["POST", "/verify"]
        del self.openapi["paths"]["/verify"]


class WithoutCookie(ReferenceServer):
    async def dispatch(self, request: HttpRequest) -> HttpReply:
        return await App.dispatch(self, replace(request, session_id="everybody's"))


class SessionByRow(ReferenceServer):
    """The id is derived from the row, so that equal rows share a session."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path != "/seed_session":
            return await super().dispatch(request)
        session_id = str(uuid5(NAMESPACE_URL, request.body.decode()))
        reply = await App.dispatch(self, replace(request, session_id=session_id))
        return reply.plus(("set-cookie", self.cookie.write(session_id)))


class AlikeIds(ReferenceServer):
    """A process for each connection, all of which began with the same random state: each draws the same ids."""

    def __init__(self) -> None:
        super().__init__()
        self._process: ContextVar[Iterator[int]] = ContextVar("process")
        self._processes: dict[object, Iterator[int]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._process.set(self._processes.setdefault(scope.get("client"), count()))
        await super().__call__(scope, receive, send)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path != "/seed_session" or "cookie" in request.headers:
            return await super().dispatch(request)
        session_id = f"session {next(self._process.get())}"
        reply = await App.dispatch(self, replace(request, session_id=session_id))
        return reply.plus(("set-cookie", self.cookie.write(session_id)))


class OneSession(SignedCookie):
    def read(self, header: str) -> str:
        del header
        return "the session"


class RefusesSecondSeed(ReferenceServer):
    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if self.sessions.get(session_id):
            raise HttpRefusal(409, "this session exists already")
        return await super().seed(session_id, row)


class NewSessionForEachSeed(ReferenceServer):
    """The id changes at the second seed; the state that the client knew is gone."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/seed_session":
            request = replace(request, headers={**request.headers, "cookie": ""})
        return await super().dispatch(request)


class SecondSeedDamages(ReferenceServer):
    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if session := self.sessions.get(session_id):
            session.state = None
            return {}
        return await super().seed(session_id, row)


def refuses_row(row: dict[str, Any]) -> None:
    """A request model that a row of the dataset does not fit: the stock list may not be empty."""
    if row.get("stock") == []:
        raise HttpRefusal(422, [{"type": "too_short", "loc": ["body", "stock"], "msg": "too short", "input": []}])


class RefusesOneRow(ReferenceServer):
    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        refuses_row(row)
        return await super().seed(session_id, row)


class ForbidsExtraKeys(ReferenceServer):
    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if "_ng_task_index" in row:
            raise HttpRefusal(422, [{"type": "extra_forbidden", "loc": ["body", "_ng_task_index"]}])
        return await super().seed(session_id, row)


class LocalTime(SignedCookie):
    """It lasts for an hour, by a clock that is eight hours behind and said to be Greenwich's."""

    def write(self, session_id: str) -> str:
        until = datetime.now(UTC) - timedelta(hours=7)
        return f"{super().write(session_id)}; Expires={format_datetime(until, usegmt=True)}"


def cookie(**fields: str) -> Any:
    return lambda: ReferenceServer(cookie=SignedCookie(NAME, **fields))


class KeepsFirstRow(ReferenceServer):
    """Every session plays the task of the first, whatever its row."""

    first: dict[str, Any] | None = None

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if self.first is None and "expected_answer" in row:
            self.first = row
        return await super().seed(session_id, self.first or row)

    async def score(self, session_id: str, row: Any, response: dict[str, Any]) -> Any:
        return await super().score(session_id, StockRow.model_validate(self.first or row), response)


def to_result_page(_: HttpRequest, reply: HttpReply) -> HttpReply:
    return HttpReply(303, headers=(*reply.headers, ("location", "/result")))


def raw_row(row: Any) -> None:
    """What a handler does that reads the raw body."""
    json.dumps(row | {"seeded": True})


class Shuffles(ReferenceServer):
    """The stock is listed in an order that the row's seed draws."""

    def __init__(self, *, falsy: bool) -> None:
        super().__init__()
        self.falsy = falsy
        self.seeds: dict[str, int] = {}

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        self.seeds[session_id] = row.get("seed", 7)
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name != "list_stock":
            return result
        seed = self.seeds.get(session_id, 7)
        return result | {"aisle": Random((seed or None) if self.falsy else seed).random()}


def _seed_of_zero(row: dict[str, Any]) -> None:
    row["seed"] = 0


SEED_OF_ZERO = replace(dataset(_seed_of_zero), rollouts=())

TWINS: tuple[Twin, ...] = (
    twin("liveness crashes", "live-root", CrashingLiveness),
    twin("no verify", "live-endpoints verify-scores-rows", WithoutVerify, untestable=AFTER_VERIFY),
    twin(
        "a row that does not fit the seed's model",
        "seed-accepts-rows",
        RefusesOneRow,
        untestable="""verify-scores-rows verify-degenerate verify-malformed-calls verify-reward-finite verify-floor repeat-recorded
            repeat-declares-stateless reward-form reward-extra-read reward-claim drift-argument-refused""",
    ),
    twin("extra keys forbidden", "seed-accepts-rollout-keys", ForbidsExtraKeys),
    twin("the seed's reply is null", "seed-replies-object", edited("/seed_session", lambda _: None)),
    twin("the seed's reply is a list", "seed-replies-object", edited("/seed_session", lambda _: [])),
    twin("no session middleware", "seed-sets-cookie", WithoutCookie, untestable=NEED_COOKIE),
    twin("Secure cookie", "seed-cookie-usable", cookie(attributes="path=/; secure")),
    twin("cookie for the seed's path", "seed-cookie-usable", cookie(attributes="path=/seed_session")),
    twin(
        "cookie of more than 4,096 bytes",
        "seed-cookie-usable",
        lambda: ReferenceServer(cookie=SignedCookie("c" * 4_000)),
    ),
    twin("cookie that lasts for a minute", "seed-cookie-usable", cookie(attributes="path=/; max-age=60")),
    twin(
        "cookie that has expired by the wrong clock",
        "seed-cookie-usable",
        lambda: ReferenceServer(cookie=LocalTime(NAME, attributes="path=/")),
    ),
    twin("cookie for another domain", "seed-cookie-usable", cookie(attributes="path=/; domain=gym.example")),
    twin("ids that each process draws alike", "seed-opens-own-session", AlikeIds),
    twin("session keyed by row", "seed-opens-own-session", SessionByRow, untestable="cookie-tampered"),
    twin(
        "one session for all",
        "seed-opens-own-session",
        lambda: ReferenceServer(cookie=OneSession(NAME)),
        untestable="cookie-tampered",
    ),
    twin("second seed refused", "seed-repeat-harmless", RefusesSecondSeed),
    twin("second seed opens another session", "seed-repeat-harmless", NewSessionForEachSeed),
    twin("second seed damages the state", "seed-repeat-harmless", SecondSeedDamages),
    twin("a tool redirects", "seed-no-redirects repeat-recorded", changed("/add_stock", to_result_page)),
    twin("seed ignores the row", "seed-reads-row repeat-recorded", KeepsFirstRow),
    twin(
        "a seed of 0 is taken for none", "seed-reads-row drift-result", lambda: Shuffles(falsy=True), data=SEED_OF_ZERO
    ),
    twin("a seed of 0 is one", "drift-result", lambda: Shuffles(falsy=False), data=SEED_OF_ZERO),
    twin("seed reads the raw body", "seed-survives-odd-rows", crashing("/seed_session", raw_row)),
)
