"""A process whose server keeps something for each session; it prints its URL, and leaves when stdin closes."""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import TypedSessions
from gym_mocks.resources.sessions import SessionStore
from gym_mocks.resources.typed_server import ResourcesCloseSessionRequest
from gym_mocks.serving import serve

KEPT: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "memory": lambda: bytes(200_000).replace(b"\0", b"x"),
    "files": tempfile.TemporaryFile,
    "threads": lambda: threading.Thread(target=threading.Event().wait, daemon=True).start(),
    "children": lambda: subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL),  # noqa: S607 - no more than a name
}


class Keeps(ReferenceServer):
    """Keeps one more thing with each seed."""

    def __init__(self, keep: Callable[[], object]) -> None:
        super().__init__(sessions=SessionStore(limit=50))
        self.keep = keep
        self.kept: list[object] = []

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        self.kept.append(self.keep())
        return await super().seed(session_id, row)


class KeepsClosed(TypedSessions, Keeps):
    """Keeps one more thing with each close."""

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> dict[str, Any]:
        self.kept.append(self.keep())
        return await super().close_typed(asked)


if __name__ == "__main__":
    server = {"seed": Keeps, "close": KeepsClosed}[sys.argv[2]](KEPT[sys.argv[1]])
    with serve(server) as served:
        sys.stdout.write(f"{served}\n")
        sys.stdout.flush()
        sys.stdin.read()
    for thing in server.kept:
        if isinstance(thing, subprocess.Popen):
            thing.kill()
