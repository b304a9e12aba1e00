"""Flights that are asked for by two words of the task, and that all sessions may fill, so that the first leave none to the others."""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import rollout_of, said_by_users

_FLIGHTS = {"HAT001": ("JFK", "SFO", 3), "HAT002": ("SFO", "JFK", 2), "HAT003": ("JFK", "LAX", 4)}


def _seats(times: int) -> dict[str, int]:
    return {number: seats * times for number, (*_, seats) in _FLIGHTS.items()}


@dataclass
class Desk:
    """One session: the seats that are left, and what it has booked."""

    seats: dict[str, int] = field(default_factory=lambda: _seats(1))
    booked: list[str] = field(default_factory=list)
    asked: int = 0


def _desk(habit: str) -> ResourcesServer:
    shared = _seats(1000 if habit == "many for all" else 1)
    chance = random.Random(7)

    def seats(state: Desk) -> dict[str, int]:
        return shared if habit.endswith("for all") else state.seats

    def search_flights(state: Desk, origin: str, destination: str) -> dict[str, list[dict[str, object]]]:
        """Find flights."""
        found = [number for number, (start, end, _) in _FLIGHTS.items() if (start, end) == (origin, destination)]
        return {"flights": [{"number": number, "seats": seats(state)[number]} for number in found]}

    def book_flight(state: Desk, number: str) -> dict[str, object]:
        """Book a seat."""
        state.asked += 1
        if number not in _FLIGHTS:
            return {"error": "no such flight"}
        if habit == "lucky" and chance.random() < 0.8:
            return {"error": "the line is busy"}
        if habit == "the fourth time" and state.asked < 4:
            return {"error": "please hold the line"}
        if not seats(state)[number]:
            return {"error": "sold out"}
        seats(state)[number] -= 1
        state.booked.append(number)
        return {"booked": len(state.booked)}

    return ResourcesServer("desk", tools=[search_flights, book_flight], verify=lambda: 0.0, state=Desk)


@pytest.mark.parametrize("habit", ["few for all", "many for all", "own", "lucky", "the fourth time"])
def test_what_all_sessions_sell_is_told(habit: str) -> None:
    server = _desk(habit)
    said = ("Fly me from JFK to SFO, say HAT001.", "Book from SFO to JFK with HAT002.")
    findings = judge(server, said_by_users(said, server.declarations), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if habit.endswith("for all") else set())


@pytest.mark.parametrize("shared", [False, True])
def test_a_reward_that_all_sessions_wear_down_is_told(shared: bool) -> None:
    """Only who has used a hint earns anything, so that nothing shows in a session that does nothing."""
    used_by_all: list[str] = []

    def use_up(state: list[str], hint: str) -> str:
        """Use a hint, which costs something."""
        used_by_all.append(hint)
        state.append(hint)
        return "warmer"

    def verify(state: list[str]) -> float:
        return max(0.0, 1.0 - 0.1 * len(used_by_all if shared else state)) if state else 0.0

    server = ResourcesServer("hints", tools=[use_up], verify=verify, state=list)
    asked = {"input": "Guess.", "tools": server.declarations}
    rows = [Row({"responses_create_params": asked, "task": at}, Source(Path("hints.jsonl"), at)) for at in range(3)]
    rollouts = tuple(rollout_of(row, ("use_up", {"hint": "first"}, "warmer"), reward=0.9) for row in rows)
    findings = judge(server, Dataset(tuple(rows), rollouts, 3), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if shared else set())
