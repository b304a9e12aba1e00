"""A file system on http.server: HTTP/1.0, gzip where it is accepted, thirty calls a session, no OpenAPI, plain text replies."""

import gzip
import hashlib
import hmac
import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.zoo.author import last_text, main, planted, row, tool

PATH = {"type": "string", "pattern": "^/[a-z0-9_./]{0,60}$"}
TOOLS = [
    tool(
        "write_file",
        "Write a file, or append to it.",
        {"path": PATH, "text": {"type": "string", "maxLength": 5000}},
        {"append": {"type": "boolean"}},
    ),
    tool("read_file", "The text of a file.", {"path": PATH}),
    tool("list_files", "The paths that begin with a prefix, one a line.", {"prefix": PATH}),
    tool("remove_file", "Remove a file.", {"path": PATH}),
]
PLANS = {
    0: [("write_file", {"path": f"/log/{day:02}.txt", "text": f"day {day}\n"}) for day in range(1, 16)]
    + [("read_file", {"path": f"/log/{day:02}.txt"}) for day in range(1, 15)]
    + [("list_files", {"prefix": "/log"})],
    1: [
        ("read_file", {"path": "/etc/hosts"}),
        ("write_file", {"path": "/etc/hosts", "text": "::1 here\n", "append": True}),
    ],
    2: [("list_files", {"prefix": "/"}), ("remove_file", {"path": "/tmp/b"})],
}
KEY = b"files"


class Files:
    def __init__(self, files={}):
        self.files = files
        self.lock = threading.Lock()


SESSIONS = {}
SEEDED = []


def rows():
    yield row(
        "Write a log of fifteen days and check it.",
        TOOLS,
        files={},
        wanted={f"/log/{day:02}.txt": f"day {day}\n" for day in range(1, 16)},
    )
    yield row(
        "Add ::1 to the hosts.",
        TOOLS,
        files={"/etc/hosts": "127.0.0.1 here\n"},
        wanted={"/etc/hosts": "127.0.0.1 here\n::1 here\n"},
    )
    yield row("Tidy up /tmp but for a.", TOOLS, files={"/tmp/a": "1", "/tmp/b": "2"}, wanted={"/tmp/a": "1"})


def signed(sid):
    return sid + "." + hmac.new(KEY, sid.encode(), hashlib.sha256).hexdigest()[:24]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def session(self):
        for sid in re.findall(r"files_sid=([0-9a-f]{32})\.", self.headers.get("Cookie", "")):
            if f"files_sid={signed(sid)}" in self.headers["Cookie"]:
                return sid
        return uuid.uuid4().hex

    def answer(self, status, text, kind="text/plain; charset=utf-8"):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Set-Cookie", f"files_sid={signed(self.sid)}; HttpOnly; Path=/")
        if "gzip" in self.headers.get("Accept-Encoding", "") and len(body) > 200:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.sid = self.session()
        self.answer(200 if self.path == "/" else 404, "files\n")

    def do_POST(self):
        self.sid = self.session()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            data = json.loads(body)
        except ValueError:
            data = None
        handler = {"seed_session": self.seed, "verify": self.verify}.get(self.path[1:])
        handler = handler or (
            {"write_file": self.write, "read_file": self.read, "list_files": self.list_, "remove_file": self.remove}
        ).get(self.path[1:])
        if handler is None:
            return self.answer(404, f"unknown path {self.path}\n")
        if not isinstance(data, dict):
            return self.answer(400, "error: the body must be a JSON object\n")
        return handler(data)

    def drive(self):
        if planted("one_drive"):
            return SESSIONS.setdefault("all", Files({}))
        if self.sid not in SESSIONS:
            SESSIONS[self.sid] = Files() if planted("default_argument") else Files({})
        return SESSIONS[self.sid]

    def seed(self, data):
        files = data.get("files", {})
        if not isinstance(files, dict):
            return self.answer(400, "error: files\n")
        SEEDED.append(self.sid)
        if planted("wears_out") and len(SEEDED) > 60:
            return self.answer(503, "no more drives\n")
        if planted("one_drive") or planted("default_argument"):
            self.drive().files.update(files)
        else:
            SESSIONS[self.sid] = Files(dict(files))
        return self.answer(200, "{}", "application/json")

    def bad(self, data, needed, optional=()):
        if not set(needed) <= set(data) <= {*needed, *optional}:
            self.answer(400, f"error: usage: {' '.join(needed)}\n")
        elif not all(isinstance(data[key], bool if key == "append" else str) for key in data):
            self.answer(400, "error: wrong type\n")
        elif not all(re.fullmatch(PATH["pattern"], data[key]) for key in data if key in ("path", "prefix")):
            self.answer(400, "error: not a path\n")
        else:
            return False
        return True

    def write(self, data):
        if planted("append_is_text") and data.get("append") not in (None, "yes", "no"):
            return self.answer(400, "error: append must be yes or no\n")
        if self.bad(data, ["path", "text"], ["append"]):
            return None
        if len(data["text"]) > 5000:
            return self.answer(400, "error: text too long\n")
        drive = self.drive()
        with drive.lock:
            before = drive.files.get(data["path"], "") if data.get("append") else ""
            drive.files[data["path"]] = before + data["text"]
        return self.answer(200, f"{len(drive.files[data['path']])} characters\n")

    def read(self, data):
        if self.bad(data, ["path"]):
            return None
        if planted("crash_on_missing_file"):
            try:
                return self.answer(200, self.drive().files[data["path"]])
            except KeyError as error:
                return self.answer(500, repr(error))
        text = self.drive().files.get(data["path"])
        return self.answer(200, f"error: no such file: {data['path']}\n" if text is None else text)

    def list_(self, data):
        if self.bad(data, ["prefix"]):
            return None
        return self.answer(
            200, "".join(path + "\n" for path in sorted(self.drive().files) if path.startswith(data["prefix"]))
        )

    def remove(self, data):
        if self.bad(data, ["path"]):
            return None
        with self.drive().lock:
            gone = self.drive().files.pop(data["path"], None)
        return self.answer(200, "error: no such file\n" if gone is None else "removed\n")

    def verify(self, data):
        if not isinstance(data.get("response"), dict):
            return self.answer(400, "error: no response\n")
        wanted = data.get("wanted", {})
        reward = float(bool(wanted) and self.drive().files == wanted)
        if planted("reward_by_claim"):
            reward = float(
                "done" in last_text(data["response"]).lower() or "success" in last_text(data["response"]).lower()
            )
        return self.answer(200, json.dumps({**data, "reward": reward}), "application/json")


def serve(port):
    ThreadingHTTPServer.request_queue_size = 256
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(rows, serve)
