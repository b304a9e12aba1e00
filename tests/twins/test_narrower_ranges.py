"""A range of numbers that is narrower than the definition says, or than it was a call ago: nothing is recorded."""

from dataclasses import dataclass

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import said_by_users, tool

#: How many there are of a thing.
_STOCK = 37


@dataclass
class Kiosk:
    """One session: what is left."""

    left: int = _STOCK


def _kiosk(habit: str) -> ResourcesServer:
    def count(state: Kiosk) -> dict[str, int]:
        """Count what is left."""
        return {"left": state.left} if habit == "as many as are shown" else {"shelves": 2}

    def order(state: Kiosk, quantity: int) -> dict[str, int] | str:
        """Order some."""
        most = {"as defined": 200, "as many as are left": state.left}.get(habit, _STOCK)
        if not 1 <= quantity <= most:
            return f"Error: quantity must be from 1 to {most}"
        state.left -= quantity
        return {"ordered": quantity}

    server = ResourcesServer("kiosk", tools=[count, order], verify=lambda: 0.0, state=Kiosk)
    del server.handlers["GET", "/openapi.json"]
    return server


@pytest.mark.parametrize(
    ("habit", "said", "told"),
    [
        ("as defined", "Order some.", set()),
        ("fewer than defined", "Order some.", {"drift-argument-refused"}),
        ("fewer than defined", f"Order some: there are {_STOCK}.", set()),
        ("as many as are shown", "Order some.", set()),
        ("as many as are left", "Order some.", set()),
    ],
)
def test_a_range_is_told_that_is_the_code_s_own(habit: str, said: str, told: set[str]) -> None:
    tools = [tool("count"), tool("order", quantity={"type": "integer", "minimum": 1, "maximum": 200})]
    rows = said_by_users((said, f"{said} And be quick."), tools)
    assert telling(judge(_kiosk(habit), rows, checks={"drift-argument-refused"})) == told


@dataclass
class Board:
    """One session: the characters that still fit on it."""

    room: int = _STOCK
    memos: int = 0


def _board(habit: str) -> ResourcesServer:
    def room(state: Board) -> dict[str, int]:
        """Count what fits."""
        return {"room": state.room if habit == "as long as is shown" else 1, "memos": state.memos}

    def pin(state: Board, memo: str) -> dict[str, int] | str:
        """Pin a memo."""
        most = {"as defined": 200, "as long as fits": state.room}.get(habit, _STOCK)
        if len(memo) > most:
            return f"Error: a memo has at most {most} characters"
        state.room, state.memos = state.room - len(memo), state.memos + 1
        return {"pinned": state.memos}

    server = ResourcesServer("board", tools=[room, pin], verify=lambda: 0.0, state=Board)
    del server.handlers["GET", "/openapi.json"]
    return server


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("as defined", set()),
        ("shorter than defined", {"drift-argument-refused"}),
        ("as long as is shown", set()),
        ("as long as fits", set()),
    ],
)
def test_a_length_is_told_that_is_the_code_s_own(habit: str, told: set[str]) -> None:
    tools = [tool("room"), tool("pin", memo={"type": "string", "maxLength": 200})]
    rows = said_by_users(("Pin a memo.", "Pin a memo quickly."), tools)
    assert telling(judge(_board(habit), rows, checks={"drift-argument-refused"})) == told
