"""Sandboxes that run nothing: what commands answer and what goes wrong is scripted, and all that was asked is known.

`gym_mocks.sandbox_provider` is nemo-gym's way to them.
"""

import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Final, Self

from gym_mocks.addresses import LOOPBACK

#: Characters of an output that does not end.
_ENDLESS: Final = 8 << 20

#: Commands that are remembered, and bytes of what is uploaded in all.
_COMMANDS, _UPLOADED = 10_000, 64 << 20

#: The texts that an operation needs.
_NEEDED: Final = {
    "exec": ("id", "command"),
    "upload": ("path", "content"),
    "download": ("path",),
    "status": ("id",),
    "close": ("id",),
}


class SandboxFault(StrEnum):
    """What goes wrong with sandboxes."""

    NONE = "nothing"
    NOT_CREATED = "creation fails"
    NO_CAPACITY = "there is no capacity"
    FAILED = "a command ends with status 1"
    TIMEOUT = "a command times out"
    KILLED = "a command is killed for memory, with 137"
    NOT_TEXT = "the output is no UTF-8"
    ENDLESS = "the output does not end"
    NO_FILE = "a file is not there"
    BAD_GATEWAY = "a command is answered with 502"
    NOT_CLOSED = "closing fails"


@dataclass(frozen=True)
class CommandResult:
    """What a command is said to have done."""

    stdout: str = ""
    stderr: str = ""
    return_code: int = 0
    error_type: str | None = None


_COMMIT: Final = "5c6f2b0f6f1d4d8c9e7a3b1d2e4f60718293a4b5"


def usual(command: str) -> CommandResult:
    """What code asks of any sandbox before it begins: where it is, and at which commit; nothing else prints anything."""
    last = command.strip().splitlines()[-1] if command.strip() else ""
    if "rev-parse" in last and "HEAD" in last:
        return CommandResult(stdout=f"{_COMMIT}\n")
    return CommandResult(stdout="/workspace\n" if last.rpartition("&& ")[2].strip() == "pwd" else "")


_RESULTS: Final = {
    SandboxFault.FAILED: CommandResult(return_code=1),
    SandboxFault.TIMEOUT: CommandResult(stderr="command timed out", return_code=125, error_type="timeout"),
    SandboxFault.KILLED: CommandResult(stderr="Killed", return_code=137),
    SandboxFault.NOT_TEXT: CommandResult(stdout="\udcff\udcfe \ufffd\x00", return_code=1),
    SandboxFault.ENDLESS: CommandResult(stdout="y\n" * (_ENDLESS // 2)),
}
_REFUSALS: Final = {
    ("create", SandboxFault.NOT_CREATED): {"raise": "create", "message": "the sandbox did not become ready"},
    ("create", SandboxFault.NO_CAPACITY): {"raise": "create", "message": "no capacity: 0 of 64 slots are free"},
    ("exec", SandboxFault.BAD_GATEWAY): {"raise": "runtime", "message": "502 Bad Gateway"},
    ("close", SandboxFault.NOT_CLOSED): {"raise": "runtime", "message": "the sandbox could not be deleted: 500"},
    ("download", SandboxFault.NO_FILE): {"raise": "file", "message": "no such file in the sandbox"},
}


@dataclass
class Sandboxes:
    """All sandboxes of one place. Close it, or use it as a context manager.

    Attributes:
        run: what a command answers; by default hardly any prints anything, and all have exit status 0.
        fault: what goes wrong from now on.
        commands: what was to be run, with the sandbox's id.
        made: the ids of the sandboxes that were made.
        closing: how often each was to be closed.
        files: what was uploaded, or is there to be downloaded, by path.
    """

    run: Callable[[str], CommandResult] = usual
    fault: SandboxFault = SandboxFault.NONE
    commands: list[tuple[str, str]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    closing: Counter[str] = field(default_factory=Counter)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _handler(self._answer))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="gym-sandboxes", daemon=True).start()

    @property
    def url(self) -> str:
        """For the config: `sandbox: {gym_mocks: {url: ...}}`."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    @property
    def left(self) -> list[str]:
        """The sandboxes that nobody has closed, or tried to."""
        with self._lock:
            return [one for one in self.made if not self.closing[one]]

    def forget(self) -> None:
        """Begin anew, with nothing wrong."""
        with self._lock:
            self.fault = SandboxFault.NONE
            for each in (self.commands, self.made, self.closing, self.files):
                each.clear()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.asked += 1
            if operation == "close":
                self.closing[str(given["id"])] += 1
            if refusal := _REFUSALS.get((operation, self.fault)):
                return refusal
            return self._done(operation, given)

    def _done(self, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        match operation:
            case "create":
                self.made.append(f"sandbox-{next(self._numbers)}")
                files = given.get("files", {}).items()
                self.files |= {path: str(content).encode(errors="replace") for path, content in files}
                return {"id": self.made[-1]}
            case "exec":
                if len(self.commands) < _COMMANDS:
                    self.commands.append((given["id"], given["command"]))
                return vars(_RESULTS.get(self.fault) or self.run(given["command"]))
            case "upload":
                return self._kept(given["path"], given["content"])
            case "download":
                found, missing = self.files.get(given["path"]), f"no such file: {given['path']}"
                return _no_file(missing) if found is None else {"content": base64.b64encode(found).decode()}
            case "status":
                return {"status": "stopped" if self.closing[str(given["id"])] else "running"}
        return {}

    def _kept(self, path: str, encoded: str) -> dict[str, Any]:
        try:
            content = base64.b64decode(encoded)
        except ValueError:
            return _no_file("the content is no base64")
        if sum(map(len, self.files.values())) + len(content) < _UPLOADED:
            self.files[path] = content
        return {}


def _no_file(why: str) -> dict[str, Any]:
    return {"raise": "file", "message": why}


def _handler(answer: Callable[[str, dict[str, Any]], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            operation = self.path[1:]
            given = self.given(_NEEDED.get(operation, ()))
            reply = {"detail": "the provider sends no such request"} if given is None else answer(operation, given)
            body = json.dumps(reply).encode()
            self.send_response(400 if given is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def given(self, needed: Sequence[str]) -> dict[str, Any] | None:
            """The request's JSON object with the texts that are needed; None where it is no such thing, or too large."""
            try:
                length = int(self.headers.get("content-length", "0"))
                given = json.loads(self.rfile.read(length)) if 0 <= length <= 2 * _UPLOADED else None
            except (ValueError, RecursionError):
                return None
            if not (isinstance(given, dict) and isinstance(given.get("files", {}), dict)):
                return None
            return given if all(isinstance(given.get(name), str) for name in needed) else None

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
