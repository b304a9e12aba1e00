"""A calendar whose events name a day, and colleagues that must exist: nothing is recorded."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import said_by_users, tool

_COLLEAGUES = ("ana@corp.io", "ben@corp.io")


def _standup() -> list[dict[str, Any]]:
    return [{"id": "ev-101", "title": "Standup", "day": "2026-03-02", "guests": ["ana@corp.io"]}]


@dataclass
class Calendar:
    """One session."""

    events: list[dict[str, Any]] = field(default_factory=_standup)


def _calendar(habit: str) -> ResourcesServer:
    listed: dict[str, list[dict[str, Any]]] = {}

    def list_events(state: Calendar, day: Any) -> dict[str, Any]:
        """List the events of a day."""
        found = [dict(event) for event in state.events if event["day"] == day]
        return {"events": listed.setdefault(str(day), found) if habit == "lists once for all" else found}

    def add_event(state: Calendar, title: Any, day: Any, guests: list[Any]) -> dict[str, Any]:
        """Add an event."""
        event = {"id": f"ev-{101 + len(state.events)}", "title": title, "day": day, "guests": guests}
        if habit == "adds what it refuses":
            state.events.append(event)
        if not all(guest in _COLLEAGUES for guest in guests):
            return {"error": "there is no such colleague"}
        if habit != "takes any title" and not isinstance(title, str):
            return {"error": "the title is no text"}
        if habit != "adds what it refuses":
            state.events.append(event)
        return {"id": event["id"]}

    def verify(state: Calendar) -> float:
        titles = [event["title"] for event in state.events]
        return float(sorted(titles) == ["Review", "Standup"]) if habit != "adds what it refuses" else 0.0

    server = ResourcesServer("calendar", tools=[list_events, add_event], verify=verify, state=Calendar)
    del server.handlers["GET", "/openapi.json"]
    return server


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("own", set()),
        ("lists once for all", {"isolation-earlier"}),
        ("adds what it refuses", {"calls-error-harmless"}),
        ("takes any title", {"calls-invalid"}),
    ],
)
def test_what_becomes_of_events_is_told(habit: str, told: set[str]) -> None:
    server = _calendar(habit)
    text = {"type": "string"}
    tools = [
        tool("list_events", day={**text, "description": "YYYY-MM-DD"}),
        tool("add_event", title=text, day=text, guests={"type": "array", "items": text}),
    ]
    said = ("Add 'Review' with ben@corp.io on 2026-03-02.", "Add 'Review' with ana@corp.io on 2026-03-03.")
    checks = {"isolation-earlier", "calls-error-harmless", "calls-invalid"}
    assert telling(judge(server, said_by_users(said, tools), checks=checks)) == told
