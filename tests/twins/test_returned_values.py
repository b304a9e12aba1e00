"""Contacts with an address, of which a policy writes what it has read: nothing is recorded, and no schema is published."""

from collections.abc import Callable
from typing import Any

import pytest

from gym_conformance.scouting.learn import find
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, on_gym, telling
from tests.twins.twin import said_by_users, tool

Json = dict[str, Any]

_ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}


def _is_text(address: Json) -> None:
    if not all(isinstance(each, str) for each in address.values()):
        raise HttpRefusal(400, "what an address has must be texts")


def _wants_a_town(address: Json) -> None:
    if not isinstance(address.get("town"), str):
        raise HttpRefusal(400, "the city must be a text")


def _wants_a_zip(address: Json) -> None:
    _is_text(address)
    if "zip" not in address:
        raise HttpRefusal(400, "zip is required")


def _knows_where(address: Json) -> None:
    _is_text(address)
    if address.get("city") not in (None, "Rome"):
        raise HttpRefusal(400, "nobody can move to another city")


def _contacts(check: Callable[[Json], None]) -> ResourcesServer:
    def contacts() -> dict[int, Json]:
        cities = {"Ann": "Oslo", "Bert": "Paris", "Cleo": "Kyiv"}
        return {
            at: {"id": at, "name": name, "address": {"street": f"{name} St", "city": city}}
            for at, (name, city) in enumerate(cities.items(), 100)
        }

    def list_contacts(state: dict[int, Json]) -> Json:
        """See them all."""
        return {"contacts": list(state.values())}

    def get_contact(state: dict[int, Json], contact_id: int) -> Json:
        """See one."""
        if contact_id not in state:
            raise HttpRefusal(404, "there is no such contact")
        return state[contact_id]

    def add_contact(state: dict[int, Json], name: str, address: Json | None = None) -> Json:
        """Add one."""
        check(address) if address is not None else None
        state[100 + len(state)] = {"id": 100 + len(state), "name": name, "address": address or {}}
        return {"contact_id": 99 + len(state)}

    def join_contacts(state: dict[int, Json], keep: int, drop: list[int]) -> Json:
        """Make one of several."""
        if keep not in state or keep in drop or not all(each in state for each in drop):
            raise HttpRefusal(400, "these cannot be joined")
        for each in drop:
            del state[each]
        return {"kept": keep}

    tools: list[Callable[..., Any]] = [list_contacts, get_contact, add_contact, join_contacts]
    server = ResourcesServer("contacts", tools=tools, verify=lambda: 0.0, state=contacts)
    del server.handlers["GET", "/openapi.json"]
    return server


_TOOLS = [
    tool("list_contacts"),
    tool("get_contact", contact_id={"type": "integer"}),
    tool(
        "join_contacts", keep={"type": "integer"}, drop={"type": "array", "items": {"type": "integer"}, "minItems": 1}
    ),
    {
        **tool("add_contact"),
        "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "address": _ADDRESS},
            "required": ["name"],
        },
    },
]

_SAID = ("Add Max, who lives in Bonn.", "Make one of Ann and Bert.")


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (_is_text, set()),
        (_knows_where, set()),
        (_wants_a_town, {"drift-argument-refused"}),
        (_wants_a_zip, {"drift-argument-refused"}),
    ],
)
def test_what_is_refused_within_an_object_though_it_was_returned_so_is_told(
    check: Callable[[Json], None], told: set[str]
) -> None:
    checks = {"drift-argument-refused", "calls-valid"}
    assert telling(judge(_contacts(check), said_by_users(_SAID, _TOOLS), checks=checks)) == told


def test_what_was_created_is_asked_for_and_ids_are_given_whatever_they_are_called() -> None:
    found = on_gym(_contacts(_is_text), find, said_by_users(_SAID, _TOOLS))
    calls = found.taken[0].calls
    names = [call.name for call in calls]
    assert "join_contacts" in names
    assert "get_contact" in names[names.index("add_contact") :]
