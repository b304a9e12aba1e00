"""A headless Chromium, driven over a pipe with the DevTools protocol: no driver, no port, no dependency."""

import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Self

_DEADLINE = 60.0
_SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")


def find_chromium() -> str | None:
    """The browser: $GYM_CHROMIUM, or the first of its usual names on PATH."""
    names = (os.environ.get("GYM_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Chromium:
    """One browser with a profile of its own; ended with all its processes."""

    def __init__(self, executable: str, profile: Path) -> None:
        child_reads, self._write = os.pipe()
        self._read, child_writes = os.pipe()
        # Chromium reads its commands from descriptor 3 and answers on 4.
        redirect = f'exec "$0" "$@" 3<&{child_reads} 4>&{child_writes}'
        command = ["bash", "-c", redirect, executable, *_SWITCHES, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(child_reads, child_writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(child_reads)
        os.close(child_writes)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_DEADLINE)
        os.close(self._write)
        os.close(self._read)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Give a command and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": session} if session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + _DEADLINE
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium said nothing for {_DEADLINE:g} s")
            if not (piece := os.read(self._read, 1 << 20)):
                raise ConnectionError("Chromium is gone")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer
