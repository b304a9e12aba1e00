"""Whatever a server does: a finding of the check it happened in, within its deadline, safe to show, never a traceback."""

import json
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gym_conformance.findings import Verdict, worst
from gym_conformance.reports.json_report import as_report
from gym_conformance.reports.report import Report
from gym_conformance.reports.terminal_text import explain
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import Host, serve
from tests.twins import cookies, whatever
from tests.twins.judging import ended, failures, judge, telling
from tests.twins.twin import dataset

#: For servers that score whole groups.
GROUPS = {"verify-in-groups", "verify-group-again"}

#: Control and format characters, which a terminal or a reader may obey.
OBEYED = {"Cc", "Cf", "Cs", "Co"}


@contextmanager
def dying() -> Iterator[str]:
    """A server in a process of its own; yields its URL."""
    command = [sys.executable, "-m", "tests.twins.dies"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
            assert process.wait(30) == 137
        finally:
            process.kill()


def test_a_server_that_dies_is_one_check_s_finding_and_the_rest_is_untestable() -> None:
    with dying() as url:
        findings = judge(url, dataset())
    assert telling(findings) == {"verify-degenerate"}
    failed = [finding for finding in findings["verify-degenerate"] if finding.verdict is Verdict.FAIL]
    assert "no connection could be made" in failed[-1].actual
    assert "POST /verify" in failed[-1].hint
    assert any("/verify" in command for command in failed[-1].reproduce)
    assert len(failed) <= 2, (
        "it is not asked again and again"
    )  # once for the broken connection, unless that was an old one
    checks = list(findings)
    afterwards = checks[checks.index("verify-degenerate") + 1 :]
    asked = [
        check
        for check in afterwards
        if not check.startswith(("typed-", "web-", "step-", "run-"))
        and check not in {"resources-closed", "isolation-sandbox", *GROUPS}
    ]
    assert {worst(findings[check]) for check in asked} == {Verdict.UNTESTABLE}
    reasons = {finding.reason for check in afterwards for finding in findings[check]}
    assert any("it stopped answering in verify-degenerate" in reason for reason in reasons)


def test_a_server_that_was_never_there_is_no_traceback() -> None:
    host = Host()
    url = host.serve(ReferenceServer())
    host.close()
    findings = judge(url, dataset())
    assert not ended(findings, Verdict.PASS)
    assert telling(findings) == {"live-root"}


@pytest.mark.parametrize(
    ("name", "check"), [("a body that drips", "metrics-empty"), ("hangs on a long text", "verify-degenerate")]
)
def test_a_hang_costs_one_deadline(name: str, check: str) -> None:
    twin = next(twin for twin in whatever.TWINS if twin.name == name)
    with serve(twin.make()) as url:
        started = time.perf_counter()
        findings = judge(url, twin.data, timeout=1.0, checks=[check])
        hung = time.perf_counter() - started
    assert telling(findings) == {check}
    assert 1.0 < hung < 30.0  # seconds; without a deadline for the whole body it would never end


@pytest.mark.parametrize(
    "name", ["an error page for a reply", "a redirect to a log-in", "a component that is an object"]
)
def test_what_a_server_says_is_escaped(name: str) -> None:
    twin = next(twin for twin in whatever.TWINS if twin.name == name)
    findings = judge(twin.make(), twin.data)
    found = list(failures(findings))
    told = "\n".join(explain(found))
    assert [character for character in told if unicodedata.category(character) in OBEYED and character != "\n"] == []
    report = json.dumps(as_report(Report({"url": "http://localhost"}, tuple(found))))
    assert report.isascii()
    assert report.isprintable()


class DeceivingCookie(ReferenceServer):
    """A cookie whose name would clear the screen, if it were shown as it came."""

    def __init__(self) -> None:
        super().__init__(cookie=cookies.ChecksNoSignature("a\x9b2J\u00ad"))


def test_a_cookie_s_name_is_escaped_in_the_reproduction() -> None:
    findings = judge(DeceivingCookie())
    found = list(failures(findings))
    assert "cookie-tampered" in {finding.check for finding in found}
    told = "\n".join(explain(found))
    assert [character for character in told if unicodedata.category(character) in OBEYED and character != "\n"] == []
