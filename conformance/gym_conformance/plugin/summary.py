"""The findings of a whole run, from all processes, and their summary on the terminal."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gym_conformance.baseline import Stale
from gym_conformance.contract.openapi import phrase
from gym_conformance.findings import NOT_SELECTED, Finding, LoadLevel, Verdict
from gym_conformance.grouping import first_of_each, grouped
from gym_conformance.options import Options
from gym_conformance.printable import counted, printable
from gym_conformance.reports.changes import MENDED, NEW, Changes, compare
from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.finding_groups import alike
from gym_conformance.reports.known_clients import Compatibility, Works, compatibilities
from gym_conformance.reports.load_curve import text_lines
from gym_conformance.reports.report import Conclusion, Report, drift_of
from gym_conformance.reports.shown_text import named
from gym_conformance.reports.terminal_text import (
    cause_lines,
    caution_lines,
    explain,
    framework_line,
    not_examined_lines,
    untestable_lines,
)
from gym_conformance.session.latencies import Latencies
from gym_conformance.trials.check import Check


@dataclass
class Tally:
    """Findings by check, and the cost of the run: (requests, seconds inside HTTP) by process.

    `checks` are all that exist, run or not, in order; `unwritten` says why a report could not be written, and `locked`
    what was written to the lock; `died` are the checks during which an xdist worker died. `earlier` is what the report
    `before` says of this target.
    """

    options: Options
    checks: tuple[Check, ...]
    target: dict[str, Any] = field(default_factory=dict)
    found: dict[str, list[Finding]] = field(default_factory=dict)
    deselected: set[str] = field(default_factory=set)
    effort: dict[str, tuple[int, float]] = field(default_factory=dict)
    latencies: Latencies = field(default_factory=Latencies)
    own_fault: bool = False
    died: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    locked: str = ""
    stale: list[Stale] = field(default_factory=list)
    before: str = ""
    earlier: tuple[Finding, ...] | None = None

    def add(self, report: dict[str, Any]) -> None:
        """Add the findings of one item, as pytest's report carried them."""
        for data in report["findings"]:
            finding = Finding.from_json(data)
            self.found.setdefault(finding.check, []).append(finding)
        self.target = report["target"]
        process, requests, seconds = report["effort"]
        self.effort[process] = (requests, seconds)
        self.latencies.merge(report["latency"])
        self.own_fault |= report["own_fault"]

    def report(self, baseline: str) -> Report:
        """The complete report; `baseline` is the file of the baseline."""
        found = tuple(self.complete)
        return Report(
            self.target,
            found,
            self.options.strict,
            baseline,
            tuple(self.stale),
            drift=drift_of(found),
            latency=tuple(Latency.of(name, samples) for name, samples in sorted(self.latencies.of.items())) or None,
            since=None if self.earlier is None else compare(self.before, self.earlier, found),
        )

    def so_far(self) -> Report:
        """The report so far, without checks that have not run: only at the end is it known which were deselected."""
        return replace(self, deselected={check.id for check in self.checks} - self.found.keys()).report("")

    @property
    def findings(self) -> list[Finding]:
        """All findings in the order of the checks, whichever process finished first."""
        return [finding for check in self.checks for finding in self.found.get(check.id, ())]

    @property
    def breaking(self) -> list[Finding]:
        """The findings that fail the run."""
        return [finding for finding in self.findings if finding.breaks(strict=self.options.strict)]

    @property
    def complete(self) -> list[Finding]:
        """The findings, and one for each check that did not run, with the reason."""
        return [finding for check in self.checks for finding in self.found.get(check.id) or [self._not_run(check)]]

    def _not_run(self, check: Check) -> Finding:
        if check.id in self.deselected:
            verdict, reason = Verdict.NOT_APPLICABLE, NOT_SELECTED
        else:
            verdict, reason = Verdict.UNTESTABLE, self._cut_short(check)
        return check.finding(verdict, reason)

    def _cut_short(self, check: Check) -> str:
        if check.id in self.died:
            return "a worker that survives it: this check killed its worker, perhaps by running out of memory"
        return (
            f"workers that survive: {', '.join(self.died)} killed theirs"
            if self.died
            else "a complete run; this one ended early"
        )


