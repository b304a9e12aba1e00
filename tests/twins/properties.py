"""Twins whose faults need a trajectory, two of them, an order, a value, or a moment."""

import asyncio
import copy
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.resources.sessions import SessionStore, StoredSession
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.innocent import OrdersAnswers, refused_in_words
from tests.twins.repeat import StateOfTheLastSeed
from tests.twins.typed import ClosesItsTask, KeepsItsTask, KeyedByRollout, KeyedByTask, ReplacedByRollout, SeedsEmpty

Json = dict[str, Any]


@dataclass(frozen=True)
class PropertyTwin:
    """A server with one fault.

    Attributes:
        name: what is wrong with it.
        make: makes a fresh application.
        fails: the properties that must see it.
        calls: at most so many tool calls are in the shortest example.
        sessions: at most so many sessions are.
    """

    name: str
    make: Callable[[], ASGIApp]
    fails: frozenset[str]
    calls: int = 6
    sessions: int = 3


class OneStore(ReferenceServer):
    """All sessions share one stockroom, which the first seed opens, and no seed resets."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        del session_id
        return await super().call("the only one", tool, arguments)

    async def seed(self, session_id: str, row: Json) -> Json:
        if self.sessions.get("the only one") is None:
            self.sessions.put("the only one", StoredSession(self.new_state(row)))
        return await super().seed(session_id, row)


class CountsForAll(ReferenceServer):
    """How many stockrooms there are in all is said to everybody, and so never the same in two sessions."""

    seeded = 0

    async def seed(self, session_id: str, row: Json) -> Json:
        self.seeded += 1
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {**result, "stockrooms": self.seeded} if tool.name == "list_stock" else result


class CountsForThoseWhoAdded(ReferenceServer):
    """How often anything was added in any session is said to those who have added something themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[str] = []

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name == "add_stock":
            self.added.append(session_id)
        return (
            {**result, "added": len(self.added)} if tool.name == "list_stock" and session_id in self.added else result
        )


class LastListed(ReferenceServer):
    """What somebody listed last may be counted by everybody, whatever is in stock there."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: dict[str, int] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name == "list_stock":
            self.listed = {line["item"]: line["quantity"] for line in result["lines"]}
        found = tool.name == "count_stock" and not result["quantity"] and self.listed.get(arguments["item"])
        return {"quantity": found} if found else result


class RunsOut(ReferenceServer):
    """Of each item so many may be added, by all sessions together."""

    def __init__(self) -> None:
        super().__init__()
        self.added: Counter[str] = Counter()

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name == "add_stock":
            self.added[arguments["amount"].item] += 1
            if self.added[arguments["amount"].item] > 4:
                raise HttpRefusal(409, "no more of it is to be had")
        return await super().call(session_id, tool, arguments)


class CachesByItem(ReferenceServer):
    """What was counted of an item first is what everybody is told of it, whatever is in stock there."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: dict[str, Any] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return self.counted.setdefault(arguments["item"], result) if tool.name == "count_stock" else result


class PendingRow(ReferenceServer):
    """The row of a seed waits in one place until its first call: a seed in between replaces it."""

    pending: Json | None = None

    async def seed(self, session_id: str, row: Json) -> Json:
        self.pending = row
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if self.pending is not None:
            self.sessions.put(session_id, StoredSession(self.new_state(self.pending)))
            self.pending = None
        return await super().call(session_id, tool, arguments)


class OrderLeaks(ReferenceServer):
    """Two adds and a list in one session, in this order, open a trap-door for all others."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[str]] = {}
        self.sprung: set[str] = set()

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        history = self.history.setdefault(session_id, [])
        history.append(tool.name)
        if history[-3:] == ["add_stock", "add_stock", "list_stock"]:
            self.sprung.add(session_id)
        result = await super().call(session_id, tool, arguments)
        return {"lines": []} if tool.name == "list_stock" and self.sprung - {session_id} else result

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        self.sprung.discard(session_id)
        return await super().score(session_id, row, response)


class OneCountForAll(ReferenceServer):
    """What open sessions added to the van is counted for all of them: two must speak of one item there."""

    def __init__(self) -> None:
        super().__init__()
        self.vans: dict[str, Counter[str]] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name == "add_stock" and arguments["place"] == "van":
            van = self.vans.setdefault(session_id, Counter())
            van[arguments["amount"].item] += arguments["amount"].quantity
        if tool.name == "count_stock" and arguments["place"] == "van":
            others = (van[arguments["item"]] for owner, van in self.vans.items() if owner != session_id)
            return {"quantity": result["quantity"] + sum(others)}
        return result

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        self.vans.pop(session_id, None)
        return await super().score(session_id, row, response)


class CurrentSession(ReferenceServer):
    """The session's id stands in one place across an await: harmless until two calls run at once."""

    current = ""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        self.current = session_id
        await asyncio.sleep(0.005)
        return await super().call(self.current, tool, arguments)


