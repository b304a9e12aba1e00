"""Calls that the definition allows and the state refuses, and what they leave behind."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Verdict, worst
from gym_conformance.trajectories.profiles import Profile
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from tests.twins.judging import found_by, running
from tests.twins.twin import recorded_in_each, rollout_of
from tests.twins.unrecorded import rows_of


@dataclass
class Proof:
    lines: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


def proofs(*, careful: bool) -> ResourcesServer:
    """Assumptions are discharged; unless it is `careful`, one is gone before it shows that it cannot be."""

    def assume(state: Proof, formula: str) -> dict[str, Any]:
        """Open an assumption."""
        state.open.append(formula)
        state.lines.append(formula)
        return {"lines": len(state.lines)}

    def discharge(state: Proof, kind: Literal["implication", "negation"] = "implication") -> dict[str, Any]:
        """Close the last assumption."""
        if not state.open:
            raise HttpRefusal(409, "no assumption is open")
        assumed = state.open[-1] if careful else state.open.pop()
        if kind == "negation" and not state.lines[-1].endswith("contradiction"):
            raise HttpRefusal(409, "the last line must be a contradiction")
        if careful:
            state.open.pop()
        state.lines.append(f"{assumed} -> {state.lines[-1]}")
        return {"lines": len(state.lines)}

    def show_proof(state: Proof) -> dict[str, Any]:
        """Show the lines."""
        return {"lines": state.lines}

    return ResourcesServer("proofs", tools=[assume, discharge, show_proof], verify=lambda: 0.0, state=Proof)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_call_that_the_state_refuses_leaves_no_trace(*, careful: bool, verdict: Verdict) -> None:
    server = proofs(careful=careful)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("assume", {"formula": "p"}, {"lines": 1}),
        ("discharge", {}, {"lines": 2}),
    ]
    data = recorded_in_each(rows_of(server), *calls)
    found = found_by("calls-refused-harmless", server, data)
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Stage:
    files: tuple[str, ...] = ("readme", "notes")
    staged: list[str] = field(default_factory=list)


def stages(*, careful: bool) -> ResourcesServer:
    """Files are staged, all that are named or none; unless it is `careful`, those before one that is not there."""

    def stage(state: Stage, files: list[str]) -> dict[str, Any]:
        """Stage files."""
        for name in [each for each in files if each not in state.files][:1]:
            if not careful:
                state.staged += files[: files.index(name)]
            raise HttpRefusal(404, f"there is no {name}")
        state.staged += [each for each in files if each not in state.staged]
        return {"staged": len(files)}

    def status(state: Stage) -> dict[str, Any]:
        """Show what is staged."""
        return {"staged": sorted(set(state.staged))}

    return ResourcesServer("stages", tools=[stage, status], verify=lambda: 0.0, state=Stage)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_trace_is_seen_before_the_call_that_would_hide_it(*, careful: bool, verdict: Verdict) -> None:
    server = stages(careful=careful)
    call = ("stage", {"files": ["readme"]}, {"staged": 1})
    data = recorded_in_each(rows_of(server), call)
    found = found_by("calls-refused-harmless", server, data)
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Cask:
    liters: int = 30
    poured: list[int] = field(default_factory=list)


def cellar(*, careful: bool) -> ResourcesServer:
    """Wine is poured from a cask; unless it is `careful`, what is left is poured before there shows to be too little."""

    def pour(state: Cask, liters: Annotated[int, Field(ge=1, le=50)]) -> dict[str, Any]:
        """Pour some liters."""
        if liters > state.liters:
            state.poured += [] if careful else [state.liters]
            raise HttpRefusal(409, "there is not so much left")
        state.liters -= liters
        state.poured.append(liters)
        return {"left": state.liters}

    def look(state: Cask) -> dict[str, Any]:
        """Look at what was poured."""
        return {"poured": sum(state.poured)}

    return ResourcesServer("cellar", tools=[pour, look], verify=lambda: 0.0, state=Cask)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_number_that_is_allowed_may_be_more_than_there_is(*, careful: bool, verdict: Verdict) -> None:
    server = cellar(careful=careful)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("pour", {"liters": 2}, {"left": 28}),
        ("look", {}, {"poured": 2}),
    ]
    data = recorded_in_each(rows_of(server), *calls)
    found = found_by("calls-refused-harmless", server, data)
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Desk:
    open: list[int] = field(default_factory=lambda: [1, 2, 3, 4])
    events: list[str] = field(default_factory=list)


def desk(*, careful: bool) -> ResourcesServer:
    """Tickets are closed once; unless it is `careful`, each attempt is an event that a page of them has."""

    def close_ticket(state: Desk, number: int) -> dict[str, Any]:
        """Close a ticket."""
        if careful and number not in state.open:
            raise HttpRefusal(404, "no open ticket of that number")
        state.events.append(f"closed {number}")
        if number not in state.open:
            raise HttpRefusal(404, "no open ticket of that number")
        state.open.remove(number)
        return {"open": len(state.open)}

    def list_events(state: Desk, since: int) -> dict[str, Any]:
        """Show two events."""
        return {"events": state.events[since : since + 2]}

    return ResourcesServer("desk", tools=[close_ticket, list_events], verify=lambda: 0.0, state=Desk)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_call_that_is_refused_the_second_time_leaves_no_trace(*, careful: bool, verdict: Verdict) -> None:
    server = desk(careful=careful)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("close_ticket", {"number": 4}, {"open": 3}),
        ("close_ticket", {"number": 3}, {"open": 2}),
        ("list_events", {"since": 0}, {"events": ["closed 4", "closed 3"]}),
    ]
    found = found_by("calls-refused-harmless", server, recorded_in_each(rows_of(server), *calls))
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Rack:
    held: list[str] = field(default_factory=list)


def rack(*, careful: bool) -> ResourcesServer:
    """A rack has room for three; unless it is `careful`, it holds a coat before it sees that there is no room."""

    def hang(state: Rack, coat: str) -> dict[str, Any]:
        """Hang a coat on the rack."""
        if careful and len(state.held) > 2:
            raise HttpRefusal(409, "there is no room")
        state.held.append(coat)
        if len(state.held) > 3:
            raise HttpRefusal(409, "there is no room")
        return {"hung": coat}

    def list_coats(state: Rack) -> dict[str, Any]:
        """Show what hangs there."""
        return {"coats": state.held}

    return ResourcesServer("rack", tools=[hang, list_coats], verify=lambda: 0.0, state=Rack)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_call_that_is_refused_after_several_like_it_leaves_no_trace(*, careful: bool, verdict: Verdict) -> None:
    server = rack(careful=careful)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("hang", {"coat": "parka"}, {"hung": "parka"}),
        ("list_coats", {}, {"coats": ["parka"]}),
    ]
    found = found_by("calls-refused-harmless", server, recorded_in_each(rows_of(server), *calls))
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Till:
    accounts: dict[str, int] = field(default_factory=lambda: {"checking": 90, "savings": 40})
    moved: int = 0


def till(*, careful: bool) -> ResourcesServer:
    """Money goes from one account to another, and the number of a transfer begins a sentence; unless it is `careful`, no transfer can be disputed."""

    def balance(state: Till, account: str) -> str:
        """Show what is in an account."""
        return str(state.accounts[account]) if account in state.accounts else f"ERROR: no account {account}"

    def transfer(state: Till, source: str, target: str, amount: Annotated[int, Field(ge=1, le=1000)]) -> str:
        """Move money."""
        if not {source, target} <= state.accounts.keys():
            return f"ERROR: no account {source if source not in state.accounts else target}"
        if source == target:
            return "ERROR: the accounts are the same"
        if amount > state.accounts[source]:
            return "ERROR: insufficient funds"
        state.accounts[source] -= amount
        state.accounts[target] += amount
        state.moved += 1
        return f"T{state.moved}: moved {amount}"

    def dispute(state: Till, transaction: Annotated[str, Field(pattern="^T[0-9]+$")]) -> str:
        """Dispute a transfer."""
        if transaction not in {f"T{number + 1}" for number in range(state.moved)}:
            return "ERROR: no such transaction"
        if not careful:
            raise HttpRefusal(500, "TypeError")
        return f"dispute opened for {transaction}"

    return ResourcesServer("till", tools=[balance, transfer, dispute], verify=lambda: 0.0, state=Till)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_what_only_a_transfer_makes_possible_is_tried(*, careful: bool, verdict: Verdict) -> None:
    """Nothing is recorded, and an account that is found pays nothing to itself."""
    server = till(careful=careful)
    data = rows_of(server)
    named = {"accounts": {"checking": 90, "savings": 40}}
    data = replace(data, rows=tuple(replace(row, data={**row.data, **named}) for row in data.rows))
    found = found_by("calls-valid", server, data)
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Tickets:
    assignees: dict[int, str] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)


def ticket_desk(*, careful: bool) -> ResourcesServer:
    """Tickets are assigned until they are closed; unless it is `careful`, they are before it finds that one is closed."""

    def assign(state: Tickets, ticket: int, to: str) -> dict[str, Any]:
        """Assign an open ticket."""
        if not careful:
            state.assignees[ticket] = to
        if ticket in state.closed:
            raise HttpRefusal(409, "the ticket is closed")
        state.assignees[ticket] = to
        return {"assigned": ticket}

    def close_ticket(state: Tickets, ticket: int) -> dict[str, Any]:
        """Close a ticket."""
        state.closed.add(ticket)
        return {"closed": ticket}

    def show_tickets(state: Tickets) -> dict[str, Any]:
        """Show who has which."""
        return {"assignees": state.assignees}

    return ResourcesServer("desk", tools=[assign, close_ticket, show_tickets], verify=lambda: 0.0, state=Tickets)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_what_was_closed_meanwhile_is_not_changed(*, careful: bool, verdict: Verdict) -> None:
    server = ticket_desk(careful=careful)
    data = rows_of(server)
    done = [
        (("assign", {"ticket": at, "to": to}, {"assigned": at}), ("close_ticket", {"ticket": at}, {"closed": at}))
        for at, to in enumerate(("ann", "bob"))
    ]
    rollouts = tuple(rollout_of(row, *each) for row, each in zip(data.rows, done, strict=True))
    found = found_by("calls-refused-harmless", server, replace(data, rollouts=rollouts))
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Parcels:
    status: dict[str, str] = field(default_factory=lambda: {"p1": "packed", "p2": "delivered"})
    complaints: list[str] = field(default_factory=list)


def parcel_desk(*, careful: bool) -> ResourcesServer:
    """Parcels are called back until they are delivered; unless it is `careful`, they are before it finds that one is."""

    def call_back(state: Parcels, parcel: str) -> dict[str, Any]:
        """Call a parcel back that is under way."""
        before = state.status[parcel]
        if not careful:
            state.status[parcel] = "called back"
        if before != "packed":
            raise HttpRefusal(409, "the parcel is no longer under way")
        state.status[parcel] = "called back"
        return {"called_back": parcel}

    def complain(state: Parcels, parcel: str) -> dict[str, Any]:
        """Complain about a parcel."""
        state.complaints.append(parcel)
        return {"complaints": len(state.complaints)}

    def show_parcel(state: Parcels, parcel: str) -> dict[str, Any]:
        """Show a parcel."""
        return {"parcel": parcel, "status": state.status[parcel]}

    return ResourcesServer("parcels", tools=[call_back, complain, show_parcel], verify=lambda: 0.0, state=Parcels)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_what_another_rollout_does_is_refused_for_the_things_of_this_one(*, careful: bool, verdict: Verdict) -> None:
    server = parcel_desk(careful=careful)
    data = rows_of(server)
    called_back = ("call_back", {"parcel": "p1"}, {"called_back": "p1"})
    complained = (
        ("show_parcel", {"parcel": "p2"}, {"parcel": "p2", "status": "delivered"}),
        ("complain", {"parcel": "p2"}, {"complaints": 1}),
    )
    first, second = data.rows
    rollouts = (rollout_of(first, called_back), rollout_of(second, *complained))
    found = found_by("calls-refused-harmless", server, replace(data, rollouts=rollouts))
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Vault:
    deeds: list[str] = field(default_factory=lambda: ["house", "boat", "field"])


def vault(*, careful: bool) -> ResourcesServer:
    """One deed must stay; unless it is `careful`, it is gone before that is seen."""

    def withdraw(state: Vault, deed: str) -> dict[str, Any]:
        """Take a deed out."""
        if deed not in state.deeds:
            raise HttpRefusal(404, f"there is no {deed}")
        if careful and deed == "field":
            raise HttpRefusal(403, "it is not yours")
        state.deeds.remove(deed)
        if deed == "field":
            raise HttpRefusal(403, "it is not yours")
        return {"withdrawn": deed}

    def list_deeds(state: Vault) -> dict[str, Any]:
        """Show what is there."""
        return {"deeds": state.deeds}

    return ResourcesServer("vault", tools=[withdraw, list_deeds], verify=lambda: 0.0, state=Vault)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_call_that_was_refused_when_it_was_recorded_leaves_no_trace(*, careful: bool, verdict: Verdict) -> None:
    server = vault(careful=careful)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("withdraw", {"deed": "boat"}, {"withdrawn": "boat"}),
        ("withdraw", {"deed": "field"}, {"detail": "it is not yours"}),
        ("list_deeds", {}, {"deeds": ["house", "field"]}),
    ]
    found = found_by("calls-refused-harmless", server, recorded_in_each(rows_of(server), *calls))
    assert worst(found) is verdict, [one.actual for one in found]


@dataclass
class Labels:
    label: str = "none"


class LabelsJars(ResourcesServer):
    """A label is as long as the definition says; unless it is `careful`, a longer one is written first."""

    def __init__(self, *, careful: bool) -> None:
        def write_label(state: Labels, label: Annotated[str, Field(min_length=3, max_length=12)]) -> dict[str, Any]:
            """Write a label."""
            state.label = label
            return {"written": label}

        def read_label(state: Labels) -> dict[str, Any]:
            """Read it."""
            return {"label": state.label}

        super().__init__("jars", tools=[write_label, read_label], verify=lambda: 0.0, state=Labels)
        del self.handlers["GET", "/openapi.json"]
        self.careful = careful

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            session = self.sessions.get(request.session_id)
            match json_body(request):
                case {"label": str(text)} if session and not self.careful and len(text) > 12:
                    session.state.label = text
            raise


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_text_that_is_too_long_leaves_no_trace(*, careful: bool, verdict: Verdict) -> None:
    server = LabelsJars(careful=careful)
    [check] = [each for each in CHECKS if each.id == "calls-refused-harmless"]
    few = Profile("tests", 2, 0.0)  # what is drawn would find it only now and then
    with running(server, rows_of(server), timeout=5.0, profile=few) as run:
        [finding] = run.judge(check)
    assert finding.verdict is verdict, finding.actual
