"""Findings as GitHub workflow commands, which a pull request shows next to the line that they are about.

Text is escaped as in @actions/core (packages/core/src/command.ts); otherwise it could contain commands.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gym_conformance.findings import Cause
from gym_conformance.reports.finding_groups import Group
from gym_conformance.reports.repo_paths import relative
from gym_conformance.reports.report import Report
from gym_conformance.reports.shown_text import named, shown
from gym_conformance.reports.terminal_text import framework_line

_COMMANDS: Final = {"MUST": "error", "untestable": "error", "SHOULD": "warning", "note": "notice"}


def annotations(report: Report, root: Path) -> Iterator[str]:
    """One line for each finding that is not accepted, worst first, with paths relative to `root`."""
    for stale in report.stale:
        yield _command("error", "Stale baseline entry", shown(stale), _file(stale.file, root), stale.line)
    app = str(report.target.get("app", ""))
    told: set[Cause] = set()
    for group in (*report.briefly, *report.notes):
        first = group.first
        if not first.accepted and first.cause not in told:
            told |= {cause for cause in report.causes if cause is first.cause}
            command = "error" if report.breaks(group) else _COMMANDS[group.label]
            yield _command(
                command,
                f"{first.check} ({group.label})",
                _say(group, report.causes),
                _file(first.file or app, root),
                first.line,
            )
    for caution, checks in report.cautions.items():
        yield _command("warning", f"{', '.join(checks)} (pass, with caution)", shown(caution), _file(app, root), 0)
    if own := framework_line(report.framework):
        yield _command("notice", "NeMo Gym itself", own, _file(app, root), 0)


def _say(group: Group, causes: Mapping[Cause, Sequence[str]]) -> str:
    first = group.first
    others = [check for check in causes.get(first.cause, ()) if check != first.check] if first.cause else []
    said = (
        f"expected {shown(first.expected)}, got {shown(first.actual)}"
        if first.expected
        else f"needs {shown(first.reason)}"
    )
    facts = [
        group.rule,
        f"{', '.join(named(group.checks if len(group.checks) > 1 else group.subjects))}: {said}",
        f"Likely: {shown(first.hint)}" if first.hint else "",
        f"{first.cause.headline}; also found by {', '.join(others)}" if first.cause and others else "",
    ]
    return "\n".join(filter(None, facts))


def _file(file: str, root: Path) -> str:
    return relative(file, root) if file else ""


def _command(command: str, title: str, message: str, file: str, line: int) -> str:
    given = {"title": title, "file": file, "line": str(line) if line and file else ""}
    properties = ",".join(
        f"{name}={_data(shown(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in given.items()
        if value
    )
    return f"::{command} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
