"""A calendar on Litestar: typed handlers, its OpenAPI document at /schema/openapi.json, sessions in the server's memory."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import uvicorn
from litestar import Litestar, Request, get, post, route
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException, NotFoundException
from litestar.middleware.session.client_side import CookieBackendConfig
from msgspec import Meta, Struct

from tests.zoo.author import main, planted, row, tool

DAY = {"type": "integer", "minimum": 1, "maximum": 31}
HOUR = {"type": "integer", "minimum": 0, "maximum": 23}
KIND = {"type": "string", "enum": ["meeting", "focus", "lunch"]}
TITLE = {"type": "string", "minLength": 1, "maxLength": 60}
TOOLS = [
    tool("add_event", "Enter an event; one for each hour.", {"day": DAY, "hour": HOUR, "title": TITLE, "kind": KIND}),
    tool("list_events", "The events of a day.", {"day": DAY}),
    tool("move_event", "Move an event to another hour of its day.", {"day": DAY, "hour": HOUR, "to": HOUR}),
    tool("cancel_event", "Delete an event.", {"day": DAY, "hour": HOUR}),
]
PLANS = {
    0: [("list_events", {"day": 3}), ("add_event", {"day": 3, "hour": 12, "title": "Lunch with Ada", "kind": "lunch"})],
    1: [("move_event", {"day": 9, "hour": 9, "to": 15}), ("list_events", {"day": 9})],
    2: [
        ("cancel_event", {"day": 20, "hour": 8}),
        ("add_event", {"day": 20, "hour": 8, "title": "Write", "kind": "focus"}),
    ],
}


def rows():
    yield row(
        "Enter lunch with Ada on the 3rd at noon.",
        TOOLS,
        events=[{"day": 3, "hour": 9, "title": "Standup", "kind": "meeting"}],
        goal=[[3, 9, "Standup"], [3, 12, "Lunch with Ada"]],
    )
    yield row(
        "Move the review on the 9th to three.",
        TOOLS,
        events=[{"day": 9, "hour": 9, "title": "Review", "kind": "meeting"}],
        goal=[[9, 15, "Review"]],
    )
    yield row(
        "Cancel the early call on the 20th and write instead.",
        TOOLS,
        events=[{"day": 20, "hour": 8, "title": "Call", "kind": "meeting"}],
        goal=[[20, 8, "Write"]],
    )


class Kind(str, Enum):
    meeting = "meeting"
    focus = "focus"
    if not planted("enum_member_refused"):
        lunch = "lunch"


Day = Annotated[int, Meta(ge=1, le=31)]
Hour = Annotated[int, Meta(ge=0, le=23)]
Title = Annotated[str, Meta(min_length=1, max_length=60)]


class Event(Struct, forbid_unknown_fields=True):
    day: Day
    hour: Hour
    title: Title
    kind: Kind
    if planted("required_not_in_rows"):
        owner: str


class OneDay(Struct, forbid_unknown_fields=True):
    day: str if planted("type_changed") else Day


class Move(Struct, forbid_unknown_fields=True):
    day: Day
    hour: Hour
    to: Hour


class Slot(Struct, forbid_unknown_fields=True):
    day: Day
    hour: Hour


CALENDARS: dict[str, dict[tuple[int, int], Event]] = {}


def mine(request: Request) -> dict[tuple[int, int], Event]:
    return CALENDARS.setdefault(session_id(request), {})


def session_id(connection: ASGIConnection) -> str:
    import uuid

    sid = connection.session.get("sid") or uuid.uuid4().hex
    connection.set_session({"sid": sid})
    return sid


@get("/", media_type="text/plain", sync_to_thread=False)
def root() -> str:
    return "calendar"


@post("/seed_session", status_code=200)
async def seed_session(request: Request, data: dict[str, Any]) -> dict[str, Any]:
    events = data.get("events") or []
    try:
        CALENDARS[session_id(request)] = {(e["day"], e["hour"]): Event(**e) for e in events}
    except (TypeError, KeyError, AttributeError) as error:
        if planted("required_not_in_rows"):
            return {}
        raise HTTPException(status_code=400, detail="events are wrong") from error
    return {}


@post("/add_event", status_code=200)
async def add_event(request: Request, data: Event) -> dict[str, Any]:
    if (data.day, data.hour) in mine(request):
        raise HTTPException(status_code=409, detail="that hour is taken")
    mine(request)[data.day, data.hour] = data
    return {"added": data.title}


@post("/list_events", status_code=200)
async def list_events(request: Request, data: OneDay) -> list[dict[str, Any]]:
    found = sorted((hour, e.title, e.kind) for (day, hour), e in mine(request).items() if str(day) == str(data.day))
    return [{"hour": hour, "title": title, "kind": kind} for hour, title, kind in found]


@post("/move_event", status_code=200)
async def move_event(request: Request, data: Move) -> dict[str, Any]:
    if (data.day, data.hour) not in mine(request):
        raise NotFoundException(detail="nothing is planned then")
    if (data.day, data.to) in mine(request):
        raise HTTPException(status_code=409, detail="that hour is taken")
    mine(request)[data.day, data.to] = mine(request).pop((data.day, data.hour))
    return {"moved": data.to}


@post("/cancel_event", status_code=200)
async def cancel_event(request: Request, data: Slot) -> dict[str, Any]:
    if mine(request).pop((data.day, data.hour), None) is None:
        raise NotFoundException(detail="nothing is planned then")
    return {"cancelled": data.hour}


@post("/verify", status_code=200)
async def verify(request: Request, data: dict[str, Any]) -> dict[str, Any]:
    response = data.get("response")
    if not isinstance(response, dict):
        raise HTTPException(status_code=400, detail="no response")
    if planted("crash_on_no_message"):
        _ = [item for item in response["output"] if item["type"] == "message"][-1]["content"][0]["text"]
    planned = [[day, hour, event.title] for (day, hour), event in sorted(mine(request).items())]
    return {**data, "reward": 1.0 if planned == data.get("goal") else 0.0}


async def always_a_session(request: Request) -> None:
    session_id(request)


@route("/{path:path}", http_method=["GET", "POST"])
async def nowhere(request: Request) -> None:
    raise NotFoundException(detail=f"no such tool: {request.url.path}")


def serve(port: int) -> None:
    handlers = [root, nowhere, seed_session, add_event, list_events, move_event, cancel_event, verify]
    if planted("tool_not_routed"):
        handlers.remove(cancel_event)
    sessions = CookieBackendConfig(secret=b"0123456789abcdef" * 2, key="calendar")
    app = Litestar(handlers, middleware=[sessions.middleware], before_request=always_a_session)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(rows, serve)
