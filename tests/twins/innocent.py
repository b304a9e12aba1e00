"""Servers that differ from the reference and break no rule: a check that fails one of them cries wolf."""

import base64
from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from gym_conformance.dataset import Dataset
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import FunctionTool, Score, StoredSession, TaskRow
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.reward import Items, paying
from tests.twins.tools import declare
from tests.twins.twin import Twin, changed, dataset, edited, twin, unrecorded


class OldServer(ReferenceServer):
    """nemo-gym 0.2.1: neither `GET /` nor aggregate_metrics."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/"], self.handlers["POST", "/aggregate_metrics"]
        del self.openapi["paths"]["/aggregate_metrics"]


class WithoutDocument(ReferenceServer):
    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]


class DescribesToolsAlone(ReferenceServer):
    """Its OpenAPI document is for the policy's tools, and has nothing of sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.openapi["paths"] = {f"/{tool}": self.openapi["paths"][f"/{tool}"] for tool in self.tools}


class Answers404Itself(WithoutDocument):
    """No tool finds what the session's row does not know, and says so with 404; nothing else tells its routes."""

    async def call(self, session_id: str, *rest: Any) -> Any:
        if self.sessions.get(session_id) is None or "saw" in str(rest):
            raise HttpRefusal(404, "nothing of the kind is kept here")
        return await super().call(session_id, *rest)


class Answers422Itself(ReferenceServer):
    """A tool refuses with 422 what it is not able to do now."""

    async def call(self, session_id: str, *rest: Any) -> Any:
        if "van" in str(rest[1:]):
            raise HttpRefusal(422, "the van is away until tomorrow")
        return await super().call(session_id, *rest)


