"""An SQL shop: FastAPI, two uvicorn workers that share a SQLite file, each session a set of rows in it."""

import os
import sqlite3
import tempfile
import uuid
from contextlib import closing
from typing import Annotated, Literal

import uvicorn
from fastapi import Body, FastAPI, HTTPException, Request
from itsdangerous import BadSignature, Signer
from pydantic import BaseModel, ConfigDict, Field

from tests.zoo.author import main, planted, row, tool

PRODUCT = {"type": "string", "enum": ["tea", "coffee", "cocoa"]}
TOOLS = [
    tool(
        "add_order",
        "Enter an order; says its number.",
        {"product": PRODUCT, "amount": {"type": "integer", "minimum": 1, "maximum": 99}},
    ),
    tool("list_orders", "All orders.", {}, {"product": PRODUCT}),
    tool("total", "How much of a product is ordered.", {"product": PRODUCT}),
]
PLANS = {
    0: [("add_order", {"product": "tea", "amount": 3}), ("total", {"product": "tea"})],
    1: [("list_orders", {}), ("add_order", {"product": "cocoa", "amount": 7}), ("list_orders", {"product": "cocoa"})],
}
FILE = os.environ.setdefault("ORDERS_FILE", os.path.join(tempfile.mkdtemp(prefix="orders-"), "orders.db"))
SECRET = uuid.uuid4().hex if planted("key_per_process") else "the same in both workers"
MEMORY = {}

app = FastAPI(openapi_url="/api/schema")
signer = Signer(SECRET)


def rows():
    yield row("Order three teas.", TOOLS, orders=[["tea", 1]], totals={"tea": 4})
    yield row(
        "Order seven cocoas.", TOOLS, orders=[["tea", 2], ["coffee", 5]], totals={"tea": 2, "coffee": 5, "cocoa": 7}
    )
    yield row("Order a coffee and a tea.", TOOLS, orders=[], totals={"coffee": 1, "tea": 1})


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    product: Literal["tea", "coffee", "cocoa"]
    amount: Annotated[int, Field(strict=True, ge=1, le=10 if planted("smaller_range") else 99)]


class Which(BaseModel):
    model_config = ConfigDict(extra="forbid")
    product: Literal["tea", "coffee", "cocoa"] | None = None


class One(BaseModel):
    model_config = ConfigDict(extra="forbid")
    product: Literal["tea", "coffee", "cocoa"]


def sql(text, *values):
    with closing(sqlite3.connect(FILE, timeout=20)) as db, db:
        return db.execute(text, values).fetchall()


@app.middleware("http")
async def session(request: Request, call_next):
    try:
        request.state.sid = signer.unsign(request.cookies.get("orders", "")).decode()
    except BadSignature:
        request.state.sid = uuid.uuid4().hex
    reply = await call_next(request)
    reply.set_cookie("orders", signer.sign(request.state.sid).decode(), httponly=True)
    return reply


def insert(sid, product, amount):
    if planted("state_per_process"):
        MEMORY.setdefault(sid, []).append((product, amount))
        return len(MEMORY[sid])
    sql("insert into orders (sid, product, amount) values (?, ?, ?)", sid, product, amount)
    return len(select(sid))


def select(sid):
    if planted("state_per_process"):
        return MEMORY.get(sid, [])
    if planted("no_session_column"):
        return sql("select product, amount from orders order by id")
    return sql("select product, amount from orders where sid = ? order by id", sid)


@app.get("/")
def root():
    return {"orders": True}


@app.post("/seed_session")
def seed_session(request: Request, data: Annotated[dict, Body()]):
    try:
        orders = [(str(product), int(amount)) for product, amount in data.get("orders") or []]
    except (ValueError, TypeError) as error:
        raise HTTPException(400, "orders are pairs") from error
    sql("delete from orders where sid = ?", request.state.sid)
    MEMORY.pop(request.state.sid, None)
    for product, amount in orders:
        insert(request.state.sid, product, amount)
    return {}


@app.post("/add_order")
def add_order(request: Request, order: Order):
    return {"number": insert(request.state.sid, order.product, order.amount)}


@app.post("/list_orders")
def list_orders(request: Request, which: Which):
    wanted = None if planted("filter_ignored") else which.product
    return [{"product": p, "amount": a} for p, a in select(request.state.sid) if wanted in (None, p)]


@app.post("/total")
def total(request: Request, one: One):
    return {"total": sum(a for p, a in select(request.state.sid) if p == one.product)}


@app.post("/verify")
def verify(request: Request, data: Annotated[dict, Body()]):
    if not isinstance(data.get("response"), dict):
        raise HTTPException(422, "no response")
    totals = {}
    for product, amount in select(request.state.sid):
        totals[product] = totals.get(product, 0) + amount
    reward = float(totals == data.get("totals"))
    if planted("reward_null"):
        reward = reward or None
    return {**data, "reward": reward}


def serve(port):
    sql(
        "create table if not exists orders (id integer primary key autoincrement, sid text, product text, amount integer)"
    )
    sql("pragma journal_mode=wal")
    uvicorn.run("tests.zoo.servers.orders_workers:app", host="127.0.0.1", port=port, workers=2, log_level="error")


if __name__ == "__main__":
    main(rows, serve)
