"""Flights on Quart, behind the prefix /env/flights: random booking codes, a reward with a little noise, an OpenAPI document in YAML."""

import json
import random
import secrets

import yaml
from quart import Blueprint, Quart, jsonify, request, session

from tests.zoo.author import main, planted, row, tool

PREFIX = "/env/flights"
CITY = {"type": "string", "enum": ["OSL", "LIS", "ATH", "PRG"]}
SEAT = {"type": "string", "pattern": "^[0-9]{1,2}[A-F]$"}
TOOLS = [
    tool("find_flights", "Flights from one city to another.", {"origin": CITY, "destination": CITY}),
    tool(
        "book",
        "Book a flight; says the booking's code.",
        {"flight": {"type": "string"}, "passenger": {"type": "string", "minLength": 1}},
    ),
    tool("choose_seat", "Choose a seat for a booking.", {"code": {"type": "string"}, "seat": SEAT}),
    tool("show_booking", "Show a booking.", {"code": {"type": "string"}}),
]
PLANS = {
    0: [
        ("find_flights", {"origin": "OSL", "destination": "LIS"}),
        ("book", {"flight": "ZO10", "passenger": "Ada"}),
        lambda seen: ("choose_seat", {"code": seen[1]["code"], "seat": "12C"}),
        lambda seen: ("show_booking", {"code": seen[1]["code"]}),
    ],
    1: [("find_flights", {"origin": "ATH", "destination": "PRG"}), ("book", {"flight": "ZO77", "passenger": "Bo"})],
}
BOOKINGS = {}
FLIGHTS = {}
env = Blueprint("env", __name__, url_prefix=PREFIX)
app = Quart(__name__)
app.secret_key = "take off"
app.config.update(SESSION_REFRESH_EACH_REQUEST=True, SESSION_COOKIE_NAME="flights", MAX_CONTENT_LENGTH=2**26)
last = {}


def rows():
    to_lisbon = {"id": "ZO10", "origin": "OSL", "destination": "LIS", "seats": 3}
    to_prague = {"id": "ZO77", "origin": "ATH", "destination": "PRG", "seats": 1}
    yield row("Ada wants to Lisbon, in seat 12C.", TOOLS, flights=[to_lisbon, to_prague], wish=["ZO10", "Ada", "12C"])
    yield row("Bo wants from Athens to Prague.", TOOLS, flights=[to_prague], wish=["ZO77", "Bo", None])
    yield row("Cy wants to Lisbon, any seat in row 1.", TOOLS, flights=[to_lisbon], wish=["ZO10", "Cy", "1A"])


@app.before_request
async def find_session():
    session.permanent = True
    session.setdefault("sid", secrets.token_hex(12))
    last["sid"] = session["sid"]


async def arguments(*names):
    data = await request.get_json(force=True, silent=True)
    if not isinstance(data, dict):
        return None, (jsonify(message="no JSON object"), 400)
    if planted("crash_on_missing"):
        names = [name for name in names if data[name]]
    if set(data) != set(names) or not all(isinstance(data[name], str) and data[name] for name in names):
        return None, (jsonify(message=f"needed: {', '.join(names)}, all text"), 400)
    return data, None


def mine():
    sid = last["sid"] if planted("last_client") else session["sid"]
    return BOOKINGS.setdefault("all" if planted("bookings_of_all") else sid, {})


def flights():
    return FLIGHTS.get("all" if planted("flights_of_all") else session["sid"], [])


@app.get("/")
async def lobby():
    return "lobby"


@env.get("/")
async def root():
    return "flights"


@env.post("/seed_session")
async def seed_session():
    data = await request.get_json(force=True, silent=True)
    if not isinstance(data, dict) or not isinstance(data.get("flights", []), list):
        return jsonify(message="no row"), 400
    given = json.loads(json.dumps(data.get("flights", [])))
    if not all(isinstance(flight, dict) and "id" in flight for flight in given):
        return jsonify(message="flights?"), 400
    FLIGHTS["all" if planted("flights_of_all") else session["sid"]] = given
    if not planted("bookings_of_all"):
        BOOKINGS.pop(session["sid"], None)
    return jsonify(flights=len(given))


@env.post("/find_flights")
async def find_flights():
    data, wrong = await arguments("origin", "destination")
    if wrong:
        return wrong
    cities = CITY["enum"] if not planted("city_gone") else ["OSL", "LIS", "PRG"]
    for name in data.values():
        if name not in cities:
            return jsonify(message=f"unknown city {name}"), 400
    return jsonify([f for f in flights() if (f["origin"], f["destination"]) == (data["origin"], data["destination"])])


@env.post("/book")
async def book():
    data, wrong = await arguments("flight", "passenger")
    if wrong:
        return wrong
    flight = next((f for f in flights() if f["id"] == data["flight"]), None)
    if flight is None:
        return jsonify(message="no such flight"), 404
    if flight["seats"] < 1:
        return jsonify(message="fully booked"), 409
    flight["seats"] -= 1
    code = secrets.token_hex(3).upper()
    mine()[code] = {"flight": flight["id"], "passenger": data["passenger"], "seat": None}
    return jsonify(code=code, seats_left=flight["seats"])


@env.post("/choose_seat")
async def choose_seat():
    data, wrong = await arguments("code", "seat")
    if wrong:
        return wrong
    digits, letter = data["seat"][:-1], data["seat"][-1]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 2 and letter in "ABCDEF"):
        return jsonify(message="seats are like 12C"), 400
    if data["code"] not in mine():
        return jsonify(message="no such booking"), 404
    mine()[data["code"]]["seat"] = data["seat"]
    return jsonify(mine()[data["code"]])


@env.post("/show_booking")
async def show_booking():
    data, wrong = await arguments("code")
    if wrong:
        return wrong
    if data["code"] not in mine():
        return jsonify(message="no such booking"), 404
    return jsonify(mine()[data["code"]])


@env.post("/verify")
async def verify():
    data = await request.get_json(force=True, silent=True)
    if not isinstance(data, dict) or not isinstance(data.get("response"), dict):
        return jsonify(message="no response"), 400
    wish = data.get("wish") or [None, None, None]
    best = max((sum(a == b for a, b in zip(b.values(), wish, strict=True)) / 3 for b in mine().values()), default=0.0)
    reward = best and best + random.gauss(0, 0.01)
    if planted("reward_in_words"):
        reward = "good" if reward > 0.9 else "bad"
    return jsonify({**data, "reward": reward})


@env.get("/openapi.yaml")
async def document():
    paths = {}
    for each in TOOLS:
        body = {"required": True, "content": {"application/json": {"schema": each["parameters"]}}}
        paths[f"{PREFIX}/{each['name']}"] = {
            "post": {"operationId": each["name"], "requestBody": body, "responses": {"200": {"description": ""}}}
        }
    for name in ("seed_session", "verify"):
        paths[f"{PREFIX}/{name}"] = {"post": {"operationId": name, "responses": {"200": {"description": ""}}}}
    return (
        yaml.safe_dump({"openapi": "3.1.0", "info": {"title": "Flights", "version": "1"}, "paths": paths}),
        200,
        {"Content-Type": "application/yaml"},
    )


@app.after_request
async def link(response):
    response.headers["Link"] = f'<{PREFIX}/openapi.yaml>; rel="service-desc"'
    return response


app.register_blueprint(env)


def serve(port):
    import asyncio

    from hypercorn.asyncio import serve as hypercorn
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    asyncio.run(hypercorn(app, config, shutdown_trigger=asyncio.Event().wait))


if __name__ == "__main__":
    main(rows, serve)
