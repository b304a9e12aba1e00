"""Orders that a task names, and that are cancelled for a reason of several words, which comes back in the reply: nothing is recorded."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling

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


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "name": name, "parameters": parameters}


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
        _tool("get_order", order_id=text),
        _tool("cancel_order", order_id=text, reason={**text, "enum": list(_REASONS)}),
    ]
    said = ("I am Mia, and my order #W2378156 is no longer needed.", "I ordered the lamp (#W6729841) by mistake.")
    asked = [{"input": text, "tools": tools} for text in said]
    rows = tuple(Row({"responses_create_params": each}, Source(Path("desk.jsonl"), 1)) for each in asked)
    checks = {"isolation-earlier", "drift-argument-refused", "calls-error-harmless"}
    assert telling(judge(server, Dataset(rows, (), len(rows)), checks=checks)) == told