def exit_status(tallies: Collection[Tally], pytests_own: int) -> int:
    """The exit status: pytest does not know if the suite itself failed, or could not write a file."""
    if any(tally.unwritten for tally in tallies):
        return pytest.ExitCode.USAGE_ERROR
    return pytest.ExitCode.INTERNAL_ERROR if any(tally.own_fault for tally in tallies) else pytests_own


def write_summary(terminal: Any, tally: Tally) -> None:
    """Print what the server is, violations below MUST, and what to fix next."""
    findings = tally.findings
    if findings or tally.stale:
        terminal.write_sep("=", "gym conformance")
        report = tally.so_far()
        _write_warnings(terminal, report)
        _write_gate(terminal, tally, findings)
        _write_target(terminal, tally, findings)
        if tally.earlier is not None:
            write_changes(terminal, compare(tally.before, tally.earlier, tally.complete))
        verdict, colour = _verdict(tally, report)
        terminal.write_line(verdict, bold=True, **{colour: True})
    if tally.locked:
        terminal.write_line(tally.locked)
    for message in tally.unwritten:
        terminal.write_line(message, red=True, bold=True)


def status(findings: Sequence[Finding]) -> tuple[str, str, Any] | None:
    """The status that pytest shows for a check that fails no run: category, letter, word; None for an ordinary pass."""
    told = [finding for finding in findings if finding.told]
    open_ = [finding for finding in told if not finding.accepted]
    if not told:
        cautious = any(finding.caution for finding in findings)
        return ("cautioned", "c", ("CAUTION", {"yellow": True})) if cautious else None
    if not open_:
        return "accepted", "a", "ACCEPTED"
    if all(finding.framework for finding in open_):
        return "framework", "g", "NEMO GYM"
    return ("noted", "n", "NOTE") if open_[0].verdict is Verdict.NOTE else ("warned", "w", "SHOULD")


def _write_warnings(terminal: Any, report: Report) -> None:
    """Print violations that do not fail the run, and notes; pytest lists those that do under its failures."""
    findings = [finding for finding in report.findings if not finding.accepted]
    mild = [finding for finding in findings if finding.red and not finding.breaks(strict=report.strict)]
    for check, text in zip(dict.fromkeys(finding.check for finding in mild), explain(mild), strict=True):
        terminal.write_line(f"Warning ({check}): {text}\n", yellow=True)
    for group in (group for group in report.notes if not group.first.accepted):
        first, on = group.first, [subject for subject in named(group.subjects) if subject != "server"]
        where = f" ({', '.join(on)})" if on else ""
        terminal.write_line(f"Note ({first.check}): {first.title}{where}: {first.actual}. {first.hint}\n")
    for line in caution_lines(report.cautions):
        terminal.write_line(line + "\n", yellow=True, bold=True)
    for line in cause_lines(report.causes):
        terminal.write_line(line + "\n", bold=True)
    if own := framework_line(report.framework):
        terminal.write_line(own)
    for line in (*untestable_lines(report.briefly), *not_examined_lines(report.not_examined)):
        terminal.write_line(line)


def _write_gate(terminal: Any, tally: Tally, findings: list[Finding]) -> None:
    """Print what the baseline accepts, and its stale entries."""
    for group in alike(finding for finding in findings if finding.accepted):
        terminal.write_line(
            f"accepted: {group.first.check}, {', '.join(named(group.subjects))}: {group.first.accepted}"
        )
    write_baseline_end(terminal, [tally])


def write_baseline_end(terminal: Any, tallies: Collection[Tally]) -> None:
    """Print stale entries, and that a first baseline was written."""
    for tally in tallies:
        for stale in tally.stale:
            terminal.write_line(f"stale: {stale}", red=True)
    new = next(iter(tallies)).options.baseline_write
    if new and new.exists() and not any(tally.own_fault for tally in tallies):
        name = printable(str(new), None)
        if any(tally.breaking for tally in tallies):
            terminal.write_line(f"{name} was written; fill in each reason, then give it as --gym-baseline.")
        else:
            terminal.write_line(f"{name} was written without an entry: nothing fails the run.")


