"""What is new, mended and changed since an earlier report, and that every form of report says it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gym_conformance.findings import Finding, Verdict
from gym_conformance.reports.changes import compare
from gym_conformance.reports.earlier_report import BadReport, EarlierReport, read_earlier
from gym_conformance.reports.html_report import html_report, html_reports
from gym_conformance.reports.json_report import FLEET_SCHEMA, as_report, json_report, json_reports
from gym_conformance.reports.markdown_report import markdown_report, markdown_reports
from gym_conformance.reports.report import Report
from gym_conformance.reports.sarif_report import sarif_report
from tests.reports.samples import ACCEPTED, FAILED, FIT, FRAMEWORK, FULL, NOTED, SKIPPED, TARGET, UNTESTABLE, WARNED

_MENDED = replace(FAILED, verdict=Verdict.PASS)
_OTHER = replace(FAILED, actual="status 422")
_MANY = replace(FAILED, subject="example.jsonl:4")


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        ([], [FAILED], [("new", "example.jsonl:3")]),
        ([FAILED], [_MENDED], [("mended", "example.jsonl:3")]),
        ([FAILED], [_OTHER], [("changed", "example.jsonl:3")]),
        ([FAILED], [FAILED], []),
        ([FAILED], [replace(FAILED, actual=FAILED.actual.replace("500", "503"))], []),  # a number is no change
        ([FAILED, _MANY], [_MANY], [("mended", "example.jsonl:3")]),
        ([FAILED], [replace(UNTESTABLE, check=FAILED.check)], [("new", "server")]),  # it did not come to look
        ([FAILED], [replace(SKIPPED, check=FAILED.check)], []),
        ([], [ACCEPTED], []),
        ([], [NOTED, FRAMEWORK], []),
        ([UNTESTABLE], [replace(FAILED, check=UNTESTABLE.check, subject="server")], [("changed", "server")]),
    ],
)
def test_what_changed(before: list[Finding], now: list[Finding], changes: list[tuple[str, str]]) -> None:
    found = compare("main.json", before, now)
    assert [(change.word, change.finding.subject) for change in found.all] == changes


def test_alike_findings_make_one_line() -> None:
    found = compare("main.json", [], [FAILED, _MANY])
    assert list(found.lines) == [
        ("new", "verify-scores-rows", f"example.jsonl:3, example.jsonl:4: {FAILED.actual}"),
    ]
    assert str(found) == "2 new"


BOTH = replace(FULL, since=compare("main.json", [_OTHER, replace(FAILED, check="seed-accepts-rows")], FULL.findings))


def test_every_form_says_it() -> None:
    assert "2 new, 1 mended, 1 changed" in str(BOTH.since)
    for text in (html_report(BOTH), markdown_report(BOTH), html_reports({"a": BOTH, "b": FIT}, "all-servers")):
        assert "2 new, 1 mended, 1 changed" in text
        assert "seed-accepts-rows" in text
    assert r"**calendar** since `main.json`: 2 new" in markdown_reports({"calendar": BOTH, "fine": FIT})
    assert as_report(BOTH)["since"] == {
        "file": "main.json",
        "new": [{"check": each.check, "subject": each.subject} for each in (WARNED, UNTESTABLE)],
        "mended": [{"check": "seed-accepts-rows", "subject": "example.jsonl:3"}],
        "changed": [{"check": FAILED.check, "subject": FAILED.subject, "was": "status 422"}],
    }
    [run] = json.loads(sarif_report(BOTH))["runs"]
    states = {result["ruleId"]: result["baselineState"] for result in run["results"]}
    assert states[WARNED.check] == "new"
    assert states[FAILED.check] == "updated"
    assert states[NOTED.check] == "unchanged"
    said = [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]]
    assert "mended: seed-accepts-rows: example.jsonl:3" in said


def test_a_report_is_read_again(tmp_path: Path) -> None:
    one, several = tmp_path / "one.json", tmp_path / "all.json"
    one.write_text(json_report(FULL))
    several.write_text(json_reports({"calendar": FULL, "fine": FIT}))
    assert read_earlier(None, several=True).of("calendar") is None
    assert read_earlier(one, several=False).of("whatever") == read_earlier(several, several=True).of("calendar")
    assert read_earlier(several, several=True).of("added") == ()
    earlier = read_earlier(several, several=False).of("fine")
    assert earlier is not None
    assert compare("", earlier, FIT.findings).all == ()
    assert EarlierReport().of("fine") is None


def test_a_report_may_have_the_values_of_a_thousand_servers(tmp_path: Path) -> None:
    """A real one has some ten million, in 200 MB; a file of another kind may have five."""
    path = tmp_path / "main.json"
    path.write_text(json.dumps({"schema": FLEET_SCHEMA, "servers": [], "filling": [None] * 6_000_000}))
    assert read_earlier(path, several=True).file == str(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ("[]", "its schema is not gym-conformance/2 or gym-conformance-fleet/2"),
        ('{"schema": "gym-conformance/1"}', "its schema is not gym-conformance/2"),
        ('{"schema": "gym-conformance-fleet/2"}', "it is not a complete report (KeyError('servers'))"),
        (
            '{"schema": "gym-conformance-fleet/2", "servers": [{"name": "a", "report": {"findings": [{}]}}]}',
            "not a complete",
        ),
        (json_report(Report(TARGET, ())), "that is of one server, and several are judged; judge it alone"),
    ],
)
def test_what_is_no_report_is_one_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "before.json"
    path.write_text(text)
    with pytest.raises(BadReport) as bad:
        read_earlier(path, several=True)
    assert why in str(bad.value)
