"""A house on plain Starlette: one route for all tools, 300 ms each, and an unknown tool or value is told with a 200."""

import asyncio
import json
import uuid

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from tests.zoo.author import main, planted, row, tool

ROOM = {"type": "string", "enum": ["kitchen", "bath", "hall"]}
TOOLS = [
    tool("set_light", "Switch the light.", {"room": ROOM, "on": {"type": "boolean"}}),
    tool(
        "set_heating", "Set the heating.", {"room": ROOM, "degrees": {"type": "integer", "minimum": 5, "maximum": 30}}
    ),
    tool("get_room", "Light and heating of a room.", {"room": ROOM}),
]
PLANS = {
    0: [("set_light", {"room": "bath", "on": True}), ("get_room", {"room": "bath"})],
    1: [("get_room", {"room": "hall"}), ("set_heating", {"room": "hall", "degrees": 28})],
}
HOUSES = {}
HOUSE = {}
busy = None


def rows():
    cold = {room: {"on": False, "degrees": 15} for room in ROOM["enum"]}
    warm = {room: {"on": True, "degrees": 21} for room in ROOM["enum"]}
    yield row("Light in the bath.", TOOLS, house=cold, room="bath", wanted={"on": True, "degrees": 15})
    yield row("28 degrees in the hall.", TOOLS, house=warm, room="hall", wanted={"on": True, "degrees": 28})
    yield row(
        "The kitchen dark and at 10 degrees.", TOOLS, house=warm, room="kitchen", wanted={"on": False, "degrees": 10}
    )


def house(request):
    if planted("cookie_when_new_only"):
        request.session.setdefault("id", uuid.uuid4().hex)
    else:  # assigned anew each time, or Starlette does not send the cookie again
        request.session["id"] = request.session.get("id") or uuid.uuid4().hex
    if planted("one_house"):
        return HOUSE
    return HOUSES.setdefault(request.session["id"], {})


async def body_of(request):
    house(request)
    try:
        data = json.loads(await request.body())
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


async def seed_session(request):
    data = await body_of(request)
    rooms = data.get("house", {}) if data is not None else None
    if not isinstance(rooms, dict):
        return JSONResponse({"detail": "no row"}, 400)
    house(request).clear()
    house(request).update(json.loads(json.dumps(rooms)))
    return JSONResponse({})


def a_room(x):
    rooms = ROOM["enum"] if not planted("room_gone") else ["kitchen", "hall"]
    return isinstance(x, str) and x in rooms


def degrees(x):
    return type(x) is int and 5 <= x <= (25 if planted("smaller_range") else 30)


KINDS = {
    "set_light": {"room": a_room, "on": lambda x: type(x) is bool},
    "set_heating": {"room": a_room, "degrees": degrees},
    "get_room": {"room": a_room},
}


async def call(request):
    global busy
    name = request.path_params["tool"]
    data = await body_of(request)
    if name not in KINDS or (name == "get_room" and planted("tool_forgotten")):
        return PlainTextResponse(f"Error: there is no tool {name}")
    if data is None:
        return PlainTextResponse("Error: arguments must be an object")
    kinds = KINDS[name]
    if missing := kinds.keys() - data.keys():
        return PlainTextResponse(f"Error: missing {', '.join(sorted(missing))}")
    for key, value in data.items():
        if key not in kinds:
            return PlainTextResponse(f"Error: unknown argument {key}")
        if not kinds[key](value):
            return PlainTextResponse(f"Error: invalid value {value!r} for {key}")
    rooms = house(request)
    busy = rooms
    await asyncio.sleep(0.3)
    if planted("current_house"):
        rooms = busy
    there = rooms.setdefault(data["room"], {"on": False, "degrees": 15})
    if name != "get_room":
        there.update({key: value for key, value in data.items() if key != "room"})
    return JSONResponse(there)


async def verify(request):
    data = await body_of(request)
    if data is None or not isinstance(data.get("response"), dict):
        return JSONResponse({"detail": "no response"}, 422)
    is_there = house(request).get(data.get("room"), {})
    wanted = data.get("wanted") or {}
    reward = float(bool(wanted) and is_there == wanted)
    if planted("reward_text"):
        reward = f"{reward}"
    return JSONResponse({**data, "reward": reward})


def serve(port):
    routes = [
        Route("/", lambda request: PlainTextResponse("house")),
        Route("/seed_session", seed_session, methods=["POST"]),
    ]
    routes += [Route("/verify", verify, methods=["POST"]), Route("/{tool}", call, methods=["POST"])]
    sessions = Middleware(SessionMiddleware, secret_key="house", session_cookie="house")
    uvicorn.run(Starlette(routes=routes, middleware=[sessions]), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(rows, serve)
