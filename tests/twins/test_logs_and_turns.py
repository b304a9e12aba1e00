"""A log of all that was tried, tools that fail on purpose, and a verify that ends the session are no violations."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from gym_conformance.findings import Verdict, worst
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from tests.twins.innocent import WithoutDocument
from tests.twins.judging import found_by
from tests.twins.twin import Turn, rollout_of
from tests.twins.unrecorded import rows_of

Json = dict[str, Any]
Few = Annotated[int, Field(ge=1, le=9)]


@dataclass
class Store:
    """What is in stock, what was tried, and how much of it was refused."""

    left: int = 7
    tried: list[Json] = field(default_factory=list)
    refused: int = 0


class KeepsALog(ResourcesServer):
    """Lists each attempt, or counts those that the stock refuses; what is malformed never comes so far.

    A careless one gives out all that there is before it refuses.
    """

    def __init__(self, *, lists: bool, careless: bool) -> None:
        def ship(state: Store, quantity: Few) -> Json:
            del state, quantity
            return {}

        def reserve(state: Store, quantity: Few) -> Json:
            del state, quantity
            return {}

        def history(state: Store) -> Json:
            of = {"attempts": len(state.tried), "log": state.tried} if lists else {"refused": state.refused}
            return {**of, "left": state.left}

        super().__init__("store", tools=[ship, reserve, history], state=Store, verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.careless = careless

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        reply, session = await super()._call_tool(request), self.sessions.get(request.session_id)
        if session is None or request.path == "/history":
            return reply
        store: Store = session.state
        quantity = json_body(request)["quantity"]
        store.tried.append({"call": f"{request.path[1:]} {quantity}", "ok": quantity <= store.left})
        if quantity > store.left:
            store.refused += 1
            store.left = 0 if self.careless else store.left
            raise HttpRefusal(409, "there are not so many")
        store.left -= quantity
        return HttpReply.json({"left": store.left})


@pytest.mark.parametrize("careless", [False, True])
@pytest.mark.parametrize("lists", [True, False], ids=["listed", "counted"])
def test_what_a_log_says_of_a_refused_call_is_no_trace_of_it(lists: bool, careless: bool) -> None:
    data = rows_of(KeepsALog(lists=lists, careless=careless))
    turns: list[Turn] = [("ship", {"quantity": 5}, {"left": 2}), ("history", {}, {"left": 2})]
    played = tuple(rollout_of(row, *turns) for row in data.rows)
    found = found_by(
        "calls-refused-harmless", KeepsALog(lists=lists, careless=careless), replace(data, rollouts=played)
    )
    assert (worst(found) is Verdict.FAIL) is careless, found


class FailsEveryThird(WithoutDocument):
    """Every third call of a session that is well formed fails, and says to try again."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status, self.made = status, Counter[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if request.body.startswith(b"{"):
            self.made[request.session_id] += 1
            if self.made[request.session_id] % 3 == 0:
                return HttpReply.json({"error": "temporarily unavailable, try again"}, self.status)
        return await super()._call_tool(request)


class ForgetsAtErrors(WithoutDocument):
    """A refused call takes back all that was done before."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            if session := self.sessions.get(request.session_id):
                session.state = self.new_state({})
            raise


@pytest.mark.parametrize(
    ("server", "fails"),
    [(FailsEveryThird(200), False), (FailsEveryThird(429), False), (ForgetsAtErrors(), True)],
    ids=["in words", "by status", "takes back"],
)
def test_calls_may_fail_on_purpose_now_and_then(server: WithoutDocument, fails: bool) -> None:
    found = found_by("calls-refused-harmless", server)
    assert (worst(found) is Verdict.FAIL) is fails, found


class OverAfterVerify(ResourcesServer):
    """A quiz that is over once it is scored; what is asked of it then is refused, as questions that are not open are."""

    def __init__(self) -> None:
        def answer(question: str) -> Json:
            return {"question": question}

        super().__init__("quiz", tools=[answer], state=Store, verify=lambda: 1.0)
        self.over = set[str]()

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        self.over |= {request.session_id} if request.path == "/verify" else set()
        return reply

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        await super()._call_tool(request)
        over = request.session_id in self.over
        raise HttpRefusal(410 if over else 404, "the quiz is over" if over else "no such question is open")


def test_a_verify_may_end_a_session_in_which_all_is_refused() -> None:
    [finding] = found_by("repeat-verify-pure", server := OverAfterVerify(), rows_of(server))
    assert finding.verdict is not Verdict.FAIL, finding.actual
