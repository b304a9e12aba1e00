"""Tools that know one word of a call and take any other beside it, of which nothing is recorded."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.judging import found_by

#: Reads to which one list of orders is the answer, those of several sessions.
_KEPT = 10


class Menu(TaskRow):
    """The dishes of one row, and what was ordered."""

    menu: list[str]
    orders: list[dict[str, str]] = Field(default_factory=list)


def kitchen(*, careful: bool) -> ResourcesServer:
    """Dishes of the menu are ordered, with a note; unless it is `careful`, all sessions see one list of orders for a while."""
    reads, seen = count(), list[Any]()

    def order(state: Menu, dish: str, note: str) -> dict[str, Any]:
        if dish not in state.menu:
            return {"ok": False, "message": f"We do not serve {dish}."}
        state.orders.append({"dish": dish, "note": note, "at": str(time.time())})
        return {"ok": True, "order": state.orders[-1]}

    def list_orders(state: Menu) -> dict[str, Any]:
        if not next(reads) % _KEPT:
            seen[:] = state.orders
        return {"orders": state.orders if careful else seen}

    return ResourcesServer("kitchen", tools=[order, list_orders], verify=lambda: 0.0, state=_opened)


def _opened(row: Menu) -> Menu:
    return row.model_copy(deep=True)


@dataclass
class Parked:
    """The car in each space."""

    spaces: dict[str, str] = field(default_factory=dict)


class Spaces(TaskRow):
    """The spaces of a row's garage."""

    spaces: list[str]


def garage(*, careful: bool) -> ResourcesServer:
    """Cars are parked in known spaces; unless it is `careful`, each call writes back what was there a moment ago."""

    async def park(state: Parked, plate: str, space: str) -> str:
        before = dict(state.spaces)
        await asyncio.sleep(0.02)
        spaces = state.spaces if careful else before
        if plate in spaces.values():
            return f"Error: {plate} is parked already."
        if spaces.get(space, plate):
            return f"Error: {space} is taken." if space in spaces else f"Error: there is no space {space}."
        spaces[space] = plate
        state.spaces = spaces
        return f"{plate} is in {space}."

    def occupancy(state: Parked) -> str:
        return "; ".join(f"{space}: {plate or 'free'}" for space, plate in sorted(state.spaces.items()))

    def opened(row: Spaces) -> Parked:
        return Parked(dict.fromkeys(row.spaces, ""))

    return ResourcesServer("garage", tools=[park, occupancy], verify=lambda: 0.0, state=opened)


def _unrecorded(server: ResourcesServer, **fields: Any) -> Dataset:
    asked = {"input": [{"role": "user", "content": "Do it."}], "tools": server.declarations}
    row = Row({"responses_create_params": asked, **fields}, Source(Path("a.jsonl"), 1))
    other = replace(row, source=Source(Path("a.jsonl"), 2))
    return Dataset((row, other), (), 2)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_what_is_noted_beside_a_known_word_is_told_even_if_an_earlier_session_noted_it(
    *, careful: bool, verdict: Verdict
) -> None:
    server = kitchen(careful=careful)
    [finding] = found_by("isolation-told", server, _unrecorded(server, menu=["soup", "stew", "tart"]))
    assert finding.verdict is verdict, (finding.actual, finding.reason)


@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_calls_at_once_about_several_known_words_are_all_made(*, careful: bool, verdict: Verdict) -> None:
    server = garage(careful=careful)
    [finding] = found_by("calls-complete", server, _unrecorded(server, spaces=["A1", "A2", "B1", "B2"]))
    assert finding.verdict is verdict, (finding.actual, finding.reason)
