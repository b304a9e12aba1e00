"""A server without a schema asks for an argument that no row offers, or for what a session must have been told before."""

import re
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from tests.twins.judging import found_by
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import rows_of


class Bookings(ResourcesServer):
    """Wants an email with a booking: as an `argument`, from the `session`, or from that and refuses any other argument."""

    def __init__(self, wanted: str) -> None:
        def introduce(email: str) -> dict[str, Any]:
            return {"email": email}

        def book(seat: str, fare: Literal["saver", "flex"]) -> dict[str, Any]:
            return {"booked": seat, "fare": fare}

        super().__init__("bookings", tools=[introduce, book], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.wanted, self.known = wanted, set[str]()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        sent, offered = json_body(request), {"seat", "fare"}
        if request.path == "/introduce":
            self.known.add(request.session_id)
        elif isinstance(sent, dict):
            if self.wanted == "nothing else" and not sent.keys() <= offered:
                raise HttpRefusal(422, f"there is no {min(sent.keys() - offered)!r}")
            given = {"email"} & sent.keys() if self.wanted == "argument" else request.session_id in self.known
            if lacking := sorted(offered - sent.keys()) or ([] if given else ["email"]):
                raise HttpRefusal(422, f"{lacking[0]!r} is a required property")
            return HttpReply.json({"booked": sent["seat"]})
        return await super()._call_tool(request)


@pytest.mark.parametrize("wanted", ["argument", "session", "nothing else"])
def test_an_argument_that_no_row_offers_is_told_from_what_a_session_lacks(wanted: str) -> None:
    found = found_by("drift-argument-refused", Bookings(wanted), rows_of(Bookings(wanted)))
    told = [one.actual for one in found if one.verdict is Verdict.FAIL]
    assert len(told) == (wanted == "argument"), told
    assert all("'email' is a required property" in each for each in told)


class Bids(ResourcesServer):
    """Wants a currency, and says so in words of its own: from the call, from the session, or as one of several hints."""

    def __init__(self, wanted: str) -> None:
        def bid(campaign: str, amount: float) -> dict[str, Any]:
            return {"campaign": campaign, "bid": amount}

        super().__init__("bids", tools=[bid], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.wanted = wanted

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        sent = json_body(request)
        if not isinstance(sent, dict) or not isinstance(sent.get("campaign"), str):
            raise HttpRefusal(400, "campaign must be a string")
        if not isinstance(sent.get("amount"), int | float):
            raise HttpRefusal(400, "amount must be a number")
        if self.wanted == "session" or (self.wanted == "argument" and not isinstance(sent.get("currency"), str)):
            raise HttpRefusal(400, "currency is required")
        if self.wanted == "hint" and "currency" not in sent:
            raise HttpRefusal(404, f"its name is required, and its currency may be given: no {sent['campaign']}")
        raise HttpRefusal(404, f"there is no campaign {sent['campaign']}")


@pytest.mark.parametrize("wanted", ["argument", "session", "nothing", "hint"])
def test_an_argument_is_wanted_in_words_of_its_own(wanted: str) -> None:
    server = Bids(wanted)
    found = found_by("drift-argument-refused", server, rows_of(server))
    told = [one.actual for one in found if one.verdict is Verdict.FAIL]
    assert len(told) == (wanted == "argument"), told
    assert all("currency is required" in each for each in told)


class Diary(ResourcesServer):
    """Rows offer a day; `taken` says what is: a day, a moment, a day that is still to come, or either of a moment and a day."""

    def __init__(self, taken: str) -> None:
        def plan(what: str, day: date | None = None) -> dict[str, Any]:
            return {"planned": f"{what}, {day}"}

        super().__init__("diary", tools=[plan], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.taken = re.compile(taken)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        day = sent.get("day") if isinstance(sent := json_body(request), dict) else None
        if isinstance(day, str):
            if not self.taken.match(day):
                raise HttpRefusal(422, "day must be as the manual says")
            return HttpReply.json({"planned": day})
        return await super()._call_tool(request)


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [
        (r"\d{4}-\d\d-\d\dT", Verdict.FAIL),
        (r"\d{4}-\d\d-\d\d$", Verdict.PASS),
        (r"20[3-9]\d-\d\d-\d\d", Verdict.PASS),
        (r"\d{4}-\d\d-\d\d", Verdict.PASS),
    ],
)
def test_a_day_that_is_taken_as_a_moment_alone_is_refused(taken: str, verdict: Verdict) -> None:
    [finding] = found_by("drift-argument-refused", Diary(taken), rows_of(Diary(taken)))
    assert finding.verdict is verdict, finding.actual


class Shop(ResourcesServer):
    """Rows offer a size and a colour that may be left out; an order `needs` a size, one of the two, or a size for shoes.

    Where it needs a hat's size, there are no shoes.
    """

    def __init__(self, needs: str) -> None:
        def order(thing: Literal["shoes", "hat"], size: int | None = None, colour: str | None = None) -> dict[str, Any]:
            return {"ordered": thing, "size": size, "colour": colour}

        super().__init__("shop", tools=[order], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.needs = needs

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        sent = json_body(request)
        if isinstance(sent, dict) and sent.get("thing") in {"shoes", "hat"} and "size" not in sent:
            lacks = {"one": "colour" not in sent, "shoes": sent["thing"] == "shoes", "size": True, "hat's size": True}
            if lacks[self.needs]:
                raise HttpRefusal(422, "give a size" if self.needs != "one" else "give a size or a colour")
        if self.needs == "hat's size" and isinstance(sent, dict) and sent.get("thing") == "shoes":
            raise HttpRefusal(409, "there are none left")
        return await super()._call_tool(request)


@pytest.mark.parametrize(
    ("needs", "verdict"),
    [("size", Verdict.FAIL), ("hat's size", Verdict.FAIL), ("one", Verdict.PASS), ("shoes", Verdict.PASS)],
)
def test_an_argument_that_each_call_needs_is_told_from_one_that_some_need(needs: str, verdict: Verdict) -> None:
    [finding] = found_by("drift-argument-refused", Shop(needs), rows_of(Shop(needs)))
    assert finding.verdict is verdict, finding.actual


class Wishes(BaseModel):
    """How it is sent."""

    wrap: Literal["paper", "box"] = "paper"
    fast: bool = False


class Post(ResourcesServer):
    """Rows offer two wrappings within an object; it has run out of one that it `lacks`, and may ask `how_fast`, too."""

    def __init__(self, lacks: str = "", *, how_fast: bool = False) -> None:
        def send(to: str, wishes: Wishes) -> dict[str, Any]:
            return {"sent": to, "wishes": wishes.model_dump()}

        super().__init__("post", tools=[send], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.taken = {"paper", "box"} - {lacks}
        self.how_fast = how_fast

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"to": str(), "wishes": {**wishes}} if self.how_fast and "fast" not in wishes:
                raise HttpRefusal(422, "missing fast")
            case {"wishes": _} as sent if "to" not in sent:
                raise HttpRefusal(422, "missing to")
            case {"to": str(), "wishes": {"wrap": str(wrap)}} if wrap not in self.taken:
                raise HttpRefusal(422, "wrap it otherwise")
        return await super()._call_tool(request)


@pytest.mark.parametrize(("lacks", "verdict"), [("box", Verdict.FAIL), ("", Verdict.PASS)])
def test_a_member_within_an_object_that_is_refused_is_told(lacks: str, verdict: Verdict) -> None:
    [finding] = found_by("drift-argument-refused", Post(lacks), rows_of(Post(lacks)))
    assert finding.verdict is verdict, finding.actual


@pytest.mark.parametrize(("how_fast", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_a_recorded_call_that_lacks_what_its_object_may_leave_out_is_told(*, how_fast: bool, verdict: Verdict) -> None:
    """Though other rollouts, which give it there, are answered."""
    rows = rows_of(Post()).rows
    wishes: tuple[dict[str, Any], ...] = ({"wrap": "box"}, {"wrap": "box", "fast": True})
    calls = [("send", {"to": "me", "wishes": each}, {"sent": "me"}) for each in wishes]
    rollouts = tuple(rollout_of(row, call, reward=1.0) for row, call in zip(rows, calls, strict=True))
    [finding] = found_by("drift-argument-refused", Post(how_fast=how_fast), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is verdict, finding.actual


class Cell(BaseModel):
    """A field of a board."""

    row: Literal["A", "B"]
    col: int


class Shots(ResourcesServer):
    """Takes the rows of a board as they are `called` here; where there is no such row, all cells are gone."""

    def __init__(self, called: str) -> None:
        def fire(cells: list[Cell]) -> dict[str, Any]:
            return {"shots": len(cells)}

        super().__init__("shots", tools=[fire], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.called = called

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"cells": [{"row": row, "col": int()}]} if row not in list(self.called or "AB"):
                raise HttpRefusal(422, f"row must be one of {', '.join(self.called or 'AB')}")
            case {"cells": [{"row": str(row), "col": int(col)}]} if not self.called:
                raise HttpRefusal(422, f"row {row} has no cell {col}")
            case {"cells": [{"row": _, "col": int()}]}:
                return HttpReply.json({"shots": 1})
            case _:
                raise HttpRefusal(422, "cells must be a list of {row, col}")


@pytest.mark.parametrize(("called", "verdict"), [("ab", Verdict.FAIL), ("AB", Verdict.PASS), ("", Verdict.PASS)])
def test_a_member_within_a_list_that_no_recorded_call_may_have_is_told(called: str, verdict: Verdict) -> None:
    rows = rows_of(Shots("AB")).rows
    calls = [("fire", {"cells": [{"row": name, "col": 7}]}, {"shots": 1}) for name in "BA"]
    rollouts = tuple(rollout_of(row, call, reward=1.0) for row, call in zip(rows, calls, strict=False))
    [finding] = found_by("drift-argument-refused", Shots(called), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is verdict, finding.actual


class Slot(BaseModel):
    """A part of a day."""

    room: str
    minutes: Annotated[int, Field(ge=15, le=240)]


class Rooms(ResourcesServer):
    """Books a part of a day of `least` minutes, or of at most `left`, with notes that may be numbers but where it takes `texts`."""

    def __init__(self, least: int = 15, left: int = 240, *, texts: bool = False) -> None:
        def book(slots: list[Slot], notes: list[str | int]) -> dict[str, Any]:
            return {"booked": len(slots), "notes": len(notes)}

        super().__init__("rooms", tools=[book], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.least, self.left, self.texts = least, left, texts

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        sent = json_body(request)
        slots, notes = (sent.get(key) if isinstance(sent, dict) else None for key in ("slots", "notes"))
        if not isinstance(notes, list) or any(
            type(note) not in ((str,) if self.texts else (str, int)) for note in notes
        ):
            raise HttpRefusal(422, "notes must be a list of what was noted")
        match slots:
            case [{"room": str(), "minutes": int(minutes)}] if type(minutes) is int and self.least <= minutes <= 240:
                if minutes > self.left:
                    raise HttpRefusal(422, f"there are no {minutes} minutes left")
                return HttpReply.json({"booked": 1, "notes": 0})
            case [{"room": str(), "minutes": _}]:
                raise HttpRefusal(422, f"minutes must be from {self.least} to 240")
        raise HttpRefusal(422, "slots must be a list of {room, minutes}")


@pytest.mark.parametrize(
    ("server", "argument"),
    [
        (Rooms(), ""),
        (Rooms(left=60), ""),
        (Rooms(least=30), "slots.minutes"),
        (Rooms(texts=True), "notes"),
    ],
    ids=("sound", "full", "a bound", "a type"),
)
def test_a_bound_and_a_type_within_a_list_are_told(server: ResourcesServer, argument: str) -> None:
    rows = rows_of(Rooms()).rows
    call = ("book", {"slots": [{"room": "Elm", "minutes": 45}], "notes": ["tea"]}, {"booked": 1, "notes": 0})
    rollouts = tuple(rollout_of(row, call, reward=1.0) for row in rows)
    [finding] = found_by("drift-argument-refused", server, Dataset(rows, rollouts, len(rows)))
    assert finding.expected.startswith(f"{argument} of book") if argument else finding.verdict is Verdict.PASS


class Labels(ResourcesServer):
    """Refuses a text that is longer than is asked; true is an int in Python."""

    def __init__(self) -> None:
        def label(text: str, most: Annotated[int, Field(ge=1)] = 100) -> dict[str, Any]:
            return {"label": text, "most": most}

        super().__init__("labels", tools=[label], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"text": str(text), "most": int(most)} if len(text) > most:
                raise HttpRefusal(400, "longer than most")
            case {"text": str(text), "most": int()}:
                return HttpReply.json({"label": text})
        return await super()._call_tool(request)


def test_true_is_no_wrong_number_where_1_is_refused_alike() -> None:
    """The text that is known is longer than 1."""
    rows = rows_of(Labels()).rows
    rollouts = (rollout_of(rows[0], ("label", {"text": "fragile", "most": 9}, {"label": "fragile"}), reward=1.0),)
    [finding] = found_by("drift-argument-refused", Labels(), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is Verdict.PASS, finding.actual


class Stroke(BaseModel):
    """A key that is pressed while others are held."""

    key: str
    held: list[Literal["Shift", "Alt", "Meta"]] = []


class Keyboard(ResourcesServer):
    """Presses keys; it lacks those to hold that are not in `has`."""

    def __init__(self, has: str = "Shift Alt Meta") -> None:
        def press(strokes: list[Stroke]) -> dict[str, Any]:
            return {"pressed": len(strokes)}

        super().__init__("keyboard", tools=[press], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.has = has.split()

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"strokes": [{"key": str(), **rest}]} if isinstance(held := rest.get("held", []), list):
                if unknown := [each for each in held if each not in self.has]:
                    raise HttpRefusal(422, f"unknown modifier {unknown[0]}")
                return HttpReply.json({"pressed": 1})
        raise HttpRefusal(422, "strokes must be a list of {key, held}")


@pytest.mark.parametrize(("has", "verdict"), [("Shift Alt", Verdict.FAIL), ("Shift Alt Meta", Verdict.PASS)])
def test_a_member_within_a_list_in_a_lists_objects_is_told(has: str, verdict: Verdict) -> None:
    rows = rows_of(Keyboard()).rows
    call = ("press", {"strokes": [{"key": "Tab", "held": ["Shift"]}]}, {"pressed": 1})
    rollouts = tuple(rollout_of(row, call, reward=1.0) for row in rows)
    [finding] = found_by("drift-argument-refused", Keyboard(has), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is verdict, finding.actual
    assert finding.expected.startswith("strokes.held of press") is (verdict is Verdict.FAIL)
