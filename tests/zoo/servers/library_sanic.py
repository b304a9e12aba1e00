"""Library search on Sanic: pages with cursors, rows of 200 KB, a catch-all for wrong paths, errors as {"error": {"code", "message"}}."""

import secrets

from sanic import Sanic
from sanic.exceptions import SanicException
from sanic.response import json, text

from tests.zoo.author import last_text, main, planted, row, tool

WORD = {"type": "string", "minLength": 1, "maxLength": 40}
SORT = {"type": "string", "enum": ["year", "title"]}
TOOLS = [
    tool(
        "search", "Books with a word in the title; five at a time, more by the cursor.", {"word": WORD}, {"sort": SORT}
    ),
    tool("next_page", "The next five of a search.", {"cursor": {"type": "string"}}),
    tool("lend", "Borrow a book by its id.", {"book": {"type": "integer", "minimum": 0}}),
]
PLANS = {
    0: [
        ("search", {"word": "sea", "sort": "year"}),
        lambda seen: ("next_page", {"cursor": seen[0]["next"]}),
        ("lend", {"book": 7}),
    ],
    1: [("search", {"word": "moon"}), lambda seen: ("lend", {"book": seen[0]["books"][0]["id"]})],
}
SHELVES = {}
CURSORS = {}
CACHE = {}

app = Sanic("library")
app.config.REQUEST_MAX_SIZE = 2**26
app.config.ACCESS_LOG = False


def rows():
    words = ["sea", "moon", "salt", "iron", "rain"]
    for number, wanted in enumerate([7, 1, 12]):
        titles = [f"The {words[(n + number) % 5]} and the {words[(n * 3 + 1) % 5]}, volume {n}" for n in range(40)]
        books = [{"id": n, "title": title, "year": 1900 + (n * 37 + number) % 100} for n, title in enumerate(titles)]
        yield row(f"Borrow '{titles[wanted]}'.", TOOLS, books=books, notes="x" * 200_000, wanted=wanted)


@app.on_request
async def find_session(request):
    sid = request.cookies.get("library", "")
    if sid not in SHELVES:
        sid = secrets.token_hex(16)
        SHELVES[sid] = {"books": [], "lent": []}
    request.ctx.sid = sid


@app.on_response
async def keep_session(request, response):
    response.add_cookie("library", request.ctx.sid, httponly=True, secure=False)


def no(code, message, status=400):
    return json({"error": {"code": code, "message": message}}, status=status)


@app.exception(SanicException)
async def refused(request, error):
    return no("request", str(error), error.status_code)


def body_of(request):
    data = request.json
    if not isinstance(data, dict):
        raise SanicException("a JSON object is needed", status_code=400)
    return data


def page(request, books, start):
    reply = {"books": books[start : start + 5]}
    if start + 5 < len(books):
        cursor = secrets.token_urlsafe(8)
        CURSORS[cursor] = (request.ctx.sid, books, start + 5)
        reply["next"] = cursor
    return json(reply)


@app.get("/")
async def root(request):
    return text("library")


@app.post("/seed_session")
async def seed_session(request):
    data = body_of(request)
    books = data.get("books", [])
    if not isinstance(books, list) or not all(
        isinstance(book, dict) and {"id", "title", "year"} <= set(book) for book in books
    ):
        return no("row", "books?")
    SHELVES[request.ctx.sid] = {"books": books, "lent": []}
    if planted("shelf_of_first_row"):
        SHELVES[request.ctx.sid]["books"] = CACHE.setdefault("books", books)
    return json({"books": len(books)})


@app.post("/search")
async def search(request):
    data = body_of(request)
    word, sort = data.get("word"), data.get("sort", "title")
    if not set(data) <= {"word", "sort"} or not isinstance(word, str) or not 1 <= len(word) <= 40:
        return no("arguments", "word is needed, and sort may be given")
    if sort not in (SORT["enum"] if not planted("enum_member_refused") else ["title"]):
        return no("arguments", f"sort by what? {sort}")
    found = [book for book in SHELVES[request.ctx.sid]["books"] if word in book["title"]]
    if planted("cache_by_word"):
        found = CACHE.setdefault(word, found)
    return page(request, sorted(found, key=lambda book: (str(book[sort]), book["id"])), 0)


@app.post("/next_page")
async def next_page(request):
    data = body_of(request)
    if set(data) != {"cursor"} or not isinstance(data["cursor"], str):
        return no("arguments", "cursor is needed")
    if planted("crash_on_cursor"):
        try:
            sid, books, start = CURSORS[data["cursor"]]
        except KeyError as error:
            return text(repr(error), status=500)
    else:
        sid, books, start = CURSORS.get(data["cursor"], (None, [], 0))
    if sid is None or (sid != request.ctx.sid and not planted("foreign_cursor")):
        return no("cursor", "there is no such cursor", 410)
    return page(request, books, start)


@app.post("/lend")
async def lend(request):
    data = body_of(request)
    if set(data) != {"book"} or type(data["book"]) is not int or data["book"] < 0:
        return no("arguments", "book is needed, a number from 0")
    shelf = SHELVES[request.ctx.sid]
    if data["book"] not in [book["id"] for book in shelf["books"]]:
        return no("not_found", "no book has this id", 404)
    if data["book"] in shelf["lent"]:
        return no("lent", "you have it already", 409)
    shelf["lent"].append(data["book"])
    return json({"lent": shelf["lent"]})


@app.post("/verify")
async def verify(request):
    data = body_of(request)
    if not isinstance(data.get("response"), dict):
        return no("response", "missing")
    shelf = SHELVES[request.ctx.sid]
    reward = float(shelf["lent"] == [data.get("wanted")])
    if planted("pays_for_nothing") and not shelf["lent"]:
        reward = 1.0
    if planted("verify_gives_back"):
        shelf["lent"].clear()
    return json({**data, "reward": reward})


def serve(port):
    app.run("127.0.0.1", port, single_process=True, motd=False, debug=False)


if __name__ == "__main__":
    main(rows, serve)
