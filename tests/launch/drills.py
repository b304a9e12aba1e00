"""Envs that go wrong when they are launched: modules with an ASGI application `app`, and what becomes of their processes."""

import os
import time
from pathlib import Path
from textwrap import dedent

import psutil

from gym_conformance.launch.env import Env
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.specification import Launch, PeerAddresses

#: Ports that nobody listens on: these envs ask nobody.
NOBODY = PeerAddresses(("127.0.0.1", 9), ("127.0.0.1", 9))

#: Answers everything; what stands before it goes wrong.
ANSWERING = """
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})
"""

#: The reference, as a module that says with a file of its own that it was launched.
FINE = """
import os
from pathlib import Path
from gym_mocks.reference import ReferenceServer, reference_app
app = reference_app()
Path(f"{__name__}-{os.getpid()}").touch()
"""

#: After it: breaks seed-replies-object.
BAD = """
class Bad(ReferenceServer):
    async def seed(self, session_id, row):
        await super().seed(session_id, row)
app = Bad()
"""


def application(folder: Path, source: str, deadline: float = 20.0) -> LaunchedServer:
    """A module `drill` of this source, not launched yet."""
    (folder / "drill.py").write_text(dedent(source) + dedent(ANSWERING))
    return LaunchedServer(Launch(Env("drill", folder, "drill:app"), NOBODY, deadline=deadline))


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process is gone within so long."""
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def written(path: Path, seconds: float = 90.0) -> int:
    """The number that a process writes to a file within so long."""
    deadline = time.monotonic() + seconds
    while not (path.exists() and path.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return int(path.read_text())


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - it changes while it is read