def write_changes(terminal: Any, changes: Changes, server: str = "") -> None:
    """Print what is new, mended and changed since an earlier report."""
    terminal.write_line(f"{server or f'Since {changes.file}'}: {changes}", bold=True)
    colours: dict[str, dict[str, bool]] = {NEW: {"red": True}, MENDED: {"green": True}}
    for word, check, what in changes.lines:
        terminal.write_line(f"  {word}: {check}{f': {what}' if what else ''}", **colours.get(word, {}))


def _write_clients(terminal: Any, clients: Iterable[Compatibility]) -> None:
    """Print which clients the server works with, one line per answer."""
    said = grouped(lambda one: one.works, clients)
    words = {Works.YES: "Works with", Works.NO: "Does not work with", Works.UNKNOWN: "Not known to work with"}
    for works, start in words.items():
        if works in said:
            terminal.write_line(f"{start}: {', '.join(map(str, said[works]))}.")


def _write_target(terminal: Any, tally: Tally, findings: list[Finding]) -> None:
    target = tally.target
    if "kind" in target:
        known = "contract" in target and not target["kind"].startswith("no ")
        sessions = f", {target['contract']} sessions" if known else ""
        terminal.write_line(f"{target['url']} is {phrase(target['kind'])} ({target['evidence']}){sessions}.")
    if len(tally.found) == len(tally.checks):
        _write_clients(terminal, compatibilities(findings))
    if load := next((one.load for one in findings if one.load), ()):
        for line in text_lines([LoadLevel.of(level) for level in load]):
            terminal.write_line(line)
    requests = sum(count for count, _ in tally.effort.values())
    seconds = sum(spent for _, spent in tally.effort.values())
    terminal.write_line(
        f"{len(tally.found)} of {counted(len(tally.checks), 'check')}, {counted(requests, 'request')}, {seconds:.1f} s of them waiting for the server."
    )


def _verdict(tally: Tally, report: Report) -> tuple[str, str]:
    """The verdict in one line, with where to begin, and its colour."""
    if tally.own_fault:
        return "gym-conformance itself failed: no verdict. Please report it.", "red"
    warned = {finding.check for finding in report.findings if finding.red and not finding.accepted}
    accepted = {finding.check for finding in report.findings if finding.red} - warned
    match report.conclusion:
        case Conclusion.UNFIT | Conclusion.UNTESTABLE:
            fatal = first_of_each(lambda finding: finding.check, tally.breaking)
            return _what_to_mend(list(fatal.values())), "red"
        case Conclusion.STALE:
            return "The baseline is stale: fix its entries.", "red"
        case Conclusion.NOTHING:
            return f"{report.conclusion}.", "yellow"
        case Conclusion.PARTLY:
            but = " but what is accepted" if accepted else ""
            return f"No MUST broken{but}, judging by the {counted(len(tally.found), 'check')} that ran.", "green"
    cautious = {check for checks in report.cautions.values() for check in checks}
    counts = {"accepted violation": len(accepted), "warning": len(warned), "caution": len(cautious)}
    return f"Fit to train on{_with(counts)}.", "yellow" if cautious else "green"


def _with(counts: Mapping[str, int]) -> str:
    """The counts that are not 0, after a comma."""
    said = [counted(count, word) for word, count in counts.items() if count]
    return f", with {' and '.join(filter(None, (', '.join(said[:-1]), said[-1])))}" if said else ""


def _what_to_mend(fatal: list[Finding]) -> str:
    """Where to begin, given one finding per failing check: violations come first, and a shared cause counts once."""
    causes = {finding.cause or (finding.verdict, finding.reason or finding.check) for finding in fatal}
    more = f" ({len(causes) - 1} more after it)" if len(causes) > 1 else ""
    first = next((finding for finding in fatal if finding.verdict is Verdict.FAIL), None)
    if first is None:
        alike = sum(finding.reason == fatal[0].reason for finding in fatal) - 1
        named_too = f", and {alike} more for the same reason" if alike else ""
        return f"Not testable as it runs. Fix first: {fatal[0].check}{named_too}{more}: it needs {fatal[0].reason}"
    return f"Not fit to train on. Fix first: {first.check}{more}: {first.hint or first.title}"
