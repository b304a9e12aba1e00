"""The report as a value, from which all formats are made."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from gym_conformance.baseline import Stale
from gym_conformance.drift.tool_drift import Weight
from gym_conformance.findings import (
    NOT_SELECTED,
    Cause,
    Finding,
    LoadLevel,
    ProcessReading,
    RewardSpread,
    Verdict,
    worst,
)
from gym_conformance.grouping import distinct, grouped
from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.reports.changes import Changes
from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.finding_groups import Group, alike, by_need, shared_causes, together
from gym_conformance.reports.known_clients import Compatibility, compatibilities

#: Readings of a server's process to ignore: before the second one it has not warmed up.
_COLD: Final = 2


class Conclusion(StrEnum):
    """The conclusion of a run about a gym."""

    FIT = "Fit to train on"
    PARTLY = "No MUST broken, judging by the checks that ran"
    STALE = "The baseline is stale"
    UNTESTABLE = "Not testable as it runs"
    UNFIT = "Not fit to train on"
    NOTHING = "Nothing to judge here"


@dataclass(frozen=True)
class Judged:
    """One check and all its findings."""

    findings: tuple[Finding, ...]

    @property
    def check(self) -> str:
        """Its id."""
        return self.findings[0].check

    @property
    def first(self) -> Finding:
        """Any of its findings: they share level and title."""
        return self.findings[0]

    @property
    def verdict(self) -> Verdict:
        """One verdict for all subjects."""
        return worst(self.findings)

    @property
    def selected(self) -> bool:
        """Whether it was selected to run."""
        return self.first.reason != NOT_SELECTED


@dataclass(frozen=True)
class Report:
    """The result of a run.

    Attributes:
        target: what was judged: url and rows; kind, evidence and contract if it was recognised; perhaps app.
        findings: in the order of the checks, at least one for each.
        strict: whether a SHOULD fails the run.
        baseline: the baseline's file; '' if none was given.
        stale: its stale entries.
        drift: differences between schemas, worst first; None if they were not compared. Those that need a fix are also
            findings.
        latency: by endpoint; None if it was not measured.
        since: what is new, mended and changed; None if no earlier report was given.
    """

    target: Mapping[str, Any]
    findings: tuple[Finding, ...]
    strict: bool = False
    baseline: str = ""
    stale: tuple[Stale, ...] = ()
    drift: tuple[DriftRow, ...] | None = None
    latency: tuple[Latency, ...] | None = None
    since: Changes | None = None

    @cached_property
    def checks(self) -> tuple[Judged, ...]:
        """The checks, in order."""
        found = grouped(lambda finding: finding.check, self.findings)
        return tuple(Judged(tuple(findings)) for findings in found.values())

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """What to fix, worst first, findings with a common cause together; equal findings share a group."""
        groups = alike(finding for finding in self.findings if finding.red)
        return together(sorted(groups, key=lambda group: self._gravity(group.first)))

    @cached_property
    def briefly(self) -> tuple[Group, ...]:
        """The groups, with one for all checks that are untestable for the same reason."""
        return by_need(self.groups)

    @cached_property
    def causes(self) -> Mapping[Cause, tuple[str, ...]]:
        """The causes that several checks share, each with its checks, worst first."""
        return shared_causes(group.first for group in self.groups)

    @cached_property
    def notes(self) -> tuple[Group, ...]:
        """Noteworthy facts that are no violations; those that the baseline accepts come last."""
        noted = (finding for finding in self.findings if finding.verdict is Verdict.NOTE and not finding.framework)
        return tuple(sorted(alike(noted), key=lambda group: bool(group.first.accepted)))

    @property
    def framework(self) -> Mapping[str, int]:
        """The checks with faults of NeMo Gym itself, and how many each has, without accepted ones."""
        return Counter(finding.check for finding in self.findings if finding.framework and not finding.accepted)

    @property
    def cautions(self) -> Mapping[str, tuple[str, ...]]:
        """The checks that passed, but mean less than they seem to, by the reason."""
        return distinct((finding.caution, finding.check) for finding in self.findings if finding.caution)

    @property
    def not_examined(self) -> Mapping[str, tuple[str, ...]]:
        """The checks that could not look, by what was missing."""
        return distinct((finding.reason, finding.check) for finding in self.findings if finding.not_examined)

    @cached_property
    def conclusion(self) -> Conclusion:
        """The conclusion."""
        breaking = {finding.verdict for finding in self.findings if finding.breaks(strict=self.strict)}
        if Verdict.FAIL in breaking:
            return Conclusion.UNFIT
        if breaking:
            return Conclusion.UNTESTABLE
        if self.stale:
            return Conclusion.STALE
        if not all(check.selected for check in self.checks):
            applied = any(finding.verdict is not Verdict.NOT_APPLICABLE for finding in self.findings)
            return Conclusion.PARTLY if applied else Conclusion.NOTHING
        return Conclusion.FIT if any(map(_about_training, self.findings)) else Conclusion.NOTHING

    @cached_property
    def clients(self) -> tuple[Compatibility, ...]:
        """Which clients the server works with."""
        return compatibilities(self.findings)

    @property
    def readings(self) -> tuple[ProcessReading, ...]:
        """The readings of the server's process; () if it was not observed."""
        found = (finding.readings for finding in self.findings if len(finding.readings) > _COLD)
        return tuple(ProcessReading(**reading) for reading in next(found, ()))

    @property
    def load(self) -> tuple[LoadLevel, ...]:
        """The results of episodes run concurrently, by level; () if no load was requested."""
        return tuple(map(LoadLevel.of, next((one.load for one in self.findings if one.load), ())))

    @property
    def rewards(self) -> RewardSpread | None:
        """The rewards of rows, of all rows if all were checked; None if none was calibrated."""
        found = [RewardSpread.of(one) for finding in self.findings for one in finding.rewards]
        return max(found, key=lambda spread: sum(spread.verdicts.values()), default=None)

    @property
    def drift_conclusion(self) -> str:
        """The conclusion of the comparison between rows and server, in a few words."""
        if self.drift is None:
            return "Rows and server were not compared"
        breaking = sum(row.breaks for row in self.drift)
        if breaking:
            return f"Rows and server have drifted apart in {breaking:,} place{'s' if breaking > 1 else ''}"
        return "Rows and server agree" + (" in everything that breaks rollouts" if self.drift else "")

    def breaks(self, group: Group) -> bool:
        """Whether this group fails the run."""
        return group.first.breaks(strict=self.strict)

    def _gravity(self, finding: Finding) -> tuple[bool, bool, bool, int]:
        untestable = finding.verdict is Verdict.UNTESTABLE
        return bool(finding.accepted), not finding.breaks(strict=self.strict), untestable, finding.level != "MUST"


def drift_of(findings: Iterable[Finding]) -> tuple[DriftRow, ...] | None:
    """The rows of the drift report that the findings carry; None if no check compared anything."""
    findings = tuple(findings)
    judged = (Verdict.PASS, Verdict.FAIL)
    if not any(finding.check.startswith("drift-") and finding.verdict in judged for finding in findings):
        return None
    rows = [DriftRow.from_json(row) for finding in findings for row in finding.drift]
    return tuple(sorted(rows, key=lambda row: (list(Weight).index(row.weight), row.tool, row.argument)))


def _about_training(finding: Finding) -> bool:
    """Whether it is evidence about training: that the server answers (section live), or has its files (env), is not."""
    return finding.verdict is Verdict.PASS and not finding.check.startswith(("live-", "env-"))
