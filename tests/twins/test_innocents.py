"""Noise, counters and what sessions may share are no violations: a false alarm is the worst fault of a gate."""

import asyncio
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4
from zlib import crc32

import pytest
from pydantic import BaseModel, Field

from gym_conformance.checks.isolation import earlier
from gym_conformance.checks.registry import CHECKS
from gym_conformance.checks.sessions import readiness
from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.findings import Verdict, worst
from gym_conformance.trajectories.profiles import Profile
from gym_conformance.trajectories.trajectory import Reference, Schedule, Trajectory
from gym_conformance.trials.before_and_after import RUNS
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import ResourcesServer, Score, TaskRow, last_text
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from gym_mocks.wire.client import ASGIApp
from tests.twins.cookies import StateInCookie
from tests.twins.drift import in_each, of_any_length
from tests.twins.innocent import (
    EachMoveCosts,
    HasOnlySoManyMoves,
    RefusedMovesCost,
    RefusedMovesCount,
    SaysHowManyMoves,
    WithoutDocument,
    WrongMovesCount,
    refused_in_words,
)
from tests.twins.judging import found_by, judge, running
from tests.twins.properties import CountsForAll, LosesUpdates, TwoCopies, WritesLater
from tests.twins.step import LuckDecides
from tests.twins.tools import TakesBeforeItReads
from tests.twins.twin import Timed, Turn, dataset, items_of, rollout_of, unrecorded
from tests.twins.unrecorded import FindsNoSession, Reading, rows_of

Json = dict[str, Any]

#: All that rest on a comparison.
SECTIONS = ("cookie", "calls", "isolation", "repeat", "reward")

#: What they rightly say of noise: no MUST.
TOLD = {"repeat-deterministic", "repeat-replies", "repeat-declares-stateless", "repeat-recorded", "repeat-tool-calls"}


class NoisyReward(ReferenceServer):
    """A judge, or a simulator, that is not always of the same mind."""

    def __init__(self, chance: float) -> None:
        super().__init__()
        self.chance = chance

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = await super().score(session_id, row, response)
        more = 0.25 if random.random() < self.chance else 0.0
        return type(score)(score.reward + more, {})


class KeepsRewards(ReferenceServer):
    """A response is scored once, and earns the same whenever and wherever it is sent again: its id tells."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Score] = {}

    async def score(self, session_id: str, row: Any, response: Json) -> Score:
        if response["id"] not in self.kept:
            self.kept[response["id"]] = await super().score(session_id, row, response)
        return self.kept[response["id"]]


class NoisyReplies(ReferenceServer):
    """Tools fail now and then, or answer in other words."""

    def __init__(self, chance: float) -> None:
        super().__init__()
        self.chance = chance

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {"answer": result, "mood": random.random() < self.chance}


class FallsWithTheTime(Timed):
    """Whoever takes long earns less, as a reward for haste has it; beside others everything takes longer."""

    def __init__(self, haste: float = 0.015) -> None:
        super().__init__()
        self.haste = haste

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = await super().score(session_id, row, response)
        return type(score)(score.reward - 0.25 * (self.age(session_id) > self.haste), {})


class Replicates(TwoCopies):
    """Of two replicas either answers, and what is added comes to the other one a moment later."""

    def __init__(self) -> None:
        super().__init__()
        self.copying: set[asyncio.Task[Any]] = set()

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        one, other = random.sample("ab", 2)
        result = await ReferenceServer.call(self, f"{session_id} {one}", tool, arguments)
        if tool.name not in {"list_stock", "count_stock"}:
            self.copying.add(asyncio.create_task(self._copy(f"{session_id} {other}", tool, arguments)))
        return result

    async def _copy(self, session_id: str, tool: FunctionTool, arguments: Json) -> None:
        await asyncio.sleep(0.05)
        await ReferenceServer.call(self, session_id, tool, arguments)


class Wakes(ReferenceServer):
    """Nothing moves until something is added; then a cat comes and goes."""

    def __init__(self) -> None:
        super().__init__()
        self.awake: set[str] = set()

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name == "add_stock":
            self.awake.add(session_id)
        if tool.name != "list_stock":
            return result
        return {"cat": session_id in self.awake and random.random() < 0.5}


class GoesOn(Timed):
    """The world goes on by itself, fast or slowly: so many steps since the seed are in each reply."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {"answer": result, "steps": int(self.age(session_id) / self.step)}


class Shares(ReferenceServer):
    """Replies have random ids, the time, numbers that count on over all sessions, and what comes from a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = self.created = 0
        self.cache: dict[str, Any] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        self.requests += 1
        self.created += tool.name == "add_stock"
        key = f"{tool.name} {arguments}"
        cached = key in self.cache
        price = self.cache.setdefault(key, len(key))
        return {
            "answer": result,
            "id": self.created,
            "trace": uuid4().hex,
            "requests": self.requests,
            "time": time.strftime("%H:%M:%S"),
            "price": price,
            "cached": cached,
        }


class KeyedByIds(ReferenceServer):
    """Each reply says what has become of the session's orders, by ids that are drawn."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        answer = await super().call(session_id, tool, arguments)
        return {"answer": answer, "orders": {f"order-{uuid4().hex}": "pending"}}


class FollowsTheClock(ReferenceServer):
    """Each reply says a price that is another one every 40 ms."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        answer = await super().call(session_id, tool, arguments)
        return {"answer": answer, "price": random.Random(int(time.monotonic() / 0.04)).random()}


class Queues(WritesLater):
    """What is added waits in a queue, as every reply of the session says."""

    def __init__(self) -> None:
        super().__init__()
        self.queued: dict[str, set[asyncio.Task[Any]]] = defaultdict(set)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        others = set(self.writing)
        answer = await super().call(session_id, tool, arguments)
        self.queued[session_id] |= self.writing - others
        waits = any(not task.done() for task in self.queued[session_id])
        return {"state": "queued" if waits else "done", "answer": answer}


class AcceptsOnly(WritesLater):
    """What is added is there a moment later, as its status says: 202."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        reply = await super()._call_tool(request)
        return replace(reply, status=202) if request.path == "/add_stock" else reply


