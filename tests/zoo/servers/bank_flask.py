"""A bank on Flask, a thread for each request. An account that is not there is a 404 of the tool's own; other refusals are 400."""

import time
from uuid import uuid4

from flask import Flask, jsonify, request, session

from tests.zoo.author import main, planted, row, tool

NAME = {"type": "string", "minLength": 1}
CENTS = {"type": "integer", "minimum": 1, "maximum": 1000000}
CURRENCY = {"type": "string", "enum": ["EUR", "USD", "CHF"]}
TOOLS = [
    tool("get_balance", "Balance of an account, in cents.", {"account": NAME}),
    tool("open_account", "Open an empty account.", {"account": NAME, "currency": CURRENCY}),
    tool("transfer", "Move money between two accounts.", {"source": NAME, "target": NAME, "cents": CENTS}),
]
PLANS = {
    0: [("get_balance", {"account": "alice"}), ("transfer", {"source": "alice", "target": "bob", "cents": 2500})],
    1: [
        ("open_account", {"account": "savings", "currency": "CHF"}),
        ("transfer", {"source": "carol", "target": "savings", "cents": 100}),
        ("get_balance", {"account": "savings"}),
    ],
    2: [("get_balance", {"account": "dave"}), ("transfer", {"source": "erin", "target": "dave", "cents": 42})],
}

app = Flask(__name__)
app.config.update(SECRET_KEY="not much of a secret", SESSION_REFRESH_EACH_REQUEST=True)
BOOKS = {}
current = None


def rows():
    yield row(
        "Send Bob 25 euros from Alice.", TOOLS, accounts={"alice": 9000, "bob": 0}, goal={"alice": 6500, "bob": 2500}
    )
    yield row(
        "Open 'savings' in francs and put one of Carol's into it.",
        TOOLS,
        accounts={"carol": 300},
        goal={"carol": 200, "savings": 100},
    )
    yield row("Pay Dave his 42 cents from Erin.", TOOLS, accounts={"dave": 1, "erin": 50}, goal={"dave": 43, "erin": 8})


@app.before_request
def find_session():
    global current
    session.permanent = True
    session.setdefault("sid", uuid4().hex)
    current = session["sid"]


def book():
    if planted("current_session"):
        time.sleep(0.004)
        return BOOKS.setdefault(current, {})
    return BOOKS.setdefault("all" if planted("one_book") else session["sid"], {})


@app.after_request
def keep_cookie(response):
    if planted("cookie_lost_on_error") and response.status_code >= 400:
        response.set_cookie("session", "", max_age=0)
    return response


def no(words, status=400):
    reply = jsonify(ok=False, error=words)
    if planted("cookie_lost_on_error"):
        session.clear()
    return reply, status


@app.get("/")
def root():
    return "bank"


@app.post("/seed_session")
def seed():
    data = request.get_json(silent=True)
    if not isinstance(data, dict) or not isinstance(data.get("accounts", {}), dict):
        return no("no row")
    if planted("one_book"):
        for name, cents in data.get("accounts", {}).items():
            book().setdefault(name, cents)
    else:
        BOOKS[session["sid"]] = dict(data.get("accounts", {}))
    return jsonify({})


@app.post("/get_balance")
def get_balance():
    data = request.get_json(silent=True)
    if not isinstance(data, dict) or set(data) != {"account"} or not isinstance(data["account"], str):
        return no("account is needed, a name")
    if data["account"] not in book():
        return no(f"no account named {data['account']}", 404)
    return jsonify(ok=True, cents=book()[data["account"]])


@app.post("/open_account")
def open_account():
    data = request.get_json(silent=True)
    if not isinstance(data, dict) or set(data) != {"account", "currency"}:
        return no("account and currency are needed")
    allowed = ["EUR", "USD"] if planted("enum_member_refused") else CURRENCY["enum"]
    if data["currency"] not in allowed or not isinstance(data["account"], str) or not data["account"]:
        return no(f"currency must be one of {', '.join(allowed)}, account a name")
    if data["account"] in book():
        return no("there is such an account", 409)
    book()[data["account"]] = 0
    return jsonify(ok=True, opened=data["account"], currency=data["currency"])


@app.post("/transfer")
def transfer():
    data = request.get_json(silent=True)
    if planted("crash_on_malformed"):
        data = request.get_json(force=True, silent=True)
        data["cents"] + 0
    if not isinstance(data, dict) or set(data) != {"source", "target", "cents"}:
        return no("source, target and cents are needed")
    source, target, cents = data["source"], data["target"], data["cents"]
    if (
        type(cents) is not int
        or not 1 <= cents <= 1000000
        or not all(isinstance(x, str) and x for x in (source, target))
    ):
        return no("cents must be a whole number from 1 to 1000000, source and target names")
    for name in (source, target):
        if name not in book():
            return no(f"no account named {name}", 404)
    if book()[source] < cents:
        return no("not enough money", 402)
    book()[source] -= cents
    book()[target] += cents
    return jsonify(ok=True, left=book()[source])


@app.post("/verify")
def verify():
    data = request.get_json(silent=True)
    if not isinstance(data, dict) or not isinstance(data.get("response"), dict):
        return no("no response")
    reward = float(book() == data.get("goal"))
    if planted("reward_is_text"):
        reward = str(reward)
    if planted("verify_consumes"):
        BOOKS.pop(session["sid"], None)
    return jsonify({**data, "reward": reward})


def serve(port):
    app.run("127.0.0.1", port, threaded=True)


if __name__ == "__main__":
    main(rows, serve)