class ScoresByAnswer(ReferenceServer):
    """A score is kept under what the policy said last, whatever the row."""

    kept: dict[str, Score] = {}  # noqa: RUF012 - one place for all, as in what shipped

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        text = json.dumps(response["output"][-1:])
        if text not in self.kept:
            self.kept[text] = await super().score(session_id, row, response)
        return self.kept[text]


class ArgumentsInOnePlace(ReferenceServer):
    """What is asked for stands in one place across an await: another's words are written where two ask alike at once."""

    arguments: Json = {}  # noqa: RUF012 - one place for all, as in what shipped

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name == "add_stock":
            self.arguments = arguments
            await asyncio.sleep(0.005)
            arguments = self.arguments
        return await super().call(session_id, tool, arguments)


class RefusesLate(ReferenceServer):
    """A call that is refused has already cleared the session it came in."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        session_id = self.cookie.read(request.headers.get("cookie", ""))
        session = self.sessions.get(session_id or "")
        if reply.status == 422 and request.path == "/add_stock" and session is not None:
            session.state.pieces.clear()
        return reply


class RollsBack(ReferenceServer):
    """A refused call is answered with 200 and an error, and everything that its session did before is taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Json] = {}

    async def seed(self, session_id: str, row: Json) -> Json:
        self.rows[session_id] = row
        return await super().seed(session_id, row)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        session_id = self.cookie.read(request.headers.get("cookie", "")) or ""
        if reply.status == 422 and request.path.endswith("_stock") and session_id in self.rows:
            self.sessions.put(session_id, StoredSession(self.new_state(self.rows[session_id])))
        return refused_in_words(request, reply)


class FailsOnLargeQuantities(ReferenceServer):
    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name == "add_stock" and arguments["amount"].quantity > 500:
            raise OverflowError("the shelf breaks")
        return await super().call(session_id, tool, arguments)


class ScoresSmallShelvesAlone(ReferenceServer):
    """verify fails on a state that the tools allow."""

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        session = self.sessions.get(session_id)
        if session and max(session.state.pieces.values(), default=0) > 500:
            raise OverflowError("the shelf cannot be weighed")
        return await super().score(session_id, row, response)


class PenaltyInNoComponent(ReferenceServer):
    """Large shelves cost something, which no component says."""

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = await super().score(session_id, row, response)
        session = self.sessions.get(session_id)
        large = session and max(session.state.pieces.values(), default=0) > 500
        return replace(score, reward=score.reward - 0.25) if large else score


class RefusesNull(ReferenceServer):
    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name == "list_stock" and arguments["category"] is None:
            raise HttpRefusal(422, [{"loc": ["body", "category"], "msg": "Input should be a string"}])
        return await super().call(session_id, tool, arguments)


class LooksAtTextBeforeTheModel(ReferenceServer):
    """Indexes the arguments before they are validated."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/count_stock" and b'"item":' not in request.body.replace(b" ", b""):
            raise KeyError("item")
        return await super().dispatch(request)


class CountsBeforeTheModel(ReferenceServer):
    """Sums up the pieces in 64 bits before the arguments are validated."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/add_stock":
            for number in re.findall(rb'"quantity": *(\d+)', request.body):
                int(number).to_bytes(8, "big")
        return await super().dispatch(request)


class ComparesBeforeTheModel(ReferenceServer):
    """Holds the pieces to a bound, which a text or null cannot be, before the arguments are validated."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/add_stock" and isinstance(amount := json.loads(request.body).get("amount"), dict):
            amount.get("quantity", 0) < 1_000_000  # noqa: B015 - it is the comparison that raises
        return await super().dispatch(request)


class RandomReward(ReferenceServer):
    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = await super().score(session_id, row, response)
        return type(score)(score.reward + random.choice([0.0, 0.25]), {})


class PaysById(ReferenceServer):
    """The response's id decides on a part of the reward."""

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = await super().score(session_id, row, response)
        return type(score)(score.reward + random.Random(response["id"]).choice([0.0, 0.25]), {})