class TellsOnce(ReferenceServer):
    """A read tells what was added since the last one, as a mailbox does."""

    def __init__(self) -> None:
        super().__init__()
        self.news: dict[str, list[Any]] = defaultdict(list)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        answer = await super().call(session_id, tool, arguments)
        if tool.name == "add_stock":
            self.news[session_id].append(answer)
            return answer
        return {"news": self.news.pop(session_id, [])}


class Lapses(TwoCopies):
    """What is added holds for four more calls, as a lease does."""

    def __init__(self) -> None:
        super().__init__()
        self.since: dict[str, int] = defaultdict(int)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        self.since[session_id] = 0 if tool.name == "add_stock" else self.since[session_id] + 1
        kept = "a" if self.since[session_id] <= 4 else "b"
        return await ReferenceServer.call(self, f"{session_id} {kept}", tool, arguments)

    async def score(self, session_id: str, row: Any, response: Json) -> Score:
        return await ReferenceServer.score(self, f"{session_id} b", row, response)


class OneAtATime(ReferenceServer):
    """A session takes one call at a time, and refuses what comes meanwhile, and all after eight of them."""

    def __init__(self) -> None:
        super().__init__()
        self.busy: set[str] = set()
        self.calls: dict[str, int] = defaultdict(int)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        self.calls[session_id] += 1
        if session_id in self.busy or self.calls[session_id] > 8:
            raise HttpRefusal(409, "another call is under way, or the game is over")
        self.busy.add(session_id)
        await asyncio.sleep(0.005)
        self.busy.discard(session_id)
        return await super().call(session_id, tool, arguments)


class Rising(ReferenceServer):
    """Nothing may be added in a smaller quantity than what came last: it matters which of two calls at once comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[str, float] = defaultdict(float)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name == "add_stock":
            await asyncio.sleep(random.random() / 200)
            quantity = arguments["amount"].quantity
            if quantity < self.last[session_id]:
                raise HttpRefusal(409, "less than before")
            self.last[session_id] = quantity
        return await super().call(session_id, tool, arguments)


NOISY: dict[str, Callable[[], ASGIApp]] = {
    **{f"reward {chance}": partial(NoisyReward, chance) for chance in (0.1, 0.5)},
    "wrong moves count": WrongMovesCount,
    "refused moves count": RefusedMovesCount,
    "refused moves cost": RefusedMovesCost,
    "only so many moves": HasOnlySoManyMoves,
    **{f"replies {chance}": partial(NoisyReplies, chance) for chance in (0.1,)},
    "a reward that falls with the time": FallsWithTheTime,
    "what sessions share": Shares,
    "keys that are drawn": KeyedByIds,
    "a price that follows the clock": FollowsTheClock,
}

#: They take long: whatever is compared differs by chance.
SLOW = {
    *("reward 0.1", "reward 0.5", "replies 0.1", "what sessions share", "keys that are drawn"),
    *("refused moves count", "refused moves cost", "a price that follows the clock"),
    *("only so many moves", "wrong moves count"),
}

#: Worlds in which a read may answer as before a write, and then as after it, or the other way round.
RESTLESS: dict[str, Callable[[], ASGIApp]] = {
    "two replicas": Replicates,
    "a cat": Wakes,
    "a mailbox": TellsOnce,
    "a lease of four calls": Lapses,
}

#: Worlds that change between a seed and a later read, and are complete.
LIVELY: dict[str, Callable[[], ASGIApp]] = {
    **{f"a step each {step} s": partial(GoesOn, step) for step in (0.2, 1.0)},
    "a queue": Queues,
    "an index that is built later": AcceptsOnly,
    "one call at a time": OneAtATime,
    "a mailbox": TellsOnce,
    "an order that matters": Rising,
    **{name: NOISY[name] for name in ("replies 0.1", "a reward that falls with the time", "what sessions share")},
}


@pytest.mark.parametrize(
    "noise", [pytest.param(noise, marks=pytest.mark.twins) if noise in SLOW else noise for noise in NOISY]
)
def test_noise_is_no_violation(noise: str) -> None:
    with running(NOISY[noise](), timeout=5.0, profile=Profile("tests", 6, 0.1)) as run:
        findings = [finding for check in CHECKS if check.section in SECTIONS for finding in run.judge(check)]
    failed = {finding.check: finding.actual for finding in findings if finding.verdict is Verdict.FAIL}
    assert {check: actual for check, actual in failed.items() if check not in TOLD} == {}


@pytest.mark.parametrize("world", RESTLESS)
def test_a_world_that_is_not_at_rest_keeps_what_was_written(world: str) -> None:
    [finding] = found_by("isolation-two-clients", RESTLESS[world]())
    assert finding.verdict is Verdict.PASS, finding.actual


class SlowWhereKept(FallsWithTheTime):
    """A connection that is kept answers 40 ms late, as where small packets wait for an acknowledgement."""

    def __init__(self) -> None:
        super().__init__(haste=0.06)
        self.met: set[Any] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.04 * (scope.get("client") in self.met))
        self.met.add(scope.get("client"))
        await super().__call__(scope, receive, send)


def test_a_reward_that_falls_with_the_time_is_the_same_for_clients_that_are_faster() -> None:
    [finding] = found_by("isolation-two-clients", SlowWhereKept())
    assert finding.verdict is Verdict.PASS, finding.actual


@pytest.mark.parametrize("world", LIVELY)
def test_a_world_that_goes_on_is_complete(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PAUSES", (0.3, 0.4, 0.6, 0.8))
    findings = judge(LIVELY[world](), checks={"seed-complete", "calls-complete"})
    assert [finding.verdict for several in findings.values() for finding in several] == [Verdict.PASS] * 2


@pytest.mark.parametrize("offered", [False, True])
def test_an_empty_name_counts_where_the_definition_speaks_of_it(offered: bool) -> None:
    rows = of_any_length(minLength=0) if offered else of_any_length()
    [finding] = found_by("calls-valid", ReferenceServer(), rows)
    assert finding.verdict is (Verdict.FAIL if offered else Verdict.PASS), finding.actual


@pytest.mark.parametrize(("allowed", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_calls_are_made_at_once_where_the_rows_let_a_turn_hold_several(allowed: bool, verdict: Verdict) -> None:
    rows = dataset(lambda row: row["responses_create_params"].update(parallel_tool_calls=allowed))
    [finding] = found_by("calls-complete", LosesUpdates(), rows)
    assert finding.verdict is verdict, finding.actual


def test_what_comes_while_a_crowd_passes_comes_alone_too() -> None:
    [finding] = found_by("isolation-crowded", WritesLater())
    assert finding.verdict is Verdict.PASS, finding.actual


class TakesAndCounts(TakesBeforeItReads, SaysHowManyMoves):
    """An episode of so many calls, whose number is said; and a refused call writes."""


def test_calls_that_are_counted_hide_no_write() -> None:
    [finding] = found_by("tool-refused-call", TakesAndCounts())
    assert finding.verdict is Verdict.FAIL


class RefusesBeforeTheSession(ReferenceServer):
    """Arguments are refused by what parses them, before the session is looked up."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        return HttpReply.json({"message": "look at your arguments"}, 400) if reply.status == 422 else reply


