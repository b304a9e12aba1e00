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


def paid() -> Dataset:
    turns = [("pay", {"to": "ann", "amount": 5}, {"output": "paid ann 5"}), ("show", {}, {"money": 95})]
    return recorded_in_each(rows_of(tills(nothing)), *turns)


TWINS: tuple[Twin, ...] = (
    twin("an error changes nothing", "", lambda: tills(nothing), data=paid(), tempts="calls"),
    twin("an error takes the money", "calls-error-harmless", lambda: tills(takes_it), data=paid()),
    twin("errors are counted", "", lambda: tills(counts), data=paid(), tempts="calls"),
    twin("errors cost a fee", "", lambda: tills(costs_a_fee), data=paid(), tempts="calls"),
    twin("an error ends the episode", "", lambda: tills(ends), data=paid(), tempts="calls"),
    twin("the last error is shown", "", lambda: tills(keeps_its_words), data=paid(), tempts="calls"),
    twin("errors are written down", "", lambda: tills(writes_it_down), data=paid(), tempts="calls"),
)
