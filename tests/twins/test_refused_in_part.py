"""A box office that refuses a call as a whole, and twins that have done a part of it by then."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Verdict
from gym_conformance.trajectories.profiles import Profile
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from tests.twins.judging import found_by, running
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import rows_of


class Order(BaseModel):
    """So many of a thing."""

    thing: Literal["tea", "cake"]
    pieces: Annotated[int, Field(ge=1, le=9)]


@dataclass
class Evening:
    """What was ordered, and the chairs that are taken."""

    orders: list[Any] = field(default_factory=list)
    taken: set[Any] = field(default_factory=set)


class BoxOffice(ResourcesServer):
    """`keeps` names the argument that is read, and acted on, before what follows it is."""

    def __init__(self, keeps: str) -> None:
        def order(state: Evening, orders: Annotated[list[Order], Field(max_length=6)]) -> dict[str, Any]:
            state.orders += [each.model_dump() for each in orders]
            return {"ordered": len(orders)}

        def hold(
            state: Evening,
            chair: Annotated[str, Field(pattern="^[A-C][1-9]$")],
            guest: Annotated[str, Field(min_length=1)],
        ) -> dict[str, Any]:
            if chair in state.taken:
                return {"error": f"{chair} is taken"}
            state.taken.add(chair)
            return {"held": chair, "guest": guest}

        def list_orders(state: Evening) -> dict[str, Any]:
            return {"orders": state.orders}

        super().__init__("box_office", tools=[order, hold, list_orders], verify=lambda: 0.0, state=Evening)
        del self.handlers["GET", "/openapi.json"]
        self.keeps = keeps

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            session = self.sessions.get(request.session_id)
            state = session.state if session else Evening()
            match self.keeps, json_body(request):
                case "orders", {"orders": [{"thing": _, "pieces": int()} as first, _, *_]}:
                    state.orders.append(first)
                case "chair", {"chair": str(chair), "guest": dict() | list()}:
                    state.taken.add(chair)
            raise


@pytest.mark.parametrize(
    ("keeps", "verdict"), [("nothing", Verdict.PASS), ("orders", Verdict.FAIL), ("chair", Verdict.FAIL)]
)
def test_a_refused_call_has_done_nothing_of_what_is_right_in_it(keeps: str, verdict: Verdict) -> None:
    [check] = [each for each in CHECKS if each.id == "calls-refused-harmless"]
    few = Profile("tests", 2, 0.0)  # what is drawn would find it only now and then
    with running(BoxOffice(keeps), rows_of(BoxOffice(keeps)), timeout=5.0, profile=few) as run:
        [finding] = run.judge(check)
    assert finding.verdict is verdict, (finding.actual, finding.reason)


KNOWN = ["Ada", "Bo"]


def guest_list(*, hasty: bool) -> ResourcesServer:
    """Invites guests whom it knows; one that is `hasty` looks each of them up when the ones before are invited."""

    def invite(state: list[str], guests: list[str]) -> dict[str, Any]:
        for guest in guests:
            if guest not in KNOWN:
                raise HttpRefusal(404, f"{guest} is not known")
            if hasty:
                state.append(guest)
        if not hasty:
            state.extend(guests)
        return {"invited": len(guests)}

    def list_invited(state: list[str]) -> dict[str, Any]:
        return {"invited": state}

    return ResourcesServer("guest_list", tools=[invite, list_invited], verify=lambda: 0.0, state=list)


@pytest.mark.parametrize(("hasty", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_names_that_nobody_knows_come_after_known_ones(*, hasty: bool, verdict: Verdict) -> None:
    server, rows = guest_list(hasty=hasty), rows_of(guest_list(hasty=hasty))
    invited = ("invite", {"guests": ["Ada"]}, {"invited": 1})
    data = replace(rows, rollouts=(rollout_of(rows.rows[0], invited, ("list_invited", {}, {}), said="Invited."),))
    [finding] = found_by("calls-refused-harmless", server, data)
    assert finding.verdict is verdict, (finding.actual, finding.reason)