def test_a_refusal_without_a_cookie_is_no_write() -> None:
    [finding] = found_by("calls-refused-harmless", RefusesBeforeTheSession())
    assert finding.expected == "a Set-Cookie header on the refusal"


class Busier(FallsWithTheTime):
    """The same, on a machine that is busy while these sessions begin, and idle before and after."""

    def __init__(self, busy: range) -> None:
        super().__init__(haste=0.15)
        self.busy = busy

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        await asyncio.sleep(0.06 * (len(self.seeded) in self.busy))
        return await super().dispatch(request)


class BusierAfterSlowSeeds(Busier):
    """The same, where the first sessions wait until they begin: that makes none of them a slow one."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        await asyncio.sleep(0.6 * (request.path == SEED_SESSION and len(self.seeded) < self.busy.start))
        return await super().dispatch(request)


@pytest.mark.parametrize(
    "server",
    [
        Busier(range(2 * RUNS)),
        Busier(range(2 * RUNS, 4 * RUNS)),
        pytest.param(BusierAfterSlowSeeds(range(2 * RUNS, 4 * RUNS)), marks=pytest.mark.twins),
    ],
    ids=["at first", "later", "later, after slow seeds"],
)
def test_a_machine_that_becomes_busy_or_idle_changes_no_reward(server: Busier) -> None:
    [finding] = found_by("isolation-earlier", server)
    assert finding.verdict is Verdict.PASS, finding.actual


@pytest.mark.parametrize("server", [ReferenceServer, CountsForAll])
def test_what_a_slow_server_leaves_no_time_for_is_said(
    server: Callable[[], ASGIApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier, "_SECONDS", 0.0)
    monkeypatch.setattr(earlier, "_PATIENCE", 0)
    [finding] = found_by("isolation-earlier", server())
    if server is ReferenceServer:
        assert re.match(r"only \d+ of \d+ pairs of sessions were tried: .* --gym-profile ci", finding.caution)
    else:
        assert finding.verdict is Verdict.FAIL, "one of each kind is tried all the same"


class StateInOpaqueCookie(StateInCookie):
    """The same in a cookie that no client can read, and nothing is added to what is there."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        name, _, value = request.headers.get("cookie", "").partition("=")
        with suppress(ValueError):
            request = replace(request, headers={**request.headers, "cookie": f"{name}={bytes.fromhex(value).decode()}"})
        reply = await super().dispatch(request)
        headers = [(key, self._hidden(said) if key == "set-cookie" else said) for key, said in reply.headers]
        return replace(reply, headers=tuple(headers))

    def _hidden(self, header: str) -> str:
        pair, *rest = header.split(";")
        name, _, value = pair.partition("=")
        return ";".join((f"{name}={value.encode().hex()}", *rest))

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        session = self.sessions.get(session_id)
        if tool.name == "add_stock" and session and self.stock_of(session).pieces:
            raise HttpRefusal(409, "there is something already")
        return await super().call(session_id, tool, arguments)


def test_who_keeps_the_seeds_cookie_shows_nothing_where_the_state_is_in_the_cookie() -> None:
    found = judge(StateInOpaqueCookie(), checks={"cookie-replacing-client", "cookie-keeping-client"})
    assert {name: worst(several) for name, several in found.items()} == {
        "cookie-replacing-client": Verdict.PASS,
        "cookie-keeping-client": Verdict.FAIL,
    }


