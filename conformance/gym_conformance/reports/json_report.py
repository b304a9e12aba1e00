"""The JSON report, in the format of `report.schema.json` in this folder; a changed format gets a new schema name."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from gym_conformance import __version__
from gym_conformance.findings import Verdict
from gym_conformance.reports.fleet_table import ordered
from gym_conformance.reports.report import Report

SCHEMA: Final = "gym-conformance/2"

#: The format for several targets: `servers` has each one's name, outcome, and report in the format above.
FLEET_SCHEMA: Final = "gym-conformance-fleet/2"


def as_report(report: Report) -> dict[str, Any]:
    """The report as a JSON object, without the parts that this run does not have."""
    counts = Counter(finding.verdict for finding in report.findings)
    accepted = sum(bool(finding.accepted) for finding in report.findings)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": {"name": "gym-conformance", "version": __version__},
        "target": dict(report.target),
        "summary": {verdict.value: counts[verdict] for verdict in Verdict} | {"accepted": accepted},
        "findings": [replace(finding, drift=()).as_json() for finding in report.findings],
    }
    found["clients"] = [client.as_json() for client in report.clients]
    if report.baseline:
        found["baseline"] = {"file": report.baseline, "stale": [asdict(stale) for stale in report.stale]}
    if report.since is not None:
        found["since"] = report.since.as_json()
    if report.drift is not None:
        found["drift"] = [row.as_json() for row in report.drift]
    if report.latency is not None:
        found["latency"] = [latency.as_json() for latency in report.latency]
    return found


def json_report(report: Report) -> str:
    """The report as JSON text."""
    return json.dumps(as_report(report), indent=2) + "\n"


def json_reports(reports: Mapping[str, Report]) -> str:
    """Several targets as JSON text, each with its own report."""
    servers = [
        {"name": line.name, "outcome": line.report.conclusion.value, "report": as_report(line.report)}
        for line in ordered(reports)
    ]
    return json.dumps({"schema": FLEET_SCHEMA, "servers": servers}, indent=2) + "\n"
