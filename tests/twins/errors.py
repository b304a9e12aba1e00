"""Refusals in a 200: an error that changes something all the same, and others that only count, cost or are written down."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from tests.twins.twin import Twin, recorded_in_each, twin
from tests.twins.unrecorded import rows_of


@dataclass
class Till:
    money: int = 100
    refused: int = 0
    log: list[str] = field(default_factory=list)
    last: str = "none"
    over: bool = False


#: How the claims of the recorded rollouts are settled.
_SETTLED = {"C1": "paid", "C2": "denied"}

#: What a payment that cannot be made does to the till.
Refusing = Callable[[Till, int], None]


def nothing(_: Till, __: int) -> None:
    """As it should."""


def takes_it(till: Till, amount: int) -> None:
    till.money -= min(amount, till.money)


def counts(till: Till, _: int) -> None:
    till.refused += 1


def costs_a_fee(till: Till, _: int) -> None:
    till.money -= 1


def writes_it_down(till: Till, amount: int) -> None:
    till.log.append(f"could not pay {amount}")


def ends(till: Till, _: int) -> None:
    till.over = True


def keeps_its_words(till: Till, _: int) -> None:
    till.last = "not enough"


def tills(refusing: Refusing) -> ResourcesServer:
    """Payments from a till; what cannot be paid is an error in a 200."""

    def pay(state: Till, to: str, amount: Annotated[int, Field(ge=1, le=5000)]) -> dict[str, Any]:
        """Pay somebody."""
        if state.over:
            return {"error": "it is over"}
        if amount > state.money:
            refusing(state, amount)
            return {"output": "Error: there is not so much"}
        state.money -= amount
        state.log.append(f"paid {to} {amount}")
        return {"output": f"paid {to} {amount}"}

    def show(state: Till) -> dict[str, Any]:
        """Show the till."""
        if state.over:
            return {"error": "it is over"}
        return {"money": state.money, "refused": state.refused, "log": state.log, "last_error": state.last}

    return ResourcesServer("till", tools=[pay, show], verify=lambda: 0.0, state=Till)


def claims(*, acting: bool) -> ResourcesServer:
    """Claims that are paid or denied, once; a claim that is paid is denied after all where the tool is `acting` first."""

    def open_claims() -> dict[str, str]:
        return dict.fromkeys(("C1", "C2"), "open")

    def settle(state: dict[str, str], claim: str, outcome: str) -> dict[str, Any]:
        if claim not in state:
            return {"error": f"no claim {claim}"}
        before = state[claim]
        if before == "open" or (acting and outcome == "denied"):
            state[claim] = outcome
        return {"claim": claim, "status": outcome} if before == "open" else {"error": f"{claim} is {before} already"}

    def pay_claim(state: dict[str, str], claim: str) -> dict[str, Any]:
        """Pay a claim."""
        return settle(state, claim, "paid")

    def deny_claim(state: dict[str, str], claim: str) -> dict[str, Any]:
        """Deny a claim."""
        return settle(state, claim, "denied")

    def show_claim(state: dict[str, str], claim: str) -> dict[str, Any]:
        """Show a claim."""
        return {"claim": claim, "status": state[claim]} if claim in state else {"error": f"no claim {claim}"}

    tools = [pay_claim, deny_claim, show_claim]
    return ResourcesServer("claims", tools=tools, verify=lambda: 0.0, state=open_claims)


def settled() -> Dataset:
    """One claim is paid and the other one denied."""
    turns = [
        ("pay_claim", {"claim": "C1"}, {"claim": "C1", "status": "paid"}),
        ("deny_claim", {"claim": "C2"}, {"claim": "C2", "status": "denied"}),
        *(("show_claim", {"claim": claim}, {"claim": claim, "status": status}) for claim, status in _SETTLED.items()),
    ]
    return recorded_in_each(rows_of(claims(acting=False)), *turns)


def paid() -> Dataset:
    shown = {"money": 95, "refused": 0, "log": ["paid ann 5"], "last_error": "none"}
    turns = [("pay", {"to": "ann", "amount": 5}, {"output": "paid ann 5"}), ("show", {}, shown)]
    return recorded_in_each(rows_of(tills(nothing)), *turns)


#: Whoever pays twice has paid two times, which is a note.
PAYS = "repeat-tool-calls"

TWINS: tuple[Twin, ...] = (
    twin("an error changes nothing", PAYS, lambda: tills(nothing), data=paid(), tempts="calls"),
    twin("an error takes the money", f"calls-error-harmless {PAYS}", lambda: tills(takes_it), data=paid()),
    twin("errors are counted", PAYS, lambda: tills(counts), data=paid(), tempts="calls"),
    twin("errors cost a fee", PAYS, lambda: tills(costs_a_fee), data=paid(), tempts="calls"),
    twin("an error ends the episode", PAYS, lambda: tills(ends), data=paid(), tempts="calls"),
    twin("the last error is shown", PAYS, lambda: tills(keeps_its_words), data=paid(), tempts="calls"),
    twin("what is settled is not settled again", "", lambda: claims(acting=False), data=settled(), tempts="calls"),
    twin("what was paid is denied", "calls-error-harmless", lambda: claims(acting=True), data=settled()),
    twin("errors are written down", PAYS, lambda: tills(writes_it_down), data=paid(), tempts="calls"),
)
