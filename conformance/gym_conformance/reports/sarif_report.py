"""The SARIF 2.1.0 report for code scanning, which shows a finding at its dataset row, or at the env's app.py."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gym_conformance import HOME, __version__
from gym_conformance.findings import Finding, Verdict
from gym_conformance.reports.changes import CHANGED, MENDED, NEW
from gym_conformance.reports.repo_paths import relative
from gym_conformance.reports.report import Report
from gym_conformance.reports.shown_text import script, shown
from gym_conformance.reports.terminal_text import framework_line, not_examined_lines

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_STATES: Final = {NEW: "new", CHANGED: "updated"}
_LEVELS: Final = {"MUST": "error", "SHOULD": "warning", "NOTE": "note"}


def sarif_report(report: Report) -> str:
    """The report as SARIF text, without passes."""
    return sarif_reports({"": report})


def sarif_reports(reports: Mapping[str, Report]) -> str:
    """Several targets, each a run with its own category."""
    runs = [_run(name, report) for name, report in reports.items()]
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def _run(name: str, report: Report) -> dict[str, Any]:
    app = str(report.target.get("app", ""))
    told = [finding for finding in report.findings if finding.told and not finding.framework]
    findings = [_finding(finding, app) | _state(finding, report) for finding in told]
    driver = {
        "name": "gym-conformance",
        "semanticVersion": __version__,
        "informationUri": HOME,
        "rules": [_rule(check.first) for check in report.checks],
    }
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"gym-conformance/{name}/" if name else "gym-conformance/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notifications(report))}],
        "results": findings,
    }


def _notifications(report: Report) -> Iterator[dict[str, Any]]:
    """What is no result: passes that mean less than they seem to, faults of the framework, what is missing."""
    for caution, checks in report.cautions.items():
        for check in checks:
            yield _notification("warning", f"{check} passes, with caution: {caution}", check)
    if own := framework_line(report.framework):
        yield _notification("note", own)
    for line in not_examined_lines(report.not_examined):
        yield _notification("note", line)
    for word, check, what in report.since.lines if report.since else ():
        if word == MENDED:  # not a result, which code scanning would show
            yield _notification("note", f"mended: {check}{f': {what}' if what else ''}", check)


def _notification(level: str, text: str, check: str = "") -> dict[str, Any]:
    about = {"associatedRule": {"id": check}} if check else {}
    return {"level": level, "message": {"text": shown(text)}, **about}


def _rule(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.check,
        "shortDescription": {"text": shown(finding.title)},
        "helpUri": finding.docs,
        "defaultConfiguration": {"level": _LEVELS[finding.level]},
    }


def _finding(finding: Finding, app: str) -> dict[str, Any]:
    untestable = finding.verdict is Verdict.UNTESTABLE
    facts = {
        "": f"{finding.title}.",
        "subject: ": finding.subject,
        "expected: ": finding.expected,
        "actual: ": finding.actual,
        "untestable: needs " if untestable else "reason: ": finding.reason,
        "why it matters: ": finding.why,
        "likely: ": finding.hint,
        "cause, which other findings may share: ": finding.cause.headline if finding.cause else "",
        "reproduce (bash):\n": script(finding.reproduce),
    }
    lines = [name + (value if name.endswith("\n") else shown(value)) for name, value in facts.items() if value]
    result: dict[str, Any] = {
        "ruleId": finding.check,
        "level": "error" if untestable else _LEVELS[finding.level],
        "message": {"text": "\n".join(lines)},
        "partialFingerprints": {"subject/v1": _fingerprint(finding.check, finding.subject)},
    }
    if finding.accepted:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": shown(finding.accepted)}]
    return result | _place(finding.file, finding.line, finding.subject, app)


def _state(finding: Finding, report: Report) -> dict[str, str]:
    """The finding's baseline state, in comparison with an earlier report."""
    if report.since is None:
        return {}
    return {"baselineState": _STATES.get(report.since.word_of(finding), "unchanged")}


def _place(file: str, line: int, subject: str, app: str) -> dict[str, Any]:
    """The location to show: a line of the dataset, else the env's app.py if it is known, else only a name."""
    named: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": shown(subject)}]}
    if not file and not app:
        return {"locations": [named]}
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file or app)}}
    if line:
        physical["region"] = {"startLine": line}
    return {"locations": [{"physicalLocation": physical, **named}]}


def _uri(file: str) -> str:
    """Relative to the working directory if it is inside, as code scanning requires."""
    path = relative(file, Path.cwd())
    return Path(path).as_uri() if path.startswith("/") else quote(path)


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
