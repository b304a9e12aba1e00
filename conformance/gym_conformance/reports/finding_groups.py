"""Findings that say the same about several subjects, as one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gym_conformance.findings import Finding, Verdict


@dataclass(frozen=True)
class Group:
    """Findings of one check that say the same about several subjects; the first stands for all."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The one that is shown."""
        return self.findings[0]

    @property
    def subjects(self) -> list[str]:
        """What they are about."""
        return [finding.subject for finding in self.findings]

    @property
    def label(self) -> str:
        """MUST, SHOULD or note; or that it could not be tested, or is accepted."""
        if self.first.accepted:
            return "accepted"
        if self.first.verdict in (Verdict.UNTESTABLE, Verdict.NOTE):
            return self.first.verdict.value
        return self.first.level


def alike(findings: Iterable[Finding]) -> Iterator[Group]:
    """The findings in groups, in the order of their first ones."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        said = (finding.expected, finding.actual, finding.hint, finding.reason, finding.accepted)
        groups.setdefault((finding.check, finding.verdict, *said), []).append(finding)
    return (Group(tuple(group)) for group in groups.values())