class Board(ResourcesServer):
    """So many cards lie there. Whatever is the number of none is refused alike, and no definition knows how many there are."""

    def __init__(self, cards: int) -> None:
        def flip(card: Annotated[int, Field(ge=0)]) -> Json:
            return {"shows": "ABCABC"[card]}

        super().__init__("board", tools=[flip], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.cards = cards
        self.shown = set[tuple[str, int]]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        arguments = json_body(request)
        if type(card := arguments.get("card")) is not int or not 0 <= card < self.cards:
            raise HttpRefusal(422, "not the number of a card")
        if (request.session_id, card) in self.shown:
            raise HttpRefusal(409, "it lies open")
        self.shown.add((request.session_id, card))
        return await super()._call_tool(request)


@pytest.mark.parametrize(("cards", "verdict"), [(6, Verdict.PASS), (0, Verdict.FAIL)], ids=["six", "none"])
def test_a_number_may_be_larger_than_there_are_things(cards: int, verdict: Verdict) -> None:
    [finding] = found_by("calls-valid", Board(cards), rows_of(Board(cards)))
    assert finding.verdict is verdict, finding.actual


#: What is done to a definition that then says less than its author means, or says it in a way that no validator reads.
VAGUE: dict[str, Callable[[Json], None]] = {
    "no type": lambda tool: tool["parameters"].pop("type"),
    "a lone surrogate": lambda tool: tool["parameters"].update(description="cut in half: \ud83d"),
    "a reference to another document": lambda tool: tool.update(parameters={"$ref": "https://example.org/tools.json"}),
    "a reference to nothing": lambda tool: _category(tool, {"$ref": "#/$defs/Category"}),
    "a pattern that no validator reads": lambda tool: _category(
        tool, {"type": "string", "pattern": r"(?x) (food|tool)\Z"}
    ),
    "a type that is none": lambda tool: _category(tool, {"type": "category"}),
}


def _category(tool: Json, schema: Json) -> None:
    tool["parameters"]["properties"]["category"] = schema


@pytest.mark.parametrize("how", VAGUE)
def test_what_a_definition_says_vaguely_allows_nothing(how: str) -> None:
    [finding] = found_by("calls-valid", ReferenceServer(), in_each("list_stock", VAGUE[how]))
    assert finding.verdict is not Verdict.FAIL, finding.actual


class HasBudget(ReferenceServer):
    """Who makes more than six calls earns half."""

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = await super().score(session_id, row, response)
        calls = sum(item["type"] == "function_call" for item in response["output"])
        return type(score)(score.reward / (1 + (calls > 6)), {})


def test_calls_beyond_a_budget_may_cost_a_part_of_the_reward() -> None:
    found = found_by("reward-extra-read", HasBudget())
    assert Verdict.FAIL not in {each.verdict for each in found}, found


class Moody(ReferenceServer):
    """Each reply says in which of four moods the server is."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return {"answer": await super().call(session_id, tool, arguments), "mood": random.randrange(4)}


def test_no_read_acts_twice_because_replies_are_noisy() -> None:
    [finding] = found_by("repeat-tool-calls", Moody())
    assert not re.search("count_stock|list_stock", finding.actual), finding.actual


class SetsCookiesForItsPages(StateInOpaqueCookie):
    """The session's id is in a cookie that no client can read, beside one for the colours of its pages; or in the latter."""

    def __init__(self, *, swapped: bool) -> None:
        super().__init__()
        self.paths = ("/ui", "/") if swapped else ("/", "/ui")

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        pairs = dict(pair.partition("=")[::2] for pair in request.headers.get("cookie", "").split("; "))
        own = f"{self.cookie.name}={pairs.get(self.cookie.name, '')}"
        reply = await super().dispatch(replace(request, headers={**request.headers, "cookie": own}))
        sets = [value.replace("path=/", f"path={self.paths[0]}") for key, value in reply.headers if key == "set-cookie"]
        others = [pair for pair in reply.headers if pair[0] != "set-cookie"]
        cookies = [*sets, f"theme=dark; path={self.paths[1]}"]
        return replace(reply, headers=(*others, *(("set-cookie", value) for value in cookies)))


@pytest.mark.parametrize(
    ("swapped", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)], ids=["other", "its own"]
)
def test_only_the_sessions_cookie_must_be_sent_to_every_endpoint(swapped: bool, verdict: Verdict) -> None:
    [finding] = found_by("seed-cookie-usable", SetsCookiesForItsPages(swapped=swapped))
    assert finding.verdict is verdict, finding.actual


def _tries_what_is_not_allowed(rollout: Rollout) -> Rollout:
    """The same, but for a call at first that its definition forbids, and that was refused."""
    arguments = {"category": "weather", "amount": {}, "place": "van"}
    output = [*items_of(("add_stock", arguments, {"detail": "category"})), *rollout.output]
    return rollout.with_response(output=output)


def test_a_recorded_call_that_its_definition_forbids_may_be_refused() -> None:
    data = dataset()
    data = replace(data, rollouts=tuple(map(_tries_what_is_not_allowed, data.rollouts)))
    [finding] = found_by("calls-valid", ReferenceServer(), data)
    assert finding.verdict is not Verdict.FAIL, finding.actual


