"""What Hypothesis's own plugin tells of a search, on the terminal and in JUnit's file: it names places in replies."""

import re
from base64 import b64decode
from collections.abc import Callable
from random import random
from typing import Any

import pytest

from gym_mocks.reference import DATA, ReferenceServer
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json

pytest_plugins = ["pytester"]


class NamesPlaces(ReferenceServer):
    """What differs each time stands under a name that tells a secret, and that a terminal would obey."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return {"a": await super().call(session_id, tool, arguments), "s3cr3t-name \x1b]0;x\x07\n::error::x": random()}


def test_statistics_show_neither_secrets_nor_what_a_terminal_obeys(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]
) -> None:
    """In a profile of more examples than there is time for: where Hypothesis comes to their end, its own account is shown."""
    url, header = serving(NamesPlaces()), "--gym-header=X-Key: s3cr3t-name"
    shown = ("--hypothesis-show-statistics", "--gym-report=r.xml", "--gym-profile=quick")
    run = pytester.runpytest_subprocess(
        "--gym-url", url, header, f"--gym-data={DATA}", "gym/isolation::isolation-interleaved", *shown, timeout=60
    )
    run.stdout.fnmatch_lines(["*not compared, since it differs between runs alone: *redacted*"])
    accounts = re.findall('name="hypothesis-statistics[^"]*" value="([^"]*)"', (pytester.path / "r.xml").read_text())
    for text in (run.stdout.str(), *(b64decode(account).decode() for account in accounts)):
        assert "s3cr3t" not in text
        assert "\x1b]" not in text
        assert "\n::error::x" not in text
    assert accounts