class VerifyConsumes(ReferenceServer):
    """verify pays for doing something, and forgets what was done."""

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        session = self.sessions.get(session_id)
        done = bool(session and session.state.reads)
        if session:
            session.state.reads = 0
        score = await super().score(session_id, row, response)
        return type(score)(float(done), {})


class VerifyEmpties(ReferenceServer):
    """verify clears the stockroom, and remembers the reward."""

    def __init__(self) -> None:
        super().__init__()
        self.paid: dict[str, Any] = {}

    async def score(self, session_id: str, row: Any, response: Json) -> Any:
        score = self.paid.setdefault(session_id, await super().score(session_id, row, response))
        if session := self.sessions.get(session_id):
            session.state.pieces.clear()
        return score

    async def seed(self, session_id: str, row: Json) -> Json:
        self.paid.pop(session_id, None)
        return await super().seed(session_id, row)


class FillsLater(ReferenceServer):
    """A task of its own fills the session, a moment after the seed was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.filling: set[asyncio.Task[Any]] = set()

    async def seed(self, session_id: str, row: Json) -> Json:
        self.filling.add(asyncio.create_task(self._fill(session_id, row)))
        return await super().seed(session_id, {})

    async def _fill(self, session_id: str, row: Json) -> None:
        await asyncio.sleep(0.25)
        await super().seed(session_id, row)


class WritesLater(ReferenceServer):
    """What is added is there a moment after it was acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.writing: set[asyncio.Task[Any]] = set()

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name != "add_stock":
            return await super().call(session_id, tool, arguments)
        self.writing.add(asyncio.create_task(self._write(session_id, tool, arguments)))
        return {"quantity": arguments["amount"].quantity}

    async def _write(self, session_id: str, tool: FunctionTool, arguments: Json) -> None:
        await asyncio.sleep(0.25)
        await super().call(session_id, tool, arguments)


class ScoresUnfinished(WritesLater):
    """The same, but that reads wait for what was acknowledged; the verify does not."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name != "add_stock":
            await asyncio.gather(*self.writing)
        return await super().call(session_id, tool, arguments)


class RemembersReads(ReferenceServer):
    """What a session was answered to a read is what it is answered to it again, once there was anything to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[tuple[str, str, str], Any] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        answer = await super().call(session_id, tool, arguments)
        if tool.name == "add_stock" or not (answer.get("lines") or answer.get("quantity")):
            return answer
        return self.answers.setdefault((session_id, tool.name, str(arguments)), answer)


