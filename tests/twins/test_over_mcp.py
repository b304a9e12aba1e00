"""Each twin over MCP fails the checks that it says, and no others; servers without MCP are not asked for it."""

import sys

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Verdict
from gym_mocks.reference import reference_app
from tests.twins.judging import ended, failures, found_by, judge, running, telling
from tests.twins.over_mcp import TWINS, OnlyOverMCP, OverMCP, Unreliable, serving
from tests.twins.twin import Twin, dataset

OVER_MCP = {check.id for check in CHECKS if check.section == "mcp"}


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name.replace(" ", "-"))
def test_a_twin_fails_exactly_what_it_says(twin: Twin) -> None:
    findings = judge(twin.make(), twin.data, twin.timeout, OVER_MCP)
    failed, untestable = telling(findings), ended(findings, Verdict.UNTESTABLE)
    told = [f"{finding.check} [{finding.subject}] {finding.actual} {finding.reason}" for finding in failures(findings)]
    assert (sorted(failed), sorted(untestable)) == (sorted(twin.fails), sorted(twin.untestable)), told
    for finding in failures(findings):
        assert finding.expected, finding
        assert finding.actual, finding
        assert finding.hint, finding
        assert finding.reproduce or finding.check in ("mcp-tool-names", "mcp-routes-listed"), finding


def test_no_check_lacks_a_twin() -> None:
    assert frozenset().union(*(twin.fails for twin in TWINS)) == OVER_MCP


@pytest.mark.parametrize("server", [OverMCP, OnlyOverMCP])
def test_no_other_check_minds_tools_over_mcp(server: type[OverMCP]) -> None:
    findings = judge(server(), dataset(), 10.0)
    assert [f for found in findings.values() for f in found if f.told] == []


def test_a_server_without_it_costs_one_seed_and_no_import() -> None:
    imported = [name for name in sys.modules if name.partition(".")[0] == "mcp"]
    for name in imported:
        del sys.modules[name]
    with running(reference_app()) as run:
        run.judge(next(check for check in CHECKS if check.id == "isolation-earlier"))  # takes the first look
        before = run.effort().requests
        findings = {check.id: run.judge(check) for check in CHECKS if check.id in OVER_MCP}
        requests = run.effort().requests - before
    assert requests == 1, "one seed"
    assert ended(findings, Verdict.NOT_APPLICABLE) == OVER_MCP
    assert "no mcp block" in findings["mcp-block"][0].reason
    assert "mcp.client" not in sys.modules


def test_without_the_client_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    findings = judge(OverMCP(), dataset(), 5.0, OVER_MCP)
    assert ended(findings, Verdict.PASS) == {"mcp-block"}
    assert ended(findings, Verdict.UNTESTABLE) == OVER_MCP - {"mcp-block"}
    assert "pip install 'gym-conformance[mcp]'" in findings["mcp-lists-tools"][0].reason


def test_no_token_is_shown() -> None:
    (finding,) = judge(
        next(twin for twin in TWINS if "unknown tool" in twin.name).make(), dataset(), 5.0, {"mcp-unknown-tool"}
    )["mcp-unknown-tool"]
    assert "X-NeMo-Gym-Session-Token" in "\n".join(finding.reproduce)
    assert "eyJ" not in "\n".join(finding.reproduce).partition("/mcp")[2]


@pytest.mark.parametrize(
    ("name", "check", "kind"),
    [
        ("a list of another version", "mcp-argument-refused", "argument-refused"),
        ("rows of another version", "mcp-argument-refused", "argument-refused"),
        ("a declared tool that MCP does not know", "mcp-tool-served", "tool-missing"),
    ],
)
def test_drift_over_mcp_stands_in_the_drift_report(name: str, check: str, kind: str) -> None:
    """With its witness, and what the live server said to it."""
    twin = next(twin for twin in TWINS if twin.name == name)
    findings = judge(twin.make(), twin.data, twin.timeout, {check})[check]
    (row,) = [row for finding in findings for row in finding.drift]
    assert (row["kind"], row["weight"], row["live"]) == (kind, "breaking", "confirmed")
    assert "witness" in row


def test_a_tool_that_needs_no_session_is_named() -> None:
    twin = next(twin for twin in TWINS if "needs no session" in twin.name)
    (finding,) = judge(twin.make(), twin.data, twin.timeout, {"mcp-token-missing"})["mcp-token-missing"]
    assert "double accepts a call without the token" in finding.reason


def test_an_error_over_mcp_is_told_in_its_words() -> None:
    """And not as a status, of which none came."""
    [finding] = found_by("mcp-same-as-route", serving(Unreliable)())
    assert finding.expected
    assert finding.expected.startswith("status of /")
    assert finding.actual.endswith(" is closed")
    assert finding.actual.startswith("isError: ")
