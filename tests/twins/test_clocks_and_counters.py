"""Worlds that count calls, go on in pauses and name their process are no violations."""

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import Field

from gym_conformance.checks.calls.generated import calls_refused_harmless
from gym_conformance.contract.dataset_rows import Call, Rollout
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict, worst
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.learn import recorded_trajectories
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials import recorded
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.trial import Trial
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import ResourcesServer
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.innocent import WithoutDocument
from tests.twins.judging import found_by, on_gym
from tests.twins.twin import Turn, dataset, rollout_of
from tests.twins.unrecorded import rows_of

Json = dict[str, Any]
Short = Annotated[str, Field(min_length=1, max_length=40)]


class TicksForEachCall(WithoutDocument):
    """A clock that each call moves on, refused or taken, and a budget; but most tools refuse what is malformed before that."""

    def __init__(self) -> None:
        super().__init__()
        self.made = Counter[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            self.made[request.session_id] += request.path == "/add_stock"
            raise

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        self.made[session_id] += 1
        made = self.made[session_id]
        clock = datetime(2031, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * made)
        result = await super().call(session_id, tool, arguments)
        due = {"due": (clock + timedelta(days=1)).isoformat()} if tool.name == "move_stock" else {}
        return {**result, **due, "clock": clock.isoformat(), "calls_left": 500 - made}


class EndsAfterNine(TicksForEachCall):
    """The same, and there are nine calls."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if self.made[session_id] >= 9:
            raise HttpRefusal(409, "no calls are left")
        return await super().call(session_id, tool, arguments)


class CountsPieces(TicksForEachCall):
    """Refused calls of one tool leave a piece behind, which all replies tell of: that is no count of calls."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        pieces = self.made[session_id]
        result = await super().call(session_id, tool, arguments)
        self.made[session_id] = pieces + (tool.name == "add_stock")
        return {key: value for key, value in result.items() if key not in ("clock", "due")}


@pytest.mark.parametrize(
    ("server", "verdict"),
    [
        (TicksForEachCall, Verdict.PASS),
        pytest.param(EndsAfterNine, Verdict.PASS, marks=pytest.mark.twins),
        (CountsPieces, Verdict.FAIL),
    ],
    ids=["calls", "nine", "pieces"],
)
def test_what_each_call_moves_on_is_no_trace_of_a_refused_one(server: type[TicksForEachCall], verdict: Verdict) -> None:
    [finding] = found_by("calls-refused-harmless", server())
    assert finding.verdict is verdict, finding.actual


class Numbers(WithoutDocument):
    """Each call of a tool takes the next number, as from a database's sequence, before it is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = Counter[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        self.taken[request.session_id] += request.path == "/add_stock"
        return await super()._call_tool(request)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {**result, "order_id": f"A-{self.taken[session_id]}"} if tool.name == "add_stock" else result


class NumbersPieces(Numbers):
    """The same, and the number is that of the pieces, which are counted so."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {**result, "pieces": self.taken[session_id]}


@pytest.mark.parametrize(
    ("server", "verdict"),
    [(Numbers, Verdict.PASS), pytest.param(NumbersPieces, Verdict.FAIL, marks=pytest.mark.twins)],
)
def test_a_number_that_a_refused_call_uses_up_is_no_trace_of_it(server: type[Numbers], verdict: Verdict) -> None:
    [finding] = found_by("calls-refused-harmless", server())
    assert finding.verdict is verdict, finding.actual


class CountsAllCalls(TicksForEachCall):
    """Each call is counted, whatever is wrong with it, and there are nine."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if self.made[request.session_id] >= 9:
            raise HttpRefusal(409, "no calls are left")
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            self.made[request.session_id] += request.path != "/add_stock"
            raise


class TakesBackNow(CountsAllCalls):
    """And two tools' refused calls each take back what was moved."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            if request.path != "/count_stock" and (session := self.sessions.get(request.session_id)):
                session.state = self.new_state({})
            raise


@pytest.mark.parametrize(
    ("server", "told"), [(CountsAllCalls, NotApplicable), (TakesBackNow, Violation)], ids=["counted", "written"]
)
def test_different_refused_calls_may_use_up_a_budget(server: type[CountsAllCalls], told: type[Exception]) -> None:
    wrongs = [Json(), {"unknown": 1}, {"item": []}]

    async def attempted(gym: Gym) -> None:
        noisy = max(recorded_trajectories(gym), key=lambda one: len(one.calls))
        for tool in noisy.row.tools:
            for wrong in wrongs:
                noisy = noisy.with_noise(2, Call(tool.name, wrong))
        assert calls_refused_harmless.attempt
        await calls_refused_harmless.attempt(Trial(Bench(gym)), Schedule((noisy,)))

    with pytest.raises(told):
        on_gym(server(), attempted)


class ArrivesLater(WithoutDocument):
    """What a call orders arrives a while later, and the next reply tells; a refusal takes its time, too."""

    def __init__(self) -> None:
        super().__init__()
        self.ordered: dict[str, float] = {}

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            await asyncio.sleep(0.02)
            raise

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        waited = time.monotonic() - self.ordered.get(session_id, 0.0)
        self.ordered[session_id] = time.monotonic()
        return {**await super().call(session_id, tool, arguments), "order": "there" if waited > 0.05 else "on its way"}


def test_time_that_refused_calls_take_is_no_trace_of_them() -> None:
    async def attempted(gym: Gym) -> None:
        noisy = max(recorded_trajectories(gym), key=lambda one: len(one.calls))
        noisy = noisy.with_noise(2, *[Call(noisy.calls[0].name, Json())] * 4)
        assert calls_refused_harmless.attempt
        await calls_refused_harmless.attempt(Trial(Bench(gym)), Schedule((noisy,)))

    on_gym(ArrivesLater(), attempted)


class CountsSteps(WithoutDocument):
    """A game of so many steps: each call of a tool is one, whatever its arguments; what is no object is none."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = Counter[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        self.steps[request.session_id] += request.body.startswith(b"{")
        if self.steps[request.session_id] > 25:
            raise HttpRefusal(409, "the game is over")
        return await super()._call_tool(request)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return result if tool.name == "add_stock" else {**result, "steps_left": 25 - self.steps[session_id]}


class SaysStepsInWords(CountsSteps):
    """The same, and a text says how many are left."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {**result, "lamp": f"oil for {25 - self.steps[session_id]} steps"}


class TakesAndCountsSteps(CountsSteps):
    """And one tool's refused calls write."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            if request.path == "/move_stock" and (session := self.sessions.get(request.session_id)):
                session.state = self.new_state({})
            raise


@pytest.mark.parametrize(
    ("server", "verdict"),
    [
        (CountsSteps, Verdict.NOT_APPLICABLE),
        (SaysStepsInWords, Verdict.NOT_APPLICABLE),
        (TakesAndCountsSteps, Verdict.FAIL),
    ],
    ids=["counted", "in words", "written"],
)
def test_refused_calls_may_be_steps_of_a_game_of_which_some_are_none(
    server: type[CountsSteps], verdict: Verdict
) -> None:
    [finding] = found_by("tool-refused-call", server())
    assert finding.verdict is verdict, finding.actual


class MustBeSeen(WithoutDocument):
    """What was moved arrives one after the other, a while after the last: each once somebody has seen the one before.

    Who asks before that is told so, or is told some number or other.
    """

    def __init__(self, *, tells: bool) -> None:
        super().__init__()
        self.tells = tells
        self.under_way = Counter[str]()
        self.since: dict[str, float] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name == "count_stock" and self.under_way[session_id]:
            if time.monotonic() - self.since[session_id] < 0.2:
                return {"state": "under way"} if self.tells else {"quantity": random.random()}
            self.under_way[session_id] -= 1
            self.since[session_id] = time.monotonic()
        result = await super().call(session_id, tool, arguments)
        if tool.name == "move_stock":
            self.under_way[session_id] += 1
            self.since[session_id] = time.monotonic()
        return result

    async def score(self, session_id: str, *rest: Any) -> Any:
        score = await super().score(session_id, *rest)
        return replace(score, reward=0.0) if self.under_way[session_id] else score


@pytest.mark.parametrize("tells", [True, False])
def test_a_record_holds_that_rests_on_what_was_seen_after_a_pause(tells: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "PAUSES", (0.3,))
    found = found_by("repeat-recorded", MustBeSeen(tells=tells))
    assert worst(found) is Verdict.PASS, found


class NamesItself(WithoutDocument):
    """Each reply says which process gave it, and one tool what all prices are in."""

    def __init__(self, currency: str, by: int | str = 4711) -> None:
        super().__init__()
        self.currency, self.by = currency, by

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = {**await super().call(session_id, tool, arguments), "by": self.by}
        return {**result, "currency": self.currency} if tool.name == "count_stock" else result


def recorded_elsewhere(by: int | str = 17) -> Dataset:
    """The rollouts, as another process with another id recorded them."""
    data = dataset()

    def of_another_process(rollout: Rollout) -> Rollout:
        made = json.loads(json.dumps(rollout.data))
        names = {item["call_id"]: item["name"] for item in made["response"]["output"] if item.get("name")}
        for item in made["response"]["output"]:
            if item["type"] == "function_call_output":
                said = {**json.loads(item["output"]), "by": by}
                said |= {"currency": "EUR"} if names[item["call_id"]] == "count_stock" else {}
                item["output"] = json.dumps(said)
        return replace(rollout, data=made)

    return replace(data, rollouts=tuple(map(of_another_process, data.rollouts)))


@pytest.mark.parametrize(("currency", "verdict"), [("EUR", Verdict.PASS), ("USD", Verdict.FAIL)])
def test_what_names_the_process_is_no_part_of_a_record(currency: str, verdict: Verdict) -> None:
    found = found_by("repeat-recorded", NamesItself(currency), recorded_elsewhere())
    assert worst(found) is verdict, found


@pytest.mark.parametrize(
    ("was", "now", "verdict"),
    [
        ("ip-10-0-3-17", "ip-10-0-4-11", Verdict.PASS),
        ("3fd1c09a", "77be2f04", Verdict.PASS),
        ("EUR", "USD", Verdict.FAIL),
        ("prices of 2025", "prices of 2026", Verdict.FAIL),
        ("v1.2", "v2.0", Verdict.FAIL),
        ("2025-03-01", "2024-03-01", Verdict.FAIL),
    ],
)
def test_what_is_the_same_in_all_replies_belongs_to_the_record_unless_it_looks_like_a_process(
    was: str, now: str, verdict: Verdict
) -> None:
    found = found_by("repeat-recorded", NamesItself("EUR", by=now), recorded_elsewhere(was))
    assert worst(found) is verdict, found


class SaysHowLongItTook(ReferenceServer):
    """How long each call took, in milliseconds: one, unless others are made meanwhile. Or how many are made."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.under_way = 0

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        self.under_way += 1
        await asyncio.sleep(0.005)
        took = {self.key: self.under_way}
        self.under_way -= 1
        return {"answer": await super().call(session_id, tool, arguments), **took}


@pytest.mark.parametrize(
    ("key", "verdict"),
    [("elapsed_ms", Verdict.PASS), pytest.param("pieces", Verdict.FAIL, marks=pytest.mark.twins)],
)
def test_a_call_takes_longer_while_others_are_made(key: str, verdict: Verdict) -> None:
    data = replace(dataset(), rollouts=())
    [finding] = found_by("isolation-concurrent", SaysHowLongItTook(key), data)
    assert finding.verdict is verdict, finding.actual


@dataclass
class Notes:
    """Notes under ids of their own, those that the index knows, and how many calls were made."""

    kept: dict[str, str] = field(default_factory=dict)
    indexed: dict[str, str] = field(default_factory=dict)
    made: int = 0


class IndexLagsBehind(ResourcesServer):
    """What is written is found once the index has caught up: after each third call, or a refused one, if careless."""

    def __init__(self, *, careless: bool = False) -> None:
        def add_note(state: Notes, text: Short) -> Json:
            note = f"note-{random.randrange(16**8):08x}"
            state.kept[note] = text
            return {"note_id": note}

        def search(state: Notes, query: Short) -> Json:
            return {"hits": [{"note_id": note, "text": text} for note, text in state.indexed.items() if query in text]}

        def delete_note(state: Notes, note_id: Short) -> Json:
            del state
            raise HttpRefusal(403, f"{note_id} is protected")

        super().__init__("notes", tools=[add_note, search, delete_note], state=Notes, verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.careless = careless

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        refused = True
        try:
            reply = await super()._call_tool(request)
            refused = False
        finally:
            if session := self.sessions.get(request.session_id):
                session.state.made += 1
                if refused if self.careless else session.state.made % 3 == 0:
                    session.state.indexed = dict(session.state.kept)
        return reply


@pytest.mark.parametrize("careless", [False, True])
def test_what_calls_bring_to_light_may_be_named_otherwise_each_time(careless: bool) -> None:
    data = rows_of(IndexLagsBehind(careless=careless))
    turns: list[Turn] = [
        ("add_note", {"text": "a lantern"}, {"note_id": "note-1"}),
        ("search", {"query": "lantern"}, {"hits": []}),
        ("search", {"query": "lantern"}, {"hits": []}),
    ]
    played = tuple(rollout_of(row, *turns) for row in data.rows)
    found = found_by("calls-refused-harmless", IndexLagsBehind(careless=careless), replace(data, rollouts=played))
    assert (worst(found) is Verdict.FAIL) is careless, found
