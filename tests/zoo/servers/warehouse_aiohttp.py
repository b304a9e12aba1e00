"""A warehouse on aiohttp: tools of 30 ms, random shipment numbers, times of day; what is refused is a 200 with an error."""

import asyncio
import random
import secrets
import time
from collections import OrderedDict

from aiohttp import web

from tests.zoo.author import main, planted, row, tool

ITEM = {"type": "string", "enum": ["bolt", "nut", "screw", "washer"]}
COUNT = {"type": "integer", "minimum": 1, "maximum": 500}
TOOLS = [
    tool(
        "receive",
        "Put items on the shelf.",
        {"item": ITEM, "count": COUNT},
        {"shelf": {"type": "string", "enum": ["a", "b"]}},
    ),
    tool("ship", "Send items away; says the shipment's number.", {"item": ITEM, "count": COUNT}),
    tool("count_stock", "How many of an item there are, by shelf.", {"item": ITEM}),
    tool("track", "Where a shipment is.", {"shipment": {"type": "string", "pattern": "^S[0-9]{6}$"}}),
]
PLANS = {
    0: [
        ("count_stock", {"item": "bolt"}),
        ("ship", {"item": "bolt", "count": 30}),
        lambda seen: ("track", {"shipment": seen[1]["shipment"]}),
    ],
    1: [
        ("receive", {"item": "nut", "count": 5, "shelf": "b"}),
        ("receive", {"item": "screw", "count": 7}),
        ("count_stock", {"item": "nut"}),
    ],
}

SESSIONS = OrderedDict()
current = None


class Store:
    def __init__(self, stock, log=None):
        self.shelves = {"a": dict(stock), "b": {}}
        self.shipments = {} if log is None else log

    def counts(self, item):
        return {name: shelf.get(item, 0) for name, shelf in self.shelves.items()}


def new_store(stock, received={}):
    """Stock with what was received meanwhile."""
    store = Store(stock)
    if planted("default_argument"):
        store.shelves["b"] = received
    return store


def rows():
    yield row("Send 30 bolts away.", TOOLS, warehouse="north", stock={"bolt": 100}, wanted={"bolt": 70})
    yield row(
        "Take in 5 nuts (shelf b) and 7 screws.",
        TOOLS,
        warehouse="north",
        stock={"nut": 1},
        wanted={"nut": 6, "screw": 7},
    )
    yield row(
        "Send all washers away, ten at a time.", TOOLS, warehouse="south", stock={"washer": 20}, wanted={"washer": 0}
    )
    yield row(
        "Send one bolt and take in one nut.", TOOLS, warehouse="south", stock={"bolt": 2}, wanted={"bolt": 1, "nut": 1}
    )


@web.middleware
async def with_session(request, handler):
    global current
    sid = request.cookies.get("warehouse")
    if sid not in SESSIONS:
        sid = secrets.token_urlsafe(16)
        SESSIONS[sid] = new_store({})
    if planted("only_twenty"):
        SESSIONS.move_to_end(sid)
        while len(SESSIONS) > 20:
            SESSIONS.popitem(last=False)
    request["sid"] = current = sid
    try:
        reply = await handler(request)
    except web.HTTPException as error:
        error.set_cookie("warehouse", sid, httponly=True)
        raise
    reply.set_cookie("warehouse", sid, httponly=True)
    return reply


async def body_of(request):
    try:
        data = await request.json()
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise web.HTTPBadRequest(text="a JSON object is needed")
    return data


BY_WAREHOUSE = {}


async def store_of(request):
    sid = request["sid"]
    await asyncio.sleep(0.03)
    if planted("current_session"):
        sid = current
    return SESSIONS[sid]


async def seed(request):
    data = await body_of(request)
    stock = data.get("stock", {})
    if not isinstance(stock, dict):
        raise web.HTTPBadRequest(text="stock?")
    store = new_store(stock)
    if planted("keyed_by_warehouse"):
        store = BY_WAREHOUSE.setdefault(data.get("warehouse"), store)
    SESSIONS[request["sid"]] = store
    return web.json_response({"status": "seeded"})


def checked(data, **kinds):
    for name in data:
        if name not in kinds:
            return f"unknown argument {name}"
    for name, (fits, needed) in kinds.items():
        if name not in data:
            if needed:
                return f"missing argument {name}"
        elif not fits(data[name]):
            return f"bad value for {name}"
    return None


def an_item(x):
    return isinstance(x, str) and x in ITEM["enum"]


def a_count(x):
    return type(x) is int and 1 <= x <= 500


async def receive(request):
    data = await body_of(request)
    store = await store_of(request)
    kinds = {"item": (an_item, True), "count": (a_count, True), "shelf": (lambda x: x in ("a", "b"), False)}
    if planted("renamed_argument"):
        kinds["quantity"] = kinds.pop("count")
    if wrong := checked(data, **kinds):
        return web.json_response({"error": wrong})
    shelf = store.shelves[data.get("shelf", "a")]
    shelf[data["item"]] = shelf.get(data["item"], 0) + data.get("count", data.get("quantity"))
    return web.json_response({"stored": shelf[data["item"]], "at": time.strftime("%H:%M:%S")})


async def ship(request):
    data = await body_of(request)
    store = await store_of(request)
    if wrong := checked(data, item=(an_item, True), count=(a_count, True)):
        return web.json_response({"error": wrong})
    left = data["count"]
    if sum(store.counts(data["item"]).values()) < left:
        return web.json_response({"error": "not so many in stock"})
    for shelf in store.shelves.values():
        taken = min(left, shelf.get(data["item"], 0))
        shelf[data["item"]] = shelf.get(data["item"], 0) - taken
        left -= taken
    number = f"S{random.randrange(10**6):06}"
    store.shipments[number] = data
    return web.json_response({"shipment": number, "at": time.time()})


async def count_stock(request):
    data = await body_of(request)
    store = await store_of(request)
    if wrong := checked(data, item=(an_item, True)):
        return web.json_response({"error": wrong})
    return web.json_response(store.counts(data["item"]))


async def track(request):
    data = await body_of(request)
    store = await store_of(request)
    if wrong := checked(data, shipment=(lambda x: isinstance(x, str), True)):
        return web.json_response({"error": wrong})
    if data["shipment"] not in store.shipments:
        return web.json_response({"error": "no such shipment"})
    return web.json_response(
        {"shipment": data["shipment"], "content": store.shipments[data["shipment"]], "where": "on its way"}
    )


async def verify(request):
    data = await body_of(request)
    if not isinstance(data.get("response"), dict):
        raise web.HTTPUnprocessableEntity(text="no response")
    store = SESSIONS[request["sid"]]
    wanted = data.get("wanted") or {}
    right = sum(sum(store.counts(item).values()) == count for item, count in wanted.items())
    reward = right / len(wanted) if wanted else 0.0
    if planted("nan_for_untouched") and not store.shipments:
        reward = float("nan")
    return web.json_response({**data, "reward": reward})


def serve(port):
    app = web.Application(middlewares=[with_session], client_max_size=2**26)
    app.router.add_get("/", lambda request: web.Response(text="ok"))
    for handler in (seed, receive, ship, count_stock, track, verify):
        app.router.add_post("/seed_session" if handler is seed else f"/{handler.__name__}", handler)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


if __name__ == "__main__":
    main(rows, serve)
