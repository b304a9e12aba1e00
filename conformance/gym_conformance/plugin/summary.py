"""What a whole run found, gathered from all processes, and how it is summed up on the terminal."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gym_conformance.checks.check import Check
from gym_conformance.findings import Finding, Verdict
from gym_conformance.options import Options
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

    def add(self, report: dict[str, Any]) -> None:
        """Take in what one item found, as it travelled with pytest's report."""
        for data in report["findings"]:
            finding = Finding.from_json(data)
            self.found.setdefault(finding.check, []).append(finding)
        self.target = report["target"]
        process, requests, seconds = report["effort"]
        self.effort[process] = (requests, seconds)
        self.own_fault |= report["own_fault"]

    def complete(self, checks: Iterable[Check]) -> list[Finding]:
        """All findings in the order of the checks, with one for each check that did not run, saying why."""
        return [finding for check in checks for finding in self.found.get(check.id) or [self._not_run(check)]]

    def _not_run(self, check: Check) -> Finding:
        if check.id in self.deselected:
            verdict, reason = Verdict.NOT_APPLICABLE, "it was not selected in this run"
        else:
            verdict, reason = Verdict.UNTESTABLE, "the run ended before it"
        return Finding(check.id, check.level.value, check.title, verdict, "server", reason=reason)


def write_summary(terminal: Any, tally: Tally) -> None:
    """Say what the server is, what was found below MUST, and what to mend next."""
    if not tally.found:
        return
    findings = [finding for found in tally.found.values() for finding in found]
    terminal.section("gym conformance")
    shown = [] if tally.options.strict else [finding for finding in findings if finding.level == "SHOULD"]
    for paragraph in explain([finding for finding in shown if finding.verdict is Verdict.FAIL]):
        terminal.write_line("SHOULD: " + paragraph + "\n", yellow=True)
    for finding in findings:
        if finding.level == "MAY" and finding.verdict is Verdict.FAIL:
            terminal.write_line(f"MAY: {finding.title}: {finding.actual}. {finding.hint}")
    _write_verdict(terminal, tally, findings)


def _write_verdict(terminal: Any, tally: Tally, findings: list[Finding]) -> None:
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
    fatal = {
        finding.check: finding for finding in reversed(findings) if _is_fatal(finding, strict=tally.options.strict)
    }
    if not fatal:
        judged = any(
            finding.verdict is Verdict.PASS for finding in findings if finding.check.partition("-")[0] != "live"
        )
        terminal.write_line("Fit to train on." if judged else "Nothing here to judge.", green=judged, bold=True)
        return
    first = list(fatal.values())[-1]
    rest = f" ({len(fatal) - 1} more checks after it)" if len(fatal) > 1 else ""
    what = f"needs {first.reason}" if first.verdict is Verdict.UNTESTABLE else f"{first.hint or first.title}"
    terminal.write_line(f"Not fit to train on. Mend first: {first.check}{rest}: {what}", red=True, bold=True)


def _is_fatal(finding: Finding, *, strict: bool) -> bool:
    if finding.verdict is Verdict.UNTESTABLE:
        return True
    return finding.verdict is Verdict.FAIL and (finding.level == "MUST" or (strict and finding.level == "SHOULD"))