class Pages(ResourcesServer):
    """Eight things in pages of four: a cursor is what a page ends with, and nothing else is one."""

    def __init__(self) -> None:
        def list_things(cursor: str | None = None) -> Json:
            at = int(cursor or 0)
            return {"things": list(range(at, at + 4)), "next_cursor": "4" if at == 0 else None}

        super().__init__("pages", tools=[list_things], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if json_body(request).get("cursor") not in (None, "0", "4"):
            raise HttpRefusal(400, "bad cursor")
        return await super()._call_tool(request)


def _read_to_the_end(row: Row) -> Rollout:
    first: Turn = ("list_things", {}, {"things": [0, 1, 2, 3], "next_cursor": "4"})
    return rollout_of(row, first, ("list_things", {"cursor": "4"}, {"things": [4, 5, 6, 7], "next_cursor": None}))


class ThreeTries(ResourcesServer):
    """A wrong pin is refused, and after three of them the vault is locked, as the refusals say."""

    def __init__(self) -> None:
        def unlock(pin: str) -> Json:
            return {"open": pin}

        super().__init__("vault", tools=[unlock], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.wrong = defaultdict[str, int](int)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        reply = await super()._call_tool(request)
        if self.wrong[request.session_id] == 3:
            raise HttpRefusal(423, "locked for good")
        if json_body(request).get("pin") != "4711":
            self.wrong[request.session_id] += 1
            raise HttpRefusal(401, f"wrong, {3 - self.wrong[request.session_id]} left")
        return reply


def _unlocked_at_the_third_try(row: Row) -> Rollout:
    answers = {"1": "wrong, 2 left", "22": "wrong, 1 left", "4711": {"open": "4711"}}
    return rollout_of(row, *(("unlock", {"pin": pin}, answer) for pin, answer in answers.items()))


def test_refusals_may_count_tries_if_they_say_so() -> None:
    data = rows_of(ThreeTries())
    data = replace(data, rollouts=tuple(map(_unlocked_at_the_third_try, data.rows)))
    [check] = [each for each in CHECKS if each.id == "calls-refused-harmless"]
    with running(ThreeTries(), data, timeout=5.0, profile=Profile("tests", 6, 0.1)) as run:
        [finding] = run.judge(check)
    assert finding.verdict is not Verdict.FAIL, finding.actual


class CountsAndLosesTheCookie(EachMoveCosts):
    """Each call costs a little, and an unknown path sets no cookie: that is a fault of its own, and no other."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        others = tuple(pair for pair in reply.headers if pair[0] != "set-cookie")
        return replace(reply, headers=others) if reply.status == 404 else reply


def test_a_lost_cookie_does_not_hide_that_refused_calls_are_counted() -> None:
    asked = {"cookie-sent-again", "tool-refused-call"}
    found = judge(CountsAndLosesTheCookie(), checks=asked)
    assert {name for name in asked if worst(found[name]) is Verdict.FAIL} == {"cookie-sent-again"}, found


class CostsInWords(RefusedMovesCost):
    """Says in words what it refuses, and takes a little of the reward each time."""

    sent = 0

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        self.sent += 1
        return refused_in_words(request, await super().dispatch(request))


def test_what_each_refusal_costs_is_not_told_from_chance_in_every_example() -> None:
    server = CostsInWords()
    [found] = found_by("calls-refused-harmless", server)
    assert found.verdict is not Verdict.FAIL, found.actual
    assert server.sent < 6_000  # from 1,700 to 4,300, by what is drawn; 11,000 where chance is excluded in each example


class LosesTheCookieAtVerify(ReferenceServer):
    """Sets no cookie with the reward: that is a fault of its own, and verify changes nothing."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        others = tuple(pair for pair in reply.headers if pair[0] != "set-cookie")
        return replace(reply, headers=others) if request.path == "/verify" else reply


def test_a_verify_that_sets_no_cookie_is_not_said_to_change_the_tools() -> None:
    asked = {"cookie-sent-again", "repeat-verify-pure"}
    found = judge(LosesTheCookieAtVerify(), checks=asked)
    assert {name for name in asked if worst(found[name]) is Verdict.FAIL} == {"cookie-sent-again"}, found


class ThreeStrikes(ResourcesServer):
    """The only tool that refuses any call counts what it refuses, says so, and ends the episode; a careless one moves, too."""

    def __init__(self, *, careless: bool) -> None:
        def move(state: Reading, by: Annotated[int, Field(ge=0, le=9)]) -> Json:
            state.pages += by
            return {"at": state.pages}

        def look() -> Json:
            return {}

        super().__init__("strikes", tools=[move, look], state=Reading, verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.careless, self.strikes = careless, Counter[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        session, strikes = self.sessions.get(request.session_id), self.strikes[request.session_id]
        if strikes >= 3:
            raise HttpRefusal(410, "the episode is over")
        if request.path == "/look":
            return HttpReply.json({"at": session.state.pages if session else 0, "strikes": strikes})
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            self.strikes[request.session_id] += 1
            if self.careless and session:
                session.state.pages += 1
            raise

    async def score(self, session_id: str, *_: Any) -> Score:
        session = self.sessions.get(session_id)
        return Score(float(session is not None and session.state.pages == 5) - 0.1 * self.strikes[session_id])


@pytest.mark.parametrize("careless", [False, True])
def test_the_only_tool_that_refuses_may_count_what_it_refuses(careless: bool) -> None:
    data = rows_of(ThreeStrikes(careless=careless))
    turns: list[Turn] = [("move", {"by": by}, {"at": at}) for by, at in ((2, 2), (3, 5))]
    turns.append(("look", {}, {"at": 5, "strikes": 0}))
    played = [rollout_of(row, *turns, reward=1.0) for row in data.rows]
    asked = ("tool-refused-call", "calls-refused-harmless")
    found = judge(ThreeStrikes(careless=careless), replace(data, rollouts=tuple(played)), checks=asked)
    assert (worst(found["calls-refused-harmless"]) is Verdict.FAIL) is careless, found
    assert careless or worst(found["tool-refused-call"]) is not Verdict.FAIL, found


def test_what_comes_of_a_call_that_is_told_the_count_is_no_trace_of_a_refused_one() -> None:
    data = rows_of(ThreeStrikes(careless=False))
    strikes = Reference(1, ("strikes",), 2).as_json()
    calls = (Call("move", 0), Call("look", {}), Call("move", {"by": strikes}))
    schedule = Schedule((Trajectory(data.rows[0], calls, frozenset({0})),))
    (check,) = (each for each in CHECKS if each.id == "calls-refused-harmless")
    with running(ThreeStrikes(careless=False), data, timeout=5.0) as run:
        (finding,) = run.judge(check, schedule)
    assert finding.verdict is Verdict.NOT_APPLICABLE, finding.actual


class TellsTheTime(HasOnlySoManyMoves):
    """Its clock goes on by a second with each refused call, as any clock may that is read only later."""

    async def call(self, session_id: str, *rest: Any) -> Any:
        return {**await super().call(session_id, *rest), "at": f"2026-05-04T09:30:{self.wrong[session_id] % 60:02}"}


def test_a_clock_beside_a_count_of_moves_is_no_trace_of_a_refused_call() -> None:
    [finding] = found_by("tool-refused-call", TellsTheTime())
    assert finding.verdict is not Verdict.FAIL, finding.actual


class JudgesToTheLetter(WithoutDocument):
    """Pays a few hundredths more or less for each output, by all that is written in it."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        written = repr(response["output"]).encode()
        return Score((await super().score(session_id, row, response)).reward - crc32(written) % 97 / 1000)


def test_verify_is_sent_the_same_output_with_and_without_refused_calls() -> None:
    [finding] = found_by("calls-refused-harmless", JudgesToTheLetter())
    assert finding.verdict is Verdict.PASS, finding.actual


class CostsSoMuchAtMost(RefusedMovesCost):
    """What refused calls take of the reward has a bound."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.wrong[session_id] = min(self.wrong[session_id], 3)
        return await super().score(session_id, row, response)


def test_what_refused_calls_cost_may_have_a_bound() -> None:
    [finding] = found_by("tool-refused-call", CostsSoMuchAtMost())
    assert finding.verdict is Verdict.NOT_APPLICABLE, finding.actual


class PaysHalfForMany(RefusedMovesCost):
    """Who makes more than so many calls, taken or not, earns half."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        score = await ReferenceServer.score(self, session_id, row, response)
        return Score(score.reward / (1 + (self.moves[session_id] > self.most)))


@pytest.mark.parametrize("most", [6, 9])
def test_what_is_refused_may_be_one_of_so_many_calls_that_are_paid_in_full(most: int) -> None:
    [finding] = found_by("tool-refused-call", PaysHalfForMany(most))
    assert finding.verdict is not Verdict.FAIL, finding.actual


class ReadsAreScarce(ReferenceServer):
    """Each read costs a tenth, and after five there are none to be had, nor paid for."""

    async def score(self, session_id: str, row: Any, response: Json) -> Score:
        score = await super().score(session_id, row, response)
        reads = sum(item.get("name") in ("count_stock", "list_stock") for item in response["output"])
        return Score(score.reward - 0.1 * min(reads, 5), {})


def test_reads_may_cost_something_until_none_are_left() -> None:
    found = found_by("reward-extra-read", ReadsAreScarce())
    assert Verdict.FAIL not in {each.verdict for each in found}, found


class SellsWhatTheRowSays(WithoutDocument):
    """The row says what is sold; of anything else the shop says that it has none."""

    def __init__(self) -> None:
        super().__init__()
        self.sold: dict[str, str] = {}

    async def seed(self, session_id: str, row: Json) -> Json:
        self.sold[session_id] = row["sold"]
        return await super().seed(session_id, row)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        body = json_body(request)
        if (body.get("category") or "fruit") != self.sold.get(request.session_id):
            return HttpReply.json({"sold": False, "error": "we have none"})
        return await super()._call_tool(request)


def test_the_row_may_say_which_members_are_taken() -> None:
    data = replace(dataset(lambda row: row.update(sold="fruit")), rollouts=())
    found = found_by("drift-argument-refused", SellsWhatTheRowSays(), data)
    assert Verdict.FAIL not in {each.verdict for each in found}, found


class RefusesStrangeCookies(ReferenceServer):
    """A seed with a cookie that is none of the server's is refused, and the cookie sent again, as with any refusal."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        sent = request.headers.get("cookie", "")
        if sent and self.cookie.read(sent) is None:
            return replace(HttpReply.json({"error": "bad cookie"}, 400), headers=(("set-cookie", f"{sent}; path=/"),))
        return await super().dispatch(request)


def test_a_seed_that_is_refused_opens_no_session() -> None:
    [finding] = found_by("cookie-unsigned-id", RefusesStrangeCookies())
    assert finding.verdict is Verdict.PASS, finding.actual


class WantsKeys(ResourcesServer):
    """Each transfer has a key of four characters or more, and is done in a dry run unless it says otherwise."""

    def __init__(self) -> None:
        def transfer(key: Annotated[str, Field(min_length=4)], dry: bool = True) -> Json:
            return {"key": key, "dry": dry}

        super().__init__("transfers", tools=[transfer], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if len(str(json_body(request).get("key", ""))) < 4:
            raise HttpRefusal(422, "key: 4 characters or more")
        return await super()._call_tool(request)


def _begins_with_a_short_key(row: Row) -> Rollout:
    refused = ("transfer", {"key": "r"}, {"detail": "key: 4 characters or more"})
    made = ({"key": "key-1", "dry": False}, {"key": "key-2", "dry": False})
    return rollout_of(row, refused, *(("transfer", each, each) for each in made))


class WantsAName(ResourcesServer):
    """An empty name is refused as one that is no text is; the definition does not speak for it."""

    def __init__(self) -> None:
        def greet(name: str) -> Json:
            return {"said": f"Hello, {name}"}

        super().__init__("greeter", tools=[greet], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        name = json_body(request).get("name")
        if not isinstance(name, str) or not name:
            raise HttpRefusal(400, "name must be a text that is not empty")
        return await super()._call_tool(request)


def _greets_nobody(row: Row) -> Rollout:
    return rollout_of(row, ("greet", {"name": ""}, {"detail": "name must be a text that is not empty"}))


class Moment(BaseModel):
    """A day, as an object."""

    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class WantsADay(ResourcesServer):
    """A day is a text, of which the definition says nothing, or an object, of whose text it says what it looks like."""

    def __init__(self) -> None:
        def remind(due: str | Moment) -> Json:
            return {"due": str(due)}

        super().__init__("reminders", tools=[remind], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        due = json_body(request).get("due")
        day = due.get("day") if isinstance(due, dict) else due
        if not isinstance(day, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", day):
            raise HttpRefusal(422, "due must be a day such as 2029-05-07")
        return HttpReply.json({"due": day})


def _reminds_twice(row: Row) -> Rollout:
    days: list[Any] = ["2029-05-13", {"day": "2029-05-09"}]
    return rollout_of(row, *(("remind", {"due": day}, {"due": "a day"}) for day in days))


class TurnsPages(ResourcesServer):
    """A page begins after an item whose id a reply has told, or at the first one; anything else is refused alike."""

    def __init__(self) -> None:
        def page(after: str | None = None) -> Json:
            return {"after": after, "items": []}

        super().__init__("pages", tools=[page], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if json_body(request).get("after") is not None:
            raise HttpRefusal(422, "invalid argument: after")
        return await super()._call_tool(request)


def _turns_one_page(row: Row) -> Rollout:
    return rollout_of(row, ("page", {"after": None}, {"after": None, "items": []}))


class EndsAfterItBegins(ResourcesServer):
    """A booking whose end must come after its begin, as a pydantic validator holds it."""

    def __init__(self, kind: str, *, together: bool) -> None:
        def book(begin: int, end: int) -> Json:
            return {"begin": begin, "end": end}

        super().__init__("bookings", tools=[book], verify=lambda: 0.0)
        self.kind, self.together = kind, together

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"begin": int(begin), "end": int(end)} as body if end <= begin:
                where = ["body"] if self.together else ["body", "end"]
                error = {"type": self.kind, "loc": where, "msg": "end must be after begin"}
                return HttpReply.json({"detail": [{**error, "input": body if self.together else end}]}, 422)
        return await super()._call_tool(request)


@pytest.mark.parametrize(
    ("kind", "together", "verdict"),
    [
        pytest.param("value_error", True, Verdict.PASS, id="a model_validator"),
        pytest.param("assertion_error", False, Verdict.PASS, id="a field_validator"),
        pytest.param("greater_than", False, Verdict.FAIL, id="a bound"),
    ],
)
def test_arguments_may_be_refused_in_the_words_of_a_validator(kind: str, together: bool, verdict: Verdict) -> None:
    """No JSON Schema says that one number is larger than another; it does say how large one may be."""
    [finding] = found_by("calls-valid", server := EndsAfterItBegins(kind, together=together), rows_of(server))
    assert finding.verdict is verdict, finding.actual


class WantsAChange(ResourcesServer):
    """A change of nothing is refused before anything else is looked at."""

    def __init__(self) -> None:
        def change(item: str, title: str | None = None, done: bool | None = None) -> Json:
            return {"item": item, "title": title, "done": done}

        super().__init__("changes", tools=[change], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        body = json_body(request)
        if body.get("title") is None and body.get("done") is None:
            return HttpReply.json({"code": "nothing to change"}, 422)
        return await super()._call_tool(request)


def test_of_what_may_be_left_out_something_may_be_wanted() -> None:
    data = rows_of(WantsAChange())
    made = {"item": "a", "title": "b"}
    played = [rollout_of(row, ("change", made, {**made, "done": None}), reward=0.0) for row in data.rows]
    [finding] = found_by("calls-valid", WantsAChange(), replace(data, rollouts=tuple(played)))
    assert finding.verdict is not Verdict.FAIL, finding.actual


@pytest.mark.parametrize(
    ("server", "played"),
    [
        pytest.param(TurnsPages, _turns_one_page, id="an empty text where only null can be made up"),
        pytest.param(WantsADay, _reminds_twice, id="an empty text beside an object of which more is said"),
        pytest.param(WantsAName, _greets_nobody, id="a recorded text that is empty"),
        pytest.param(Pages, _read_to_the_end, id="a cursor that no reply has told, in any words"),
        pytest.param(WantsKeys, _begins_with_a_short_key, id="what differs from a call that is not allowed"),
    ],
)
def test_some_calls_may_be_refused(server: Callable[[], ResourcesServer], played: Callable[[Row], Rollout]) -> None:
    data = rows_of(server())
    data = replace(data, rollouts=tuple(map(played, data.rows)))
    found = found_by("drift-argument-refused", server(), data)
    assert worst(found) is not Verdict.FAIL, [each.actual for each in found]


class TakesSoMuch(ResourcesServer):
    """Takes texts of so many characters; its rows do not say so, as strict mode cannot."""

    def __init__(self, most: int) -> None:
        def submit(summary: Annotated[str, Field(max_length=most)]) -> Json:
            return {"submitted": len(summary)}

        super().__init__("submissions", tools=[submit], verify=lambda: 0.0)


@pytest.mark.parametrize(("most", "verdict"), [(2_000, Verdict.PASS), (100, Verdict.FAIL)])
def test_a_text_may_be_refused_that_is_longer_than_any_policy_needs(most: int, verdict: Verdict) -> None:
    server = TakesSoMuch(most)
    data = rows_of(server)
    for row in data.rows:
        [tool] = row.data["responses_create_params"]["tools"]
        tool["parameters"]["properties"]["summary"].pop("maxLength", None)
    found = found_by("drift-argument-refused", server, data)
    assert worst(found) is verdict, [each.actual for each in found]


def test_rewards_may_be_kept_by_the_ids_of_responses() -> None:
    [found] = judge(KeepsRewards(), checks=("repeat-recorded",)).values()
    assert {one.verdict for one in found} == {Verdict.PASS}, found


class PaysForForm(ReferenceServer):
    """Pays a little for a text without a comma, as iheval of nemo-gym 0.7.0 does for each demand that a text meets."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        scored = await super().score(session_id, row, response)
        return scored if scored.reward or "," in last_text(response["output"]) else Score(0.125, {})


def test_the_form_of_a_claim_may_be_paid() -> None:
    [found] = judge(PaysForForm(), checks=("reward-claim",)).values()
    assert {one.verdict for one in found} == {Verdict.PASS}, found


class ComparesLetters(ReferenceServer):
    """Pays for how alike a text is to the right one, as chrF does, and more where it believes what it reads."""

    def __init__(self, believes: bool) -> None:
        super().__init__()
        self.believes = believes

    async def score(self, *scored: Any) -> Score:
        text = last_text(scored[-1]["output"])
        alike = SequenceMatcher(None, text, "On Monday all toolboxes were successfully put on the other shelf: done.")
        return Score(round(alike.ratio(), 6) + 0.5 * (self.believes and "success" in text), {})


@pytest.mark.parametrize(("believes", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_a_claim_may_be_more_alike_to_an_answer_than_other_texts(believes: bool, verdict: Verdict) -> None:
    assert worst(found_by("reward-claim", ComparesLetters(believes))) is verdict


class PaysForWhatStays(ReferenceServer):
    """A part of the reward is for what is right before anything is done."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        scored = await super().score(session_id, row, response)
        return replace(scored, reward=max(scored.reward, 0.25))


@pytest.mark.parametrize(("failed", "verdict"), [(1, Verdict.PASS), (2, Verdict.FAIL)], ids=["one row", "every row"])
def test_a_rollout_that_failed_may_earn_what_doing_nothing_earns(failed: int, verdict: Verdict) -> None:
    data = dataset()
    nowhere = {"amount": {"item": "saw", "quantity": 1}, "origin": "van", "destination": "van"}
    worthless = [rollout_of(row, ("move_stock", nowhere, "refused"), reward=0.25) for row in data.rows[:failed]]
    solved = data.rollouts[2 + failed : 4]
    found = found_by("verify-floor", PaysForWhatStays(), replace(data, rollouts=(*worthless, *solved)))
    assert {one.verdict for one in found} - {Verdict.NOT_APPLICABLE} == {verdict}, found


class TakesSomeTexts(ResourcesServer):
    """Refuses in one wording whatever is no such text, and no text; it has no OpenAPI document."""

    def __init__(self, form: str) -> None:
        def guess(text: str) -> Json:
            return {"guessed": text}

        super().__init__("guesses", tools=[guess], verify=lambda: 0.0)
        self.form = re.compile(form)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        text = json_body(request).get("text")
        if not isinstance(text, str) or not self.form.fullmatch(text):
            raise HttpRefusal(422, "text must be as the rules of the game say")
        return await super()._call_tool(request)


@pytest.mark.parametrize("check", ["drift-argument-refused", "calls-valid"])
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "unrecorded"])
@pytest.mark.parametrize(
    ("form", "meant", "limits", "verdict"),
    [
        pytest.param("[a-z]", "h", {"minLength": 1, "maxLength": 1}, Verdict.PASS, id="a letter"),
        pytest.param("[a-z]+", "harbour", {"minLength": 1}, Verdict.PASS, id="a word"),
        pytest.param(r"\d{4}-\d\d-\d\d", "2024-05-01", {"maxLength": 10}, Verdict.PASS, id="a day"),
        pytest.param(r"\d{4}-\d\d-\d\d", "2024-05-01", {}, Verdict.PASS, id="a day of any length"),
        pytest.param(".{0,20}", "harbour", {"maxLength": 40}, Verdict.FAIL, id="shorter than allowed"),
        pytest.param(".{4,}", "harbour", {"minLength": 1}, Verdict.FAIL, id="longer than allowed"),
        pytest.param("[a-z]+", "harbour", {"pattern": "^[a-z0-9]+$"}, Verdict.FAIL, id="fewer than allowed"),
    ],
)
def test_a_definition_of_how_long_a_text_is_does_not_say_which(
    check: str, form: str, meant: str, limits: Json, verdict: Verdict, *, recorded: bool
) -> None:
    data = rows_of(TakesSomeTexts(form))
    for row in data.rows:
        [tool] = row.data["responses_create_params"]["tools"]
        tool["parameters"]["properties"]["text"] |= limits
    rollouts = tuple(rollout_of(row, ("guess", {"text": meant}, {"guessed": meant})) for row in data.rows)
    if not limits:  # as a policy may try that knows no better
        refused = {"detail": "text must be as the rules of the game say"}
        rollouts = (*rollouts, *(rollout_of(row, ("guess", {"text": "tomorrow"}, refused)) for row in data.rows))
    found = found_by(check, TakesSomeTexts(form), replace(data, rollouts=rollouts if recorded else ()))
    told_by_drift = check == "calls-valid" and "pattern" not in limits
    assert (worst(found) is Verdict.FAIL) is (verdict is Verdict.FAIL and not told_by_drift), [
        each.actual for each in found
    ]


class Auction(ResourcesServer):
    """A bid must be more than the row's reserve, and what is wrong with a call is told in two words."""

    def __init__(self) -> None:
        def bid(lot: Literal[1], amount: Annotated[int, Field(ge=1, le=10_000)]) -> Json:
            return {"lot": lot, "bid": amount}

        super().__init__("auction", tools=[bid], verify=lambda: 0.0)
        self.reserves = dict[str, int]()
        del self.handlers["GET", "/openapi.json"]

    async def seed(self, session_id: str, row: Json) -> Json:
        self.reserves[session_id] = row["reserve"]
        return await super().seed(session_id, row)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        said = json_body(request)
        if said.get("lot") != 1:
            raise HttpRefusal(400, "invalid lot")
        amount = said.get("amount")
        if not isinstance(amount, int) or amount <= self.reserves.get(request.session_id, 0):
            raise HttpRefusal(400, "invalid bid")
        return await super()._call_tool(request)


@pytest.mark.parametrize("tried", [False, True], ids=["accepted", "refused, too"])
def test_which_numbers_there_are_may_depend_on_the_row(tried: bool) -> None:
    data = rows_of(Auction())
    rows = tuple(replace(row, data={**row.data, "reserve": 10 * at}) for at, row in enumerate(data.rows, 1))
    bids = [(row, row.data["reserve"] + 1, {"lot": 1, "bid": row.data["reserve"] + 1}) for row in rows]
    low = [(row, 1, {"detail": "invalid bid"}) for row in rows if tried]
    rollouts = tuple(rollout_of(row, ("bid", {"lot": 1, "amount": amount}, said)) for row, amount, said in low + bids)
    found = found_by("drift-argument-refused", Auction(), replace(data, rows=rows, rollouts=rollouts))
    assert worst(found) is not Verdict.FAIL, [each.actual for each in found]


def test_a_session_that_is_found_may_refuse_each_call_in_the_same_words() -> None:
    server = FindsNoSession(without_cookie=True)
    [finding] = found_by("calls-reach-session", server, rows_of(server))
    assert finding.verdict is Verdict.PASS, finding.actual


class WantsArguments(ResourcesServer):
    """Wants what its definitions do not require, and says so in the same words of each tool."""

    def __init__(self) -> None:
        def find_letter(to: str = "") -> dict[str, str]:
            """A letter."""
            return {"to": to}

        def write_letter(to: str = "") -> dict[str, str]:
            """A new letter."""
            return {"to": to}

        super().__init__("letters", tools=[find_letter, write_letter], verify=lambda: 0.0)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if not json_body(request):
            raise HttpRefusal(400, "arguments are missing")
        return await super()._call_tool(request)


def test_a_call_without_arguments_may_be_refused_where_one_with_them_is_answered() -> None:
    server = WantsArguments()
    [finding] = found_by("calls-reach-session", server, rows_of(server))
    assert finding.verdict is Verdict.PASS, finding.actual


class NumbersRollouts(ReferenceServer):
    """Tells each rollout its number, as one that draws another world for each does."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {}

    async def seed(self, session_id: str, row: Json) -> Json:
        self.numbers[session_id] = row.get("_ng_rollout_index", 0)
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return await super().call(session_id, tool, arguments) | {"rollout": self.numbers.get(session_id, 0)}


def test_a_rollout_may_differ_by_its_number() -> None:
    [finding] = found_by("isolation-same-task", NumbersRollouts())
    assert finding.verdict is Verdict.PASS, finding.actual


def test_half_a_surrogate_pair_that_came_with_the_row_is_echoed() -> None:
    """As a row has it that was cut when the dataset was made; the reference echoes what it got."""
    data = dataset()
    rows = tuple(Row({**row.data, "note": "cut \ud83d", "odds": 1e308}, row.source) for row in data.rows)
    assert worst(found_by("verify-scores-rows", ReferenceServer(), replace(data, rows=rows))) is Verdict.PASS


class _GivesTokens(ReferenceServer):
    """Each session is given a token in base64, a part of which looks like the words that only one session is told."""

    async def seed(self, session_id: str, row: Json) -> Json:
        token = "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", k=10))
        return {**await super().seed(session_id, row), "token": f"eyJzZQ.zQ{token}-9"}


def test_a_token_is_no_word_of_another_session() -> None:
    [finding] = found_by("isolation-told", _GivesTokens())
    assert finding.verdict is Verdict.PASS, finding


@pytest.mark.parametrize("check", ["step-concurrent", "step-isolation", "step-earlier"])
def test_what_luck_decides_is_laid_to_no_other_episode(check: str) -> None:
    [finding] = found_by(check, LuckDecides(), unrecorded())
    assert finding.verdict is not Verdict.FAIL, finding
