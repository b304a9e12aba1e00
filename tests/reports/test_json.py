"""The JSON report keeps to its own schema, which is its documentation."""

import json
from importlib.resources import files

import jsonschema_rs
import pytest

from gym_conformance.findings import Finding
from gym_conformance.reports.json_report import json_report
from gym_conformance.reports.report import Report
from tests.reports.samples import ATTACKS, FAILED, FIT, FULL, PASSED, hostile

SCHEMA = json.loads(files("gym_conformance.reports").joinpath("report.schema.json").read_text())


def _valid(report: Report) -> dict[str, object]:
    data: dict[str, object] = json.loads(json_report(report))
    jsonschema_rs.validate(SCHEMA, data)
    return data


def test_a_report_with_all_parts_is_valid() -> None:
    assert {"baseline", "drift", "latency"} <= set(_valid(FULL))


def test_parts_that_are_not_there_are_left_out() -> None:
    assert not {"baseline", "drift", "latency"} & set(_valid(FIT))


@pytest.mark.parametrize("text", ATTACKS)
def test_whatever_is_in_it_is_plain_ascii(text: str) -> None:
    assert json_report(hostile(text)).isascii()


@pytest.mark.parametrize("finding", [FAILED, PASSED])
def test_a_finding_survives_the_way_from_a_worker(finding: Finding) -> None:
    assert Finding.from_json(json.loads(json.dumps(finding.as_json()))) == finding
