"""A knight on a chess board, on Tornado: partial rewards, secure cookies, OpenAPI at /docs/openapi.json, nothing recorded."""

import asyncio
import json
import uuid

import tornado.web

from tests.zoo.author import main, planted, row, tool

SQUARE = {"type": "string", "pattern": "^[a-h][1-8]$"}
TOOLS = [
    tool("move", "Move the knight.", {"to": SQUARE}),
    tool("where", "Where the knight is, and how many moves are left.", {}),
    tool("threatened", "What a knight on a square attacks.", {"square": SQUARE}),
]
GAMES = {}


def rows():
    for start, target, moves in [("a1", "b3", 3), ("e4", "f6", 4), ("h8", "g6", 2), ("d4", "b3", 5)]:
        yield row(
            f"Bring the knight from {start} to {target} in {moves} moves.",
            TOOLS,
            start=start,
            target=target,
            moves=moves,
        )


def attacks(square):
    file, rank = ord(square[0]), int(square[1])
    jumps = [(file + a, rank + b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)]
    return sorted(chr(f) + str(r) for f, r in jumps if 97 <= f <= 104 and 1 <= r <= 8)


def a_square(x):
    return isinstance(x, str) and len(x) == 2 and x[0] in "abcdefgh" and x[1] in "12345678"


class Base(tornado.web.RequestHandler):
    def prepare(self):
        kept = self.get_secure_cookie("knight")
        self.sid = kept.decode() if kept else uuid.uuid4().hex
        if planted("cookie_at_seed_only") and self.request.path != "/seed_session":
            return
        self.set_secure_cookie("knight", self.sid)

    def write_error(self, status_code, **kwargs):
        if not (planted("cookie_at_seed_only") and self.request.path != "/seed_session"):
            self.set_secure_cookie("knight", self.sid)
        error = kwargs.get("exc_info", (None, None, None))[1]
        self.finish({"error": str(getattr(error, "log_message", None) or self._reason)})

    def get(self):
        if self.request.path != "/":
            raise tornado.web.HTTPError(404, "no such tool")
        self.write("knight")

    def post(self):
        raise tornado.web.HTTPError(404, "no such tool")

    def body(self):
        try:
            data = json.loads(self.request.body)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise tornado.web.HTTPError(400, "the body must be an object")
        return data

    def game(self):
        if self.sid not in GAMES:
            GAMES[self.sid] = {"at": "a1", "target": "", "left": 0, "path": []}
        return GAMES[self.sid]


class Seed(Base):
    def post(self):
        data = self.body()
        start = data.get("start", "a1")
        if not a_square(start) or type(data.get("moves", 0)) is not int:
            raise tornado.web.HTTPError(400, "start must be a square, moves a number")
        GAMES[self.sid] = {
            "at": data.get("start", "a1"),
            "target": data.get("target"),
            "left": data.get("moves", 0),
            "path": [],
        }
        if planted("first_row_for_all"):
            GAMES[self.sid] = GAMES[next(iter(GAMES))]
        self.write({})


class Move(Base):
    def post(self):
        data = self.body()
        key = "square" if planted("renamed_argument") else "to"
        if set(data) != {key} or not a_square(data[key]):
            raise tornado.web.HTTPError(400, f"{key} must be a square such as e4")
        game = self.game()
        if data[key] not in attacks(game["at"]):
            return self.write({"moved": False, "at": game["at"], "reason": "a knight does not go there"})
        if game["left"] <= 0:
            return self.write({"moved": False, "at": game["at"], "reason": "no moves are left"})
        game["at"] = data[key]
        game["left"] -= 1
        game["path"].append(data[key])
        return self.write({"moved": True, "at": game["at"]})


class Where(Base):
    def post(self):
        if self.body():
            raise tornado.web.HTTPError(400, "where takes no arguments")
        game = self.game()
        self.write({"at": game["at"], "left": game["left"], "path": game["path"]})


class Threatened(Base):
    def post(self):
        data = self.body()
        if set(data) != {"square"} or not (a_square(data["square"]) or planted("crash_off_the_board")):
            raise tornado.web.HTTPError(400, "square must be a square such as e4")
        self.write({"attacks": attacks(data["square"])})


class Verify(Base):
    def post(self):
        data = self.body()
        if not isinstance(data.get("response"), dict):
            raise tornado.web.HTTPError(422, "response is missing")
        game = self.game()
        if planted("verify_plays_on") and game["left"] > 0:
            game["left"] -= 1
        target = data.get("target")
        near = a_square(target) and (target in attacks(game["at"]))
        reward = 1.0 if game["at"] == target else 0.25 if near and game["path"] else 0.0
        if planted("crash_reasoning_only"):
            reward *= (
                data["response"]["output"][-1]["type"] in ("message", "function_call")
                and len(data["response"]["output"][-1].get("content", " ")) > 0
            )
        if planted("reward_infinite") and not game["path"]:
            reward = float("-inf")
        self.write({**data, "reward": reward})


def operation(name, schema):
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"post": {"operationId": name, "requestBody": body, "responses": {"200": {"description": "done"}}}}


class Docs(Base):
    def get(self):
        paths = {"/" + each["name"]: operation(each["name"], each["parameters"]) for each in TOOLS}
        for name in ("seed_session", "verify"):
            paths["/" + name] = operation(name, {"type": "object"})
        if planted("renamed_argument"):
            paths["/move"] = operation(
                "move", {"type": "object", "properties": {"square": SQUARE}, "required": ["square"]}
            )
        self.write({"openapi": "3.0.3", "info": {"title": "Knight", "version": "1"}, "paths": paths})


async def run(port):
    pages = [
        ("/seed_session", Seed),
        ("/move", Move),
        ("/where", Where),
        ("/threatened", Threatened),
        ("/verify", Verify),
    ]
    pages += [("/docs/openapi.json", Docs), ("/.*", Base)]
    app = tornado.web.Application(pages, cookie_secret="horse", log_function=lambda handler: None)
    app.listen(port, "127.0.0.1", max_body_size=2**26)
    await asyncio.Event().wait()


def serve(port):
    asyncio.run(run(port))


if __name__ == "__main__":
    main(rows, serve)
