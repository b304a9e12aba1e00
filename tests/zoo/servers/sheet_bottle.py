"""A spreadsheet on Bottle: cells and formulas, replies in plain text, errors as a 200 that begins with '#', nothing recorded."""

import hashlib
import hmac
import json
import re
import socketserver
import uuid
from http.cookies import CookieError, SimpleCookie
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from bottle import Bottle, HTTPResponse, request, response

from tests.zoo.author import main, planted, row, tool

CELL = {"type": "string", "pattern": "^[A-E][1-9]$"}
TOOLS = [
    tool(
        "set_cell",
        "Put a number or a formula such as =A1+B2 into a cell.",
        {"cell": CELL, "value": {"type": "string", "minLength": 1, "maxLength": 40}},
    ),
    tool("get_cell", "What a cell shows.", {"cell": CELL}),
    tool(
        "sum_range",
        "The sum of a column's cells, from one row to another.",
        {
            "column": {"type": "string", "enum": list("ABCDE")},
            "first": {"type": "integer", "minimum": 1, "maximum": 9},
            "last": {"type": "integer", "minimum": 1, "maximum": 9},
        },
    ),
    tool("clear", "Empty the sheet.", {}),
]
SECRET = b"sheet"
SHEETS = {}
app = Bottle()


def rows():
    yield row("Put the sum of A1 and A2 into A3.", TOOLS, id="sum", cells={"A1": "2", "A2": "40"}, goal={"A3": 42})
    yield row("Double B1 into B2.", TOOLS, id="double", cells={"B1": "8"}, goal={"B2": 16})
    yield row("Put 7 into C3 and C4.", TOOLS, id="seven", cells={"C1": "1"}, goal={"C3": 7, "C4": 7})


def sheet():
    if planted("keyed_by_row"):
        return SHEETS.setdefault(SHEETS.get(("row", request.sid)), {})
    return SHEETS.setdefault(request.sid, {})


@app.hook("before_request")
def find_session():
    request.sid = request.environ["sheet.sid"]


class Sessions:
    """A WSGI layer around Bottle, whose own hooks lose the cookie of an error."""

    def __call__(self, environ, start_response):
        name, _, signature = cookie_of(environ).partition(".")
        environ["sheet.sid"] = sid = name if name and signed(name) == signature else uuid.uuid4().hex

        def start(status, headers, exc_info=None):
            headers.append(("Set-Cookie", f"sheet={sid}.{signed(sid)}; Path=/; HttpOnly"))
            return start_response(status, headers, exc_info)

        return app(environ, start)


def cookie_of(environ):
    try:
        return SimpleCookie(environ.get("HTTP_COOKIE", ""))["sheet"].value
    except (KeyError, CookieError):
        return ""


def signed(sid):
    return hmac.new(SECRET, sid.encode(), hashlib.sha256).hexdigest()


def reply(text, status=200):
    response.status = status
    response.content_type = "text/plain; charset=UTF-8"
    return text + "\n"


def arguments():
    try:
        data = json.loads(request.body.read())
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise HTTPResponse("#BODY\n", 400, {"Content-Type": "text/plain"})
    return data


def number(cells, cell, depth=0):
    text = cells.get(cell, "0")
    if depth > 20:
        return None
    try:
        if not text.startswith("="):
            return float(text)
        total = 0.0
        for term in text[1:].split("+"):
            value = number(cells, term, depth + 1) if re.fullmatch(CELL["pattern"], term) else float(term)
            if value is None:
                return None
            total += value
    except ValueError:
        return None
    return total


@app.get("/")
def root():
    return reply("sheet")


@app.post("/seed_session")
def seed_session():
    data = arguments()
    cells = data.get("cells", {})
    if not isinstance(cells, dict) or not all(isinstance(text, str) for text in cells.values()):
        return reply("#ROW", 400)
    if planted("keyed_by_row"):
        SHEETS["row", request.sid] = data.get("id")
        SHEETS.setdefault(data.get("id"), dict(cells))
    else:
        SHEETS[request.sid] = dict(cells)
    response.content_type = "application/json"
    return json.dumps({"cells": len(cells)})


def a_cell(x):
    return isinstance(x, str) and re.fullmatch(CELL["pattern"], x) is not None


@app.post("/set_cell")
def set_cell():
    data = arguments()
    if planted("value_is_a_number"):
        data["value"] = str(data["value"]) if isinstance(data.get("value"), int | float) else None
    if (
        set(data) != {"cell", "value"}
        or not a_cell(data["cell"])
        or not isinstance(data["value"], str)
        or not 1 <= len(data["value"]) <= 40
    ):
        return reply("#ARGS set_cell needs a cell such as B2 and a value")
    sheet()[data["cell"]] = data["value"]
    value = number(sheet(), data["cell"])
    return reply(f"{data['cell']} = {value if value is not None else '#VALUE'}")


@app.post("/get_cell")
def get_cell():
    data = arguments()
    if set(data) != {"cell"} or not a_cell(data["cell"]):
        return reply("#ARGS get_cell needs a cell such as B2")
    value = number(sheet(), data["cell"])
    return reply(f"{value}" if value is not None else "#VALUE")


@app.post("/sum_range")
def sum_range():
    data = arguments()
    columns = "ABCDE" if not planted("column_refused") else "ABCD"
    if planted("crash_on_types") and isinstance(data.get("first"), str):
        raise HTTPResponse("TypeError\n", 500)
    if set(data) != {"column", "first", "last"} or not all(
        type(data[k]) is int and 1 <= data[k] <= 9 for k in ("first", "last")
    ):
        return reply("#ARGS sum_range needs a column and two rows from 1 to 9")
    if not isinstance(data["column"], str) or len(data["column"]) != 1 or data["column"] not in columns:
        return reply(f"#ARGS no column {data['column']!a}")
    values = [number(sheet(), f"{data['column']}{n}") for n in range(data["first"], data["last"] + 1)]
    return reply("#VALUE" if None in values else str(sum(values)))


@app.post("/clear")
def clear():
    if arguments():
        return reply("#ARGS clear takes none")
    sheet().clear()
    return reply("empty")


@app.post("/verify")
def verify():
    data = arguments()
    if not isinstance(data.get("response"), dict):
        return reply("#RESPONSE", 400)
    goal = data.get("goal") or {}
    reward = sum(number(sheet(), cell) == wanted for cell, wanted in goal.items()) / max(1, len(goal))
    if planted("verify_clears"):
        sheet().clear()
    if planted("crash_on_refusal"):
        for item in data["response"].get("output", []):
            for part in item.get("content", []) if item.get("type") == "message" else []:
                if "text" not in part:
                    raise HTTPResponse("KeyError('text')", 500)
    response.content_type = "application/json"
    return json.dumps({**data, "reward": reward})


@app.error(404)
@app.error(405)
def nowhere(error):
    return "#TOOL there is no such tool\n"


class Threads(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 256


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


def serve(port):
    from wsgiref.simple_server import make_server

    make_server("127.0.0.1", port, Sessions(), Threads, Quiet).serve_forever()


if __name__ == "__main__":
    main(rows, serve)
