"""Guards one server: keeps the end of its output, and ends all that it started when our standard input ends.

    python guard.py LOG LIMIT DESCRIPTORS -- COMMAND...

Run by its path, in a session of its own. The first line of standard input is for the server; end of input, which also
comes if the parent dies, is the order to stop. The server announces itself on our standard output, on which we finally
report how it ended. LIMIT is in bytes; DESCRIPTORS, separated by commas, are inherited by the server; the one for the
announcement is the last word of the command.
"""

import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import psutil

#: Seconds that the server has to end by itself.
GRACE = 2.0

#: Seconds within which killed processes must be gone.
_KILL = 5.0

#: Bytes per read.
_CHUNK = 65536

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Log:
    """The end of the output: the current file and the one before it, each of half the limit."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.half = limit // 2
        self.file: BinaryIO = path.open("wb", buffering=0)

    def write(self, data: bytes) -> None:
        """Append. Old data is dropped, and so is what a full disk does not accept: the server must not die of it."""
        with suppress(OSError):
            if self.file.tell() + len(data) > self.half:
                self.path.replace(self.path.with_name(self.path.name + ".before"))
                self.file.close()
                self.file = self.path.open("wb", buffering=0)
            self.file.write(data)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_guard() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Orders:
    """Orders received as signals: each wakes a wait on `woken`; `stop` says whether to end."""

    def __init__(self) -> None:
        self.stop = False
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._end)

    def _end(self, *_: object) -> None:
        self.stop = True


def guard(log: Log, command: list[str], descriptors: tuple[int, ...]) -> int:
    """Run the server until it ends or must stop; returns its exit status."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # so that orphaned descendants become our children
    orders = Orders()
    first = sys.stdin.buffer.readline()
    announcement = os.dup(1)
    server = subprocess.Popen(  # noqa: S603 - the command comes from our parent
        [*command, str(announcement)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(announcement, *descriptors),
        preexec_fn=_die_with_guard,  # noqa: PLW1509 - we have only one thread
    )
    for descriptor in (announcement, *descriptors):
        os.close(descriptor)
    assert server.stdin is not None  # noqa: S101 - they are pipes
    assert server.stdout is not None  # noqa: S101
    with suppress(BrokenPipeError):
        server.stdin.write(first)
        server.stdin.close()
    _watch(server, server.stdout.fileno(), orders, log)
    end_all()
    os.set_blocking(server.stdout.fileno(), False)
    with suppress(BlockingIOError):
        while data := os.read(server.stdout.fileno(), _CHUNK):
            log.write(data)
    return server.wait()


def _watch(server: "subprocess.Popen[bytes]", output: int, orders: Orders, log: Log) -> None:
    """Write the log until the server has ended, or has been told to end and does not."""
    deadline: float | None = None
    with selectors.DefaultSelector() as selector:
        for channel in (0, orders.woken, output):
            selector.register(channel, selectors.EVENT_READ)
        while server.poll() is None:
            if orders.stop and deadline is None:
                server.terminate()
                deadline = time.monotonic() + GRACE
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            for key, _ in selector.select(left):
                data = os.read(key.fd, _CHUNK)
                if key.fd == output:
                    log.write(data)
                if not data:
                    selector.unregister(key.fd)
                    orders.stop |= key.fd == 0


def end_all() -> None:
    """Kill all our descendants, including those started meanwhile."""
    deadline = time.monotonic() + _KILL
    while (rest := psutil.Process().children(recursive=True)) and time.monotonic() < deadline:
        for process in rest:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(rest, timeout=0.5)


def main() -> None:
    """Guard, report how it ended, and kill the rest of our process group, ourselves included."""
    path, limit, descriptors, _, *command = sys.argv[1:]
    try:
        said: dict[str, Any] = {
            "ended": guard(Log(Path(path), int(limit)), command, tuple(map(int, descriptors.split(","))))
        }
    except OSError as error:
        message = f"a working interpreter: {command[0]}: {error.strerror}"
        said = {"failed": {"type": "LaunchError", "bases": [], "message": message}}  # in the child's format
    try:
        os.write(1, json.dumps(said).encode() + b"\n")
    except OSError:  # our parent was killed, so nobody will read or remove the log
        shutil.rmtree(Path(path).parent, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
