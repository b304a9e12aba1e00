"""What a whole run found, gathered from all processes, and how it is summed up on the terminal."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gym_conformance.baseline import Stale
from gym_conformance.checks.check import Check
from gym_conformance.findings import Finding, Verdict
from gym_conformance.options import Options
from gym_conformance.reports.report import NOT_SELECTED, Outcome, Report
from gym_conformance.reports.shown import named
from gym_conformance.reports.text import explain


@dataclass
class Tally:
    """Findings by check, and what the run cost: (requests, seconds inside HTTP) by process."""

    options: Options
    target: dict[str, Any] = field(default_factory=dict)
    found: dict[str, list[Finding]] = field(default_factory=dict)
    deselected: set[str] = field(default_factory=set)
    effort: dict[str, tuple[int, float]] = field(default_factory=dict)
    own_fault: bool = False
    stale: list[Stale] = field(default_factory=list)

    def add(self, report: dict[str, Any]) -> None:
        """Take in what one item found, as it travelled with pytest's report."""
        for data in report["findings"]:
            finding = Finding.from_json(data)
            self.found.setdefault(finding.check, []).append(finding)
        self.target = report["target"]
        process, requests, seconds = report["effort"]
        self.effort[process] = (requests, seconds)
        self.own_fault |= report["own_fault"]

    def report(self, checks: Iterable[Check], baseline: str) -> Report:
        """All that was found; `baseline` is its file."""
        findings = tuple(self.complete(checks))
        return Report(self.target, findings, self.options.strict, baseline, tuple(self.stale))

    def complete(self, checks: Iterable[Check]) -> list[Finding]:
        """All findings in the order of the checks, with one for each check that did not run, saying why."""
        return [finding for check in checks for finding in self.found.get(check.id) or [self._not_run(check)]]

    def _not_run(self, check: Check) -> Finding:
        if check.id in self.deselected:
            verdict, reason = Verdict.NOT_APPLICABLE, NOT_SELECTED
        else:
            verdict, reason = Verdict.UNTESTABLE, "a run that lasts: this one ended before it"
        return Finding(check.id, check.level.value, check.title, verdict, "server", reason=reason)


def write_summary(terminal: Any, tally: Tally, report: Report) -> None:
    """Say what the server is, what was found below MUST, and what to mend next."""
    if not tally.found and not tally.stale:
        return
    terminal.section("gym conformance")
    findings = [finding for found in tally.found.values() for finding in found if not finding.accepted]
    shown = [] if report.strict else [finding for finding in findings if finding.level == "SHOULD"]
    for paragraph in explain([finding for finding in shown if finding.verdict is Verdict.FAIL]):
        terminal.write_line("SHOULD: " + paragraph + "\n", yellow=True)
    for finding in findings:
        if finding.level == "MAY" and finding.verdict is Verdict.FAIL:
            terminal.write_line(f"MAY: {finding.title}: {finding.actual}. {finding.hint}")
    _write_gate(terminal, tally, report)
    _write_target(terminal, tally)
    _write_verdict(terminal, report)


def _write_gate(terminal: Any, tally: Tally, report: Report) -> None:
    for group in report.groups:
        if group.first.accepted:
            subjects = ", ".join(named(group.subjects))
            terminal.write_line(f"accepted: {group.first.check}, {subjects}: {group.first.accepted}")
    for stale in tally.stale:
        terminal.write_line(f"stale: {stale}", red=True)
    if (new := tally.options.baseline_write) and not tally.own_fault:
        terminal.write_line(f"{new} is written: fill in each reason, then give it as --gym-baseline.")


def _write_target(terminal: Any, tally: Tally) -> None:
    target = tally.target
    if "kind" in target:
        terminal.write_line(
            f"{target['url']} is a {target['kind']} ({target['evidence']}), {target['contract']} sessions."
        )
    requests = sum(count for count, _ in tally.effort.values())
    seconds = sum(spent for _, spent in tally.effort.values())
    terminal.write_line(
        f"{len(tally.found)} checks, {requests} requests, {seconds:.1f} s of them waiting for the server."
    )


def _write_verdict(terminal: Any, report: Report) -> None:
    good = report.outcome in (Outcome.FIT, Outcome.PARTLY)
    breaking = {group.first.check: group.first for group in reversed(report.groups) if report.breaks(group)}
    if not breaking:
        because = " The baseline is stale." if report.stale else ""
        terminal.write_line(f"{report.outcome}.{because}", green=good, red=bool(report.stale), bold=True)
        return
    first = list(breaking.values())[-1]
    rest = f" ({len(breaking) - 1} more checks after it)" if len(breaking) > 1 else ""
    what = f"needs {first.reason}" if first.verdict is Verdict.UNTESTABLE else f"{first.hint or first.title}"
    terminal.write_line(f"{report.outcome}. Mend first: {first.check}{rest}: {what}", red=True, bold=True)
