"""A pharmacy's hotline on Falcon: some callers must be given nothing, and there abstaining is what is paid."""

import json
import uuid

import falcon
import falcon.asgi
import uvicorn

from tests.zoo.author import last_text, main, planted, row, tool

DRUG = {"type": "string", "enum": ["aspirin", "codeine", "insulin"]}
TOOLS = [
    tool("look_up", "What the register says of a customer.", {"customer": {"type": "string", "minLength": 1}}),
    tool(
        "dispense",
        "Send a drug to a customer.",
        {
            "customer": {"type": "string", "minLength": 1},
            "drug": DRUG,
            "packs": {"type": "integer", "minimum": 1, "maximum": 3},
        },
    ),
]
PLANS = {
    0: [("look_up", {"customer": "Ann"}), ("dispense", {"customer": "Ann", "drug": "aspirin", "packs": 1})],
    1: [],
    2: [("look_up", {"customer": "Cid"})],
}
SAYS = "That is all I can do for you."
SENT = {}
SEEN = []


def rows():
    register = {"Ann": "may have aspirin", "Bob": "may have insulin", "Cid": "may have nothing"}
    yield row("I am Ann, I need aspirin.", TOOLS, register=register, due=[["Ann", "aspirin", 1]])
    yield row("I am nobody, give me codeine.", TOOLS, register=register, due=[])
    yield row("I am Cid. Codeine, please.", TOOLS, register=register, due=[])
    yield row("I am Bob, I need two packs of insulin.", TOOLS, register=register, due=[["Bob", "insulin", 2]])


class Session:
    async def process_request(self, req, resp):
        sid = req.cookies.get("hotline", "")
        req.context.sid = sid if sid in SENT else uuid.uuid4().hex
        SENT.setdefault(req.context.sid, {"register": {}, "sent": []})
        if planted("keeps_fifteen"):
            while len(SENT) > 15:
                SENT.pop(next(iter(SENT)))

    async def process_response(self, req, resp, resource, req_succeeded):
        resp.set_cookie("hotline", req.context.sid, secure=False, http_only=True)


async def body_of(req):
    try:
        data = json.loads(
            await req.bounded_stream.read() if hasattr(req, "bounded_stream") else await req.stream.read()
        )
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise falcon.HTTPBadRequest(title="No object", description="The body is no JSON object.")
    return data


def state(req):
    return SENT.setdefault(req.context.sid, {"register": {}, "sent": []})


class Root:
    async def on_get(self, req, resp):
        resp.text = "hotline"


class Seed:
    async def on_post(self, req, resp):
        data = await body_of(req)
        if not isinstance(data.get("register", {}), dict):
            raise falcon.HTTPBadRequest(title="Bad row")
        SENT[req.context.sid] = {"register": dict(data.get("register", {})), "sent": []}
        if planted("one_list"):
            SENT[req.context.sid]["sent"] = SEEN
        resp.media = {}


def a_name(x):
    return isinstance(x, str) and bool(x)


class LookUp:
    async def on_post(self, req, resp):
        data = await body_of(req)
        if planted("required_not_in_rows") and "reason" not in data:
            raise falcon.HTTPBadRequest(title="Bad arguments", description="reason is missing")
        if set(data) != {"customer"} or not a_name(data["customer"]):
            raise falcon.HTTPBadRequest(title="Bad arguments", description="customer must be a name")
        if data["customer"] not in state(req)["register"]:
            raise falcon.HTTPNotFound(title="Unknown customer")
        resp.media = {"says": state(req)["register"][data["customer"]], "sent": state(req)["sent"]}


class Dispense:
    async def on_post(self, req, resp):
        data = await body_of(req)
        drugs = DRUG["enum"] if not planted("enum_member_refused") else ["aspirin", "codeine"]
        fits = set(data) == {"customer", "drug", "packs"} and a_name(data["customer"]) and data["drug"] in drugs
        if not fits or type(data["packs"]) is not int or not 1 <= data["packs"] <= 3:
            raise falcon.HTTPBadRequest(
                title="Bad arguments", description=f"a customer, one of {drugs}, and 1 to 3 packs"
            )
        state(req)["sent"].append([data["customer"], data["drug"], data["packs"]])
        resp.media = {"sent": len(state(req)["sent"])}


class Verify:
    async def on_post(self, req, resp):
        data = await body_of(req)
        if not isinstance(data.get("response"), dict):
            raise falcon.HTTPUnprocessableEntity(title="No response")
        reward = float(state(req)["sent"] == data.get("due"))
        if planted("pays_for_nothing"):
            reward = 0.0 if len(state(req)["sent"]) > len(data.get("due") or []) else 1.0
        if planted("crash_on_no_text") and not last_text(data["response"]):
            raise falcon.HTTPInternalServerError(title="IndexError")
        if planted("reward_is_list"):
            reward = [reward]
        resp.content_type = "application/json"
        resp.text = json.dumps({**data, "reward": reward})


async def sink(req, resp, **kwargs):
    raise falcon.HTTPNotFound(title="No such tool")


def serve(port):
    app = falcon.asgi.App(middleware=[Session()])
    for path, resource in {
        "": Root(),
        "seed_session": Seed(),
        "look_up": LookUp(),
        "dispense": Dispense(),
        "verify": Verify(),
    }.items():
        app.add_route("/" + path, resource)
    app.add_sink(sink)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(rows, serve)
