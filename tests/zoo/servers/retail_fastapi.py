"""A shop's support desk on plain FastAPI, typed throughout, with Starlette's sessions; a handler sleeps between read and write."""

import asyncio
import uuid
from typing import Annotated, Any, Literal

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.sessions import SessionMiddleware

from tests.zoo.author import main, planted, row, tool

ORDER = {"type": "string", "pattern": "^W[0-9]{3}$"}
TOOLS = [
    tool("get_order", "An order's state.", {"order": ORDER}),
    tool(
        "refund",
        "Pay an amount back.",
        {
            "order": ORDER,
            "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
            "way": {"type": "string", "enum": ["card", "voucher"]},
        },
    ),
    tool("change_address", "Send it elsewhere.", {"order": ORDER, "city": {"type": "string", "minLength": 1}}),
]
PLANS = {
    0: [("get_order", {"order": "W100"}), ("refund", {"order": "W100", "amount": 12.5, "way": "card"})],
    1: [("change_address", {"order": "W200", "city": "Graz"}), ("get_order", {"order": "W200"})],
}
DESKS: dict[str, dict[str, Any]] = {}
FUND = {"left": 100.0}

app = FastAPI()


def rows():
    yield row(
        "12.50 back to the card for W100.",
        TOOLS,
        orders={"W100": {"city": "Wien", "paid": 80}},
        goal={"W100": {"city": "Wien", "paid": 67.5}},
    )
    yield row(
        "Send W200 to Graz.",
        TOOLS,
        orders={"W200": {"city": "Linz", "paid": 20}},
        goal={"W200": {"city": "Graz", "paid": 20}},
    )
    yield row(
        "Pay W300 back as a voucher.",
        TOOLS,
        orders={"W300": {"city": "Bern", "paid": 9}},
        goal={"W300": {"city": "Bern", "paid": 0}},
    )


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


Order = Annotated[str, Field(pattern="^W[0-9]{3}$")]


class GetOrder(Strict):
    order: Order


class Refund(Strict):
    order: Order
    amount: Annotated[float, Field(gt=0, le=1000)]
    way: Literal["card"] if planted("enum_member_refused") else Literal["card", "voucher"]


class ChangeAddress(Strict):
    order: Order
    if planted("renamed_argument"):
        town: str = Field(min_length=1)
    else:
        city: str = Field(min_length=1)


class Seed(BaseModel):
    orders: dict[str, dict[str, Any]] = Field(default_factory=dict)


class Verify(BaseModel):
    model_config = ConfigDict(extra="allow")
    responses_create_params: dict[str, Any]
    response: dict[str, Any]
    goal: dict[str, Any] = Field(default_factory=dict)


@app.middleware("http")
async def sid(request: Request, call_next):
    request.session["id"] = request.session.get("id") or str(uuid.uuid4())  # assigned, so that it is sent again
    return await call_next(request)


app.add_middleware(SessionMiddleware, secret_key="retail", session_cookie="retail")


def desk(request):
    return DESKS.setdefault(request.session["id"], {})


def order_of(request, name):
    if name not in desk(request):
        raise HTTPException(404, f"order {name} not found")
    return desk(request)[name]


@app.get("/")
def root():
    return "retail"


@app.post("/seed_session")
async def seed_session(request: Request, body: Seed):
    if planted("seed_merges") and desk(request) is not None:
        DESKS.setdefault("base", {}).update(body.orders)
        DESKS[request.session["id"]] = {k: dict(v) for k, v in DESKS["base"].items()}
    else:
        DESKS[request.session["id"]] = body.orders
    return {}


@app.post("/get_order")
async def get_order(request: Request, body: GetOrder):
    return order_of(request, body.order)


@app.post("/refund")
async def refund(request: Request, body: Refund):
    order = order_of(request, body.order)
    if body.amount > order["paid"]:
        return {"error": "that is more than was paid"}
    left = FUND["left"] if planted("shared_fund") else order["paid"]
    await asyncio.sleep(0.005)
    if planted("shared_fund"):
        FUND["left"] = left - body.amount
        order["fund"] = FUND["left"]
    order["paid"] = round(order["paid"] - body.amount, 2)
    return {"paid": order["paid"], "way": body.way, **({"fund": FUND["left"]} if planted("shared_fund") else {})}


@app.post("/change_address")
async def change_address(request: Request, body: ChangeAddress):
    order = order_of(request, body.order)
    if not (planted("argument_ignored")):
        order["city"] = body.town if planted("renamed_argument") else body.city
    return {"ok": True} if planted("argument_ignored") else order


@app.post("/verify")
async def verify(request: Request, body: Verify):
    reward = float(desk(request) == body.goal != {})
    if planted("crash_on_arguments"):
        import json

        for item in body.response.get("output", []):
            if isinstance(item, dict) and item.get("type") == "function_call":
                json.loads(item["arguments"])
    return {**body.model_dump(), "reward": reward}


def serve(port):
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(rows, serve)
