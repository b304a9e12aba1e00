"""The SARIF report against the official schema.

`sarif-2.1.0-rtm.5.json` is the one that SchemaStore serves for SARIF 2.1.0, as the npm package @microsoft/jest-sarif
1.0.0-beta.0 bundles it.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gym_conformance.reports.report import Report
from gym_conformance.reports.sarif_report import sarif_report
from tests.reports.samples import (
    ATTACKS,
    FAILED,
    FIT,
    FRAMEWORK_SAID,
    FULL,
    HUGE,
    NOT_EXAMINED_SAID,
    TARGET,
    UNTESTABLE,
    hostile,
    many,
)

SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0-rtm.5.json").read_text())
for part in ("run", "toolComponent"):
    del SCHEMA["definitions"][part]["properties"]["language"][
        "pattern"
    ]  # "]?" is a regex in JavaScript only; not in use
VALIDATOR = jsonschema_rs.Draft4Validator(SCHEMA, validate_formats=True)


def _run(report: Report) -> dict[str, Any]:
    log = json.loads(sarif_report(report))
    assert [error.message for error in VALIDATOR.iter_errors(log)] == []
    run: dict[str, Any] = log["runs"][0]
    return run


def _location(result: dict[str, Any]) -> dict[str, Any]:
    location: dict[str, Any] = result["locations"][0]
    return location


@pytest.mark.parametrize("report", [FULL, FIT, many(50)], ids=["full", "fit", "many"])
def test_it_is_valid(report: Report) -> None:
    _run(report)


@pytest.mark.parametrize("text", ATTACKS)
def test_it_is_valid_whatever_is_in_it(text: str) -> None:
    _run(hostile(text))


def test_it_stays_small() -> None:
    assert len(sarif_report(hostile(HUGE))) < 60_000


def test_a_finding_points_at_the_row() -> None:
    result = _run(Report(TARGET, (FAILED,)))["results"][0]
    assert _location(result)["physicalLocation"] == {
        "artifactLocation": {"uri": "data/example.jsonl"},
        "region": {"startLine": 3},
    }
    assert result["level"] == "error"


def test_a_finding_without_a_row_points_at_the_app_where_that_is_known() -> None:
    known = _run(Report({**TARGET, "app": "my env/app.py"}, (UNTESTABLE,)))["results"][0]
    assert _location(known)["physicalLocation"]["artifactLocation"] == {"uri": "my%20env/app.py"}
    unknown = _run(Report(TARGET, (UNTESTABLE,)))["results"][0]
    assert _location(unknown) == {"logicalLocations": [{"fullyQualifiedName": "server"}]}


def test_accepted_findings_are_suppressed() -> None:
    results = {result["ruleId"]: result for result in _run(FULL)["results"]}
    assert results["tool-served-declared"]["suppressions"][0]["justification"] == "for the agent"
    assert "suppressions" not in results["verify-scores-rows"]


def test_a_note_is_a_note_and_what_is_no_result_is_a_notification() -> None:
    run = _run(FULL)
    assert [result["level"] for result in run["results"] if result["ruleId"] == "repeat-tool-calls"] == ["note"]
    assert "verify-raw-surrogate" not in {result["ruleId"] for result in run["results"]}
    said = [(one["level"], one["message"]["text"]) for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert said == [
        ("warning", "isolation-concurrent passes, with caution: it tried 4 trajectories only"),
        ("note", FRAMEWORK_SAID),
        ("note", NOT_EXAMINED_SAID),
    ]


def test_a_finding_is_known_again_by_its_check_and_subject() -> None:
    def print_of(**changes: Any) -> str:
        result = _run(Report(TARGET, (replace(FAILED, **changes),)))["results"][0]
        return str(result["partialFingerprints"]["subject/v1"])

    assert print_of(actual="something else") == print_of()
    assert print_of(subject="example.jsonl:4") != print_of()
