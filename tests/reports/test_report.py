"""The report as a value: what it comes to, and what is to be fixed first."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.tool_drift import Certainty, Drift, DriftKind, Weight, Witness
from gym_conformance.findings import NOT_SELECTED, Cause, Finding
from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.reports.annotations import annotations
from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.html_report import html_report
from gym_conformance.reports.markdown_report import markdown_report
from gym_conformance.reports.report import Conclusion, Report, drift_of
from gym_conformance.reports.sarif_report import sarif_report
from gym_conformance.reports.shown_text import SCRIPT, named, script
from tests.reports.samples import (
    ACCEPTED,
    DRIFT,
    FAILED,
    FRAMEWORK,
    FULL,
    NOTED,
    PASSED,
    SHARED,
    SKIPPED,
    TARGET,
    UNTESTABLE,
    WARNED,
)

LIVE = replace(PASSED, check="live-root")
LEFT_OUT = replace(SKIPPED, reason=NOT_SELECTED)


@pytest.mark.parametrize(
    ("findings", "outcome"),
    [
        ([PASSED, SKIPPED], Conclusion.FIT),
        ([PASSED, WARNED], Conclusion.FIT),
        ([PASSED, ACCEPTED], Conclusion.FIT),
        ([PASSED, replace(FAILED, accepted="known")], Conclusion.FIT),
        ([PASSED, LEFT_OUT], Conclusion.PARTLY),
        ([WARNED, LEFT_OUT], Conclusion.PARTLY),
        ([NOTED, LEFT_OUT], Conclusion.PARTLY),
        ([SKIPPED, LEFT_OUT], Conclusion.NOTHING),
        ([PASSED, FAILED], Conclusion.UNFIT),
        ([PASSED, UNTESTABLE], Conclusion.UNTESTABLE),
        ([LIVE, SKIPPED], Conclusion.NOTHING),
        ([LIVE, replace(PASSED, check="env-config"), SKIPPED], Conclusion.NOTHING),
    ],
)
def test_what_it_comes_to(findings: list[Finding], outcome: Conclusion) -> None:
    assert Report(TARGET, tuple(findings)).conclusion is outcome


def test_a_should_fails_a_strict_run() -> None:
    assert Report(TARGET, (PASSED, WARNED), strict=True).conclusion is Conclusion.UNFIT


def test_a_stale_entry_is_not_fit() -> None:
    fit = Report(TARGET, (PASSED,))
    assert replace(fit, stale=FULL.stale).conclusion is Conclusion.STALE


@pytest.mark.parametrize(
    ("certainty", "live", "breaks"),
    [
        (Certainty.SHOWN, "", True),
        (Certainty.SHOWN, "not tried", False),
        (Certainty.SHOWN, "confirmed", True),
        (Certainty.SHOWN, "not confirmed", False),
        (Certainty.UNKNOWN, "", False),
        (Certainty.UNKNOWN, "confirmed", True),
    ],
)
def test_drift_breaks_where_the_live_server_bears_it_out(certainty: Certainty, live: str, breaks: bool) -> None:
    drift = Drift(DriftKind.ARGUMENT_REFUSED, "get_weather", "it is refused", "/unit", certainty=certainty)
    assert DriftRow.of(drift, Live(LiveAnswer(live), "")).breaks is breaks


def test_a_row_of_the_table_is_made_of_a_drift() -> None:
    drift = Drift(
        DriftKind.ARGUMENT_REFUSED,
        "get_weather",
        "it is refused",
        "/unit",
        sources=(Source(Path("data/example.jsonl"), 3),),
        witness=Witness({"unit": None}),
    )
    row = DriftRow.of(drift, Live(LiveAnswer.CONFIRMED, "status 422"))
    assert (row.kind, row.sources, row.witness) == ("argument-refused", ("data/example.jsonl:3",), {"unit": None})


def test_rows_travel_with_findings_the_gravest_first() -> None:
    note = DriftRow("argument-widened", Weight.NOTE, "t", "more")
    found = replace(FAILED, check="drift-argument-refused", drift=(note.as_json(), DRIFT.as_json()))
    travelled = Finding.from_json(json.loads(json.dumps(found.as_json())))
    assert drift_of([PASSED, travelled]) == (DRIFT, note)
    assert drift_of([replace(PASSED, check="drift-result")]) == ()
    assert drift_of([PASSED, replace(SKIPPED, check="drift-result")]) is None


def test_the_gravest_come_first() -> None:
    assert [group.label for group in FULL.groups] == ["MUST", "untestable", "SHOULD", "accepted"]


def test_a_note_and_the_frameworks_own_are_nothing_to_mend() -> None:
    report = Report(TARGET, (PASSED, NOTED, FRAMEWORK), strict=True)
    assert (report.conclusion, report.groups) == (Conclusion.FIT, ())
    assert [group.label for group in report.notes] == ["note"]
    assert report.framework == {"verify-raw-surrogate": 1}


def test_what_a_pass_rests_on_and_what_was_not_examined_is_known() -> None:
    assert FULL.cautions == {"it tried 4 trajectories only": ("isolation-concurrent",)}
    assert FULL.not_examined == {"the server's process is not known (--gym-pid)": ("resources-closed",)}


def test_findings_of_one_cause_are_told_together() -> None:
    """The gravest of them leads, and what has no cause does not stand between them."""
    mild = replace(SHARED[2], level="SHOULD")
    report = Report(TARGET, (PASSED, WARNED, SHARED[0], FAILED, SHARED[1], mild))
    assert [group.first.check for group in report.groups] == [
        *("isolation-interleaved", "isolation-concurrent", "cookie-replacing-client"),
        *("verify-scores-rows", "tool-name-legal"),
    ]
    assert report.causes == {Cause.SHARED_STATE: tuple(one.check for one in SHARED)}
    assert Report(TARGET, (SHARED[0],)).causes == {}
    assert len([line for line in annotations(report, Path.cwd()) if "isolation-" in line.split("::")[1]]) == 1
    for form in (markdown_report, html_report, sarif_report):
        assert "Sessions share state" in form(report)


def test_alike_findings_of_one_check_share_a_group() -> None:
    other = replace(FAILED, subject="example.jsonl:4")
    elsewhere = replace(FAILED, check="verify-degenerate")
    groups = Report(TARGET, (FAILED, elsewhere, other)).groups
    assert [group.subjects for group in groups] == [["example.jsonl:3", "example.jsonl:4"], ["example.jsonl:3"]]


def test_a_reproduction_is_shown_whole_or_not_at_all() -> None:
    assert script(FAILED.reproduce) == "\n".join(FAILED.reproduce)
    long = script(("x" * SCRIPT, "y"))
    assert long.startswith("# 2 commands, too long to show")


def test_many_names_are_counted() -> None:
    assert named([str(number) for number in range(20)])[-1] == "and 8 more"


def test_quantiles_are_samples() -> None:
    latency = Latency("GET /", (1.0, 2.0, 3.0, 4.0))
    assert [latency.quantile(part) for part in (0, 0.5, 0.95, 1)] == [1.0, 3.0, 4.0, 4.0]
