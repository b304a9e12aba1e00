"""The live line: there on a terminal while a check runs, gone when it ends, and nowhere else."""

import asyncio
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gym_conformance.plugin.progress import line
from gym_mocks.reference import DATA, ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp

LINE = re.compile(rb"verify-degenerate: [\d,]+ examples?, [\d,]+ requests, [\d,]+/s, \d+ s")


class _Slow(ReferenceServer):
    async def dispatch(self, request: HttpRequest) -> HttpReply:
        await asyncio.sleep(0.05)
        return await super().dispatch(request)


def on_a_terminal(folder: Path, url: str, *arguments: str, **environment: str) -> bytes:
    """All that pytest writes to a terminal of its own."""
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "--gym-url", url, f"--gym-data={DATA}", "-k", "verify-degenerate"]
    ours = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "FORCE_COLOR")}
    master, slave = pty.openpty()
    try:
        with subprocess.Popen(
            [*command, *arguments], cwd=folder, env={**ours, "TERM": "xterm", **environment}, stdout=slave, stderr=slave
        ) as process:
            os.close(slave)
            said = b""
            while True:
                try:
                    read = os.read(master, 65_536)
                except OSError:  # on Linux, so does a terminal end that nobody writes to any more
                    break
                if not read:
                    break
                said += read
            process.wait(60)
    finally:
        os.close(master)
    assert process.returncode == 0, said
    return said


def test_it_is_there_and_it_goes(tmp_path: Path, serving: Callable[[ASGIApp], str]) -> None:
    said = on_a_terminal(tmp_path, serving(_Slow()))
    shown = list(LINE.finditer(said))
    assert shown
    assert b"\x1b[2m" in said
    rest = said[shown[-1].end() :]
    assert rest.startswith((b"\x1b[0m\x1b8\x1b[K", b"\x1b8\x1b[K"))


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["-q"], {}), ([], {"CI": "1"}), ([], {"TERM": "dumb"}), (["-n", "1"], {})],
    ids=["quiet", "CI", "dumb", "xdist"],
)
def test_it_is_not_there(
    tmp_path: Path, serving: Callable[[ASGIApp], str], arguments: list[str], environment: dict[str, str]
) -> None:
    assert not LINE.search(on_a_terminal(tmp_path, serving(_Slow()), *arguments, **environment))


def test_without_colour_it_is_not_dimmed(tmp_path: Path, serving: Callable[[ASGIApp], str]) -> None:
    said = on_a_terminal(tmp_path, serving(_Slow()), NO_COLOR="1")
    assert LINE.search(said)
    assert b"\x1b[2m" not in said


def test_what_it_says() -> None:
    assert line("verify-floor", 1, 2_500, 2.0) == "verify-floor: 1 example, 2,500 requests, 1,250/s, 2 s"
