"""Orders that a task names, and that are cancelled for a reason of several words, which comes back in the reply: nothing is recorded."""

from dataclasses import dataclass, field

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import said_by_users, tool

_ORDERS = {"#W2378156": "keyboard", "#W6729841": "lamp"}
_REASONS = ("no longer needed", "ordered by mistake")


@dataclass
class Desk:
    """One session: the orders that it has cancelled, each with its reason."""

    cancelled: dict[str, str] = field(default_factory=dict)


def _desk(habit: str) -> ResourcesServer:
    ever: set[str] = set()

    def get_order(state: Desk, order_id: str) -> dict[str, str] | str:
        """Look an order up."""
        if order_id not in _ORDERS:
            return "Error: order not found"
        gone = order_id in (ever if habit == "cancelled for all" else state.cancelled)
        return {"item": _ORDERS[order_id], "status": "cancelled" if gone else "pending"}

    def cancel_order(state: Desk, order_id: str, reason: str) -> dict[str, str] | str:
        """Cancel a pending order."""
        if order_id not in _ORDERS:
            return "Error: order not found"
        if order_id in state.cancelled:
            return "Error: the order is not pending"
        if habit == "acts all the same":
            state.cancelled[order_id] = reason
        if reason not in _REASONS[: 1 if habit == "one reason only" else None]:
            return "Error: invalid reason"
        state.cancelled[order_id] = reason
        ever.add(order_id)
        return {"item": _ORDERS[order_id], "status": "cancelled", "reason": reason}

    server = ResourcesServer("desk", tools=[get_order, cancel_order], verify=lambda: 0.0, state=Desk)
    del server.handlers["GET", "/openapi.json"]
    return server


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("own", set()),
        ("cancelled for all", {"isolation-earlier"}),
        ("one reason only", {"drift-argument-refused"}),
        ("acts all the same", {"calls-error-harmless"}),
    ],
)
def test_what_becomes_of_orders_is_told(habit: str, told: set[str]) -> None:
    server = _desk(habit)
    text = {"type": "string"}
    tools = [
        tool("get_order", order_id=text),
        tool("cancel_order", order_id=text, reason={**text, "enum": list(_REASONS)}),
    ]
    said = ("I am Mia, and my order #W2378156 is no longer needed.", "I ordered the lamp (#W6729841) by mistake.")
    checks = {"isolation-earlier", "drift-argument-refused", "calls-error-harmless"}
    assert telling(judge(server, said_by_users(said, tools), checks=checks)) == told