class LosesUpdates(ReferenceServer):
    """What is added is written to the stock as it was a moment ago."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        stored = copy.deepcopy(self.sessions.get(session_id))
        if tool.name == "add_stock" and stored:
            await asyncio.sleep(0.02)
            self.sessions.put(session_id, stored)
        return await super().call(session_id, tool, arguments)


class TwoCopies(ReferenceServer):
    """Two workers answer, as it happens, each with a copy of the session that only its own writes change."""

    async def seed(self, session_id: str, row: Json) -> Json:
        await super().seed(f"{session_id} a", row)
        return await super().seed(f"{session_id} b", row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return await super().call(f"{session_id} {random.choice('ab')}", tool, arguments)

    async def score(self, session_id: str, row: Any, response: Json) -> Score:
        return await super().score(f"{session_id} {random.choice('ab')}", row, response)


class SaysStateless(ReferenceServer):
    def __init__(self) -> None:
        super().__init__()
        self.handlers["GET", "/reverify_mode"] = self._mode

    async def _mode(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json("stateless")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ISOLATION = _words("isolation-interleaved isolation-concurrent isolation-crowded")

TWINS = (
    PropertyTwin("state shared by all sessions", StateOfTheLastSeed, _ISOLATION - {"isolation-concurrent"}),
    PropertyTwin("one store that no seed resets", OneStore, _words("isolation-earlier isolation-told"), calls=24, sessions=4),
    PropertyTwin("a count of all sessions that only reads show", CountsForAll, _words("isolation-earlier"), calls=40),
    PropertyTwin("a count that shows where a session has come to", CountsForThoseWhoAdded, _words("isolation-earlier"), calls=60),
    PropertyTwin("a score kept under the answer alone", ScoresByAnswer, _words("isolation-earlier"), calls=40),
    PropertyTwin("a list that everybody may count from", LastListed, _words("isolation-earlier"), calls=40),
    PropertyTwin("a stock that all sessions use up", RunsOut, _words("isolation-earlier"), calls=200, sessions=16),
    PropertyTwin("a cache keyed by an item's name", CachesByItem, _words("isolation-earlier"), calls=40),
    PropertyTwin("a row that waits in one place", PendingRow, _words("isolation-interleaved")),
    PropertyTwin("three calls in one order open a trap-door", OrderLeaks, _words("isolation-interleaved"), calls=9),
    PropertyTwin("one count for all", OneCountForAll, _words("isolation-interleaved")),
    PropertyTwin("a copy of the session in each of two workers", TwoCopies, _words("isolation-two-clients"), calls=40),
    PropertyTwin("no two replies equal", OrdersAnswers, _words("repeat-replies"), calls=1),
    PropertyTwin("the current session across an await", CurrentSession, _words("isolation-concurrent")),
    PropertyTwin("arguments in one place across an await", ArgumentsInOnePlace, _words("isolation-told"), calls=40, sessions=4),
    PropertyTwin("the sixth session evicts the first", lambda: ReferenceServer(sessions=SessionStore(limit=5)), _words("isolation-crowded"), calls=12, sessions=7),
    PropertyTwin("a tool that fails on a value its definition allows", FailsOnLargeQuantities, _words("calls-valid"), calls=1),
    PropertyTwin("a verify that fails on a state its tools allow", ScoresSmallShelvesAlone, _words("calls-valid"), calls=1),
    PropertyTwin("a penalty that is in no component", PenaltyInNoComponent, _words("calls-valid"), calls=1),
    PropertyTwin("a tool that refuses a value its definition allows", RefusesNull, _words("calls-valid"), calls=1),
    PropertyTwin("a tool that crashes on a call with one thing wrong", LooksAtTextBeforeTheModel, _words("calls-invalid"), calls=2),
    PropertyTwin("a tool that crashes on a number far out of its bounds", CountsBeforeTheModel, _words("calls-invalid"), calls=2),
    PropertyTwin("a tool that compares a value before its type is known", ComparesBeforeTheModel, _words("calls-invalid"), calls=2),
    PropertyTwin("a refused call leaves traces", RefusesLate, _words("calls-refused-harmless"), calls=3),
    PropertyTwin("a call refused in words takes back those before it", RollsBack, _words("calls-refused-harmless"), calls=8),
    PropertyTwin("a seed that goes on after its reply", FillsLater, _words("seed-complete"), calls=1, sessions=1),
    PropertyTwin("a write that is acknowledged before it is done", WritesLater, _words("calls-complete"), calls=6, sessions=1),
    PropertyTwin("a verify that does not wait for writes", ScoresUnfinished, _words("calls-complete"), calls=6, sessions=1),
    PropertyTwin("a read that is remembered", RemembersReads, _words("calls-complete"), calls=9, sessions=1),
    PropertyTwin("calls at once that lose what others write", LosesUpdates, _words("calls-complete"), calls=9, sessions=1),
    PropertyTwin("a random reward", RandomReward, _words("repeat-deterministic")),
    PropertyTwin("a reward that hangs on the response's id", PaysById, _words("repeat-deterministic")),
    PropertyTwin("verify forgets what was done", VerifyConsumes, _words("repeat-verify"), calls=1),
    PropertyTwin("verify clears the state", VerifyEmpties, _words("repeat-verify-pure"), calls=2),
    PropertyTwin("a stateless verify that reads the session", SaysStateless, _words("repeat-stateless")),
    PropertyTwin("typed sessions of one task share a state", KeyedByTask, _words("typed-isolation")),
    PropertyTwin("typed sessions of one task share a state for good", KeepsItsTask, _words("typed-isolation"), calls=40, sessions=6),
    PropertyTwin("attempts of one rollout share a state", KeyedByRollout, _words("typed-isolation"), calls=40),
    PropertyTwin("attempts of one rollout replace a state", ReplacedByRollout, _words("typed-isolation"), calls=40),
    PropertyTwin("a close that ends all sessions of its task", ClosesItsTask, _words("typed-isolation"), calls=8),
    PropertyTwin("a typed seed that does not read the row", SeedsEmpty, _words("typed-like-cookie"), calls=1),
)  # fmt: skip