class CatchAll(ReferenceServer):
    """One route for every tool; an unknown one is an answer like any other."""

    def __init__(self) -> None:
        super().__init__()
        for tool in self.tools:
            del self.openapi["paths"][f"/{tool}"]
        self.openapi["paths"]["/{path}"] = {"post": {}}

    def find(self, request: HttpRequest) -> Any:
        if request.method == "POST" and ("POST", request.path) not in self.handlers:
            return self._unknown
        return super().find(request)

    async def _unknown(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json({"error": f"no tool {unquote(request.path[1:])}"})


class CatchesMetrics(CatchAll):
    """What is no tool is answered with 200 and an error, /aggregate_metrics too."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["POST", "/aggregate_metrics"], self.openapi["paths"]["/aggregate_metrics"]


def refused_in_words(request: HttpRequest, reply: HttpReply) -> HttpReply:
    """A tool's 422 as a 200 with an error, and any other reply as it is."""
    refused = reply.status == 422 and request.path.endswith("_stock")
    return replace(reply, status=200, body=b'{"error": "no such move"}') if refused else reply


class WrongMovesCount(ReferenceServer):
    """A wrong call is a move like any other, answered with 200 and an error: the list of the stock says how many there were."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: Counter[str] = Counter()

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {**result, "wrong": self.wrong[session_id]} if tool.name == "list_stock" else result

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        self.wrong[self.cookie.read(request.headers.get("cookie", "")) or ""] += reply.status == 422
        return self.told(request, reply)

    def told(self, request: HttpRequest, reply: HttpReply) -> HttpReply:
        """How a wrong move is answered."""
        return refused_in_words(request, reply)


class RefusedMovesCount(WrongMovesCount):
    """The same, but the wrong call is answered with 422."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]

    def told(self, _: HttpRequest, reply: HttpReply) -> HttpReply:
        return reply


class RefusedMovesCost(WithoutDocument):
    """Each call that is refused takes a little of the reward."""

    _COSTS, _MOST = 0.05, 1000

    def __init__(self) -> None:
        super().__init__()
        self.moves, self.wrong = Counter[str](), Counter[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        self.moves[request.session_id] += 1
        if self.moves[request.session_id] > self._MOST:
            return HttpReply.json("the episode is over")
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            self.wrong[request.session_id] += 1
            raise

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        score = await super().score(session_id, row, response)
        return Score(score.reward - self._COSTS * self.wrong[session_id])


class EachMoveCosts(RefusedMovesCost):
    """The reward is discounted by the number of calls."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        score = await super().score(session_id, row, response)
        return Score(score.reward * 0.97 ** self.moves[session_id])


class HasOnlySoManyMoves(RefusedMovesCost):
    """An episode has so many moves, and what is refused is one of them."""

    _COSTS, _MOST = 0.0, 12


class WantsASessionFirst(WithoutDocument):
    """One route for every tool, and for /aggregate_metrics too, says first that there is no session."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["POST", "/aggregate_metrics"]

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if reply.status == 404 and request.method == "POST" and not request.headers.get("cookie"):
            return HttpReply.json({"error": "no session: seed one first"}, 400)
        return reply


class Creates(ReferenceServer):
    """Whatever is posted and taken is answered 201."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        return replace(reply, status=201) if request.method == "POST" and reply.status == 200 else reply


class SaysHowManyMoves(HasOnlySoManyMoves):
    """The same, and each answer says how many were made."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        return {**await super().call(session_id, tool, arguments), "moves": self.moves[session_id]}


class EndsOnUnknown(CatchAll):
    """An unknown tool ends the episode, by design; it is answered with 200, as nemo-gym 0.7.0's conversations are."""

    async def _unknown(self, request: HttpRequest) -> HttpReply:
        self.sessions.put(request.session_id, StoredSession(None, b"over"))
        return await super()._unknown(request)

    async def call(self, session_id: str, *rest: Any) -> Any:
        session = self.sessions.get(session_id)
        return "it is over" if session and session.seed == b"over" else await super().call(session_id, *rest)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        session = self.sessions.get(session_id)
        over = session is not None and session.seed == b"over"
        return Score(0.0, {}) if over else await super().score(session_id, row, response)


class SingleTurn(ReferenceServer):
    """Rows show tools, calls are graded and never executed."""

    def __init__(self) -> None:
        super().__init__()
        for tool in self.tools:
            del self.openapi["paths"][f"/{tool}"]
            del self.handlers["POST", f"/{tool}"]


class KnowsItsTasks(ReferenceServer):
    """Answers 404 to a row without a task."""

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if "expected_stock" not in row:
            raise HttpRefusal(404, "no such task")
        return await super().seed(session_id, row)


class RefusesStrangers(ReferenceServer):
    """Answers 400 to whoever has no session."""

    async def call(self, session_id: str, *rest: Any) -> Any:
        self._session(session_id)
        return await super().call(session_id, *rest)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        self._session(session_id)
        return await super().score(session_id, row, response)

    def _session(self, session_id: str) -> None:
        if self.sessions.get(session_id) is None:
            raise HttpRefusal(400, "no such session: seed it first")


class FindsNoSession(WithoutDocument):
    """Answers 404 to whoever has no session, whatever the path: nothing but a session tells its routes."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if (
            request.method == "POST"
            and request.path != "/seed_session"
            and not self.cookie.read(request.headers.get("cookie", ""))
        ):
            return HttpReply.json({"error": "no such session"}, 404)
        return await super().dispatch(request)


class ScoresOnce(ReferenceServer):
    """verify ends the episode: a second one is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.scored = set[str]()

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if session_id in self.scored:
            raise HttpRefusal(409, "this episode has been scored")
        self.scored.add(session_id)
        return await super().score(session_id, row, response)


class MoreCookies(ReferenceServer):
    """Sets more cookies: one in UTF-8, some that are deleted in odd ways, one that nests deep."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        deep = base64.b64encode(b"[" * 9_000).decode()
        odd = (
            "note=caf\u00c3\u00a9 \u00e2\u0082\u00ac",
            "a=1; max-age=--5",
            "b=2; Max-Age=\u00b2",
            f"c={deep}",
            "d=; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "=",
            ";",
        )
        reply = await super().dispatch(request)
        return reply.plus(*(("set-cookie", cookie) for cookie in odd))


class OrdersAnswers(ReferenceServer):
    """No two answers of a tool are equal: a counter over all sessions is in each. It declares no replies."""

    count = 0

    def __init__(self) -> None:
        super().__init__()
        for tool in self.tools:
            del self.openapi["paths"][f"/{tool}"]["post"]["responses"]

    async def call(self, *call: Any) -> Any:
        self.count += 1
        return {"answer": await super().call(*call), "number": self.count}


def thinks_of_it(output: Items) -> bool:
    """Looks at the reasoning, which its recorded rollouts hold: one more item of it is something else."""
    return [item["type"] for item in output].count("reasoning") > 1


def thoughtful() -> Dataset:
    """The rows with their rollouts, in each of which the policy has thought first."""
    found = dataset()
    thought = {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "Hm."}]}
    outputs = [
        {**each.data["response"], "output": [thought, *each.data["response"]["output"]]} for each in found.rollouts
    ]
    rollouts = [
        replace(one, data={**one.data, "response": new}) for one, new in zip(found.rollouts, outputs, strict=True)
    ]
    return replace(found, rollouts=tuple(rollouts))


class ToolAnswers404(ReferenceServer):
    """A tool that is routed answers 404 for its own reasons."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/get_weather"] = self._no_such_place
        self.openapi["paths"]["/get_weather"] = {"post": {}}

    async def _no_such_place(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"detail": "no such place"}, 404)


