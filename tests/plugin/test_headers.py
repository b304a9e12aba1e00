"""The values of `--gym-header` are secrets: they reach the server, and nothing else."""

from collections.abc import Callable

import pytest

from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import Message, Receive, Send, echo, http_only

pytest_plugins = ["pytester"]

SECRETS = ("hunter2", "tOkEn/with+odd", "k3y-of-mine", "l4st-one")
HEADERS = [
    *("--gym-header", "Authorization: Bearer hunter2hunter2"),
    *("--gym-header", 'X-Odd: "tOkEn/with+odd\\=signs"'),
    *("--gym-header", "X-Pairs: key=k3y-of-mine; other=l4st-one"),
]

#: A conftest that breaks one of our checks: such a traceback shows locals, and our locals hold the headers.
_BREAK = """
from dataclasses import replace

def pytest_collection_modifyitems(items):
    for item in items:
        if getattr(item, "check", None) and item.check.id == "seed-replies-object":
            async def broken(trial, subject):
                headers = dict(trial.gym.endpoint.headers)
                raise RuntimeError(f"no luck with {headers}")
            item.check = replace(item.check, body=broken)
"""


def _said(pytester: pytest.Pytester, run: pytest.RunResult) -> str:
    """All that a run printed and wrote."""
    written = [path.read_text(errors="replace") for path in pytester.path.rglob("*") if path.is_file()]
    return "\n".join([run.stdout.str(), run.stderr.str(), *(text for text in written if text != _BREAK)])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_they_are_never_shown(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], workers: list[str]) -> None:
    """The server shows them in every reply, one check breaks, and pytest is asked to say all that it can."""
    pytester.makeconftest(_BREAK)
    verbose = [
        "-vv",
        "-l",
        "--full-trace",
        "--setup-show",
        "--trace-config",
        "-rA",
        "--color=yes",
        "-o",
        "log_cli=true",
        "--gym-profile=smoke",
    ]
    files = ["--gym-report", "report.json", "--junitxml", "junit.xml", "--log-file", "log.txt"]
    run = pytester.runpytest_subprocess("--gym-url", serving(echo), *HEADERS, *verbose, *files, *workers, timeout=120)
    run.stdout.fnmatch_lines(["*RuntimeError*"])
    assert run.ret == pytest.ExitCode.INTERNAL_ERROR
    said = _said(pytester, run)
    assert "[redacted]" in said
    assert "GYM_HEADER_AUTHORIZATION" in said
    assert [secret for secret in SECRETS if secret.lower() in said.lower()] == []


def test_they_reach_the_server(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    seen: list[dict[str, str]] = []

    @http_only
    async def listens(scope: Message, receive: Receive, send: Send) -> None:
        seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await echo(scope, receive, send)

    pytester.runpytest_inprocess(
        "--gym-url", serving(listens), *HEADERS, "--gym-header", "user-agent: mine", "-k", "live"
    )
    assert seen
    assert {headers["authorization"] for headers in seen} == {"Bearer hunter2hunter2"}
    assert {headers["x-odd"] for headers in seen} == {'"tOkEn/with+odd\\=signs"'}
    assert {headers["user-agent"] for headers in seen} == {"mine"}


def test_a_short_or_public_value_garbles_nothing(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    given = ["--gym-header", "X-Debug: 1", "--gym-header", "Accept: application/json"]
    run = pytester.runpytest_inprocess("--gym-url", serving(echo), *given, "-k", "seed-accepts-rows")
    run.stdout.fnmatch_lines(["*curl * http://127.0.0.1:*/seed_session *'Content-Type: application/json'*"])
    run.stdout.no_fnmatch_line("*redacted*")