TWINS: tuple[Twin, ...] = (
    twin("as before 0.3.0", "", OldServer, tempts="live cookie metrics"),
    twin("no OpenAPI document", "", WithoutDocument, tempts="live drift tool"),
    twin("an OpenAPI document of the tools alone", "", DescribesToolsAlone, tempts="live drift tool"),
    twin(
        "tools answer 404 themselves, and no OpenAPI document",
        "",
        Answers404Itself,
        data=unrecorded(),
        tempts="tool drift calls",
    ),
    twin(
        "a tool answers 422 for reasons of its own", "", Answers422Itself, data=unrecorded(), tempts="tool drift calls"
    ),
    twin("catch-all", "", CatchAll, tempts="live tool drift calls"),
    twin("a catch-all for metrics, too", "", CatchesMetrics, tempts="live metrics tool"),
    twin("no session comes before no tool", "", WantsASessionFirst, tempts="tool calls cookie"),
    twin("all that is well is created", "", Creates, tempts="seed tool verify metrics"),
    twin("an unknown tool ends the episode", "", EndsOnUnknown, tempts="tool drift repeat"),
    twin("refused calls are counted", "", RefusedMovesCount, data=unrecorded(), tempts="tool drift repeat"),
    twin("refused calls cost a part of the reward", "", RefusedMovesCost, tempts="tool drift repeat reward"),
    twin("an episode of so many calls", "", HasOnlySoManyMoves, tempts="tool drift repeat"),
    twin("an episode of so many calls, and their number", "repeat-recorded repeat-tool-calls", SaysHowManyMoves),
    twin("a reward that is discounted by the calls", "repeat-recorded repeat-tool-calls", EachMoveCosts),
    twin("a server that knows no GET", "", changed("/", lambda _, reply: replace(reply, status=501)), tempts="live"),
    twin(
        "scores what the policy thought",
        "",
        paying(thinks_of_it, 0.5),
        data=thoughtful(),
        tempts="verify reward calibration",
    ),
    twin("single-turn", "", SingleTurn, data=unrecorded(), tempts="live tool drift seed"),
    twin("404 for a row without a task", "", KnowsItsTasks, tempts="seed verify"),
    twin("400 without a session", "", RefusesStrangers, tempts="cookie verify tool"),
    twin("404 without a session, and no OpenAPI document", "", FindsNoSession, tempts="cookie verify tool"),
    twin("a verify that is made once", "", ScoresOnce, tempts="repeat verify"),
    twin("more cookies", "", MoreCookies, tempts="cookie seed"),
    twin("no two answers equal", "", OrdersAnswers, data=unrecorded(), tempts="drift tool calls repeat"),
    twin("a routed tool answers 404", "", ToolAnswers404, data=declare("get_weather"), tempts="tool drift"),
    twin(
        "no reward components",
        "",
        edited("/verify", lambda reply: {**reply, "reward_components": None}),
        tempts="verify",
    ),
)
