"""Groups related findings: those of one check that say the same about several subjects, and those with one cause or need."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gym_conformance.findings import Cause, Finding, Verdict
from gym_conformance.grouping import distinct, grouped
from gym_conformance.printable import counted


@dataclass(frozen=True)
class Group:
    """Findings that say the same about several subjects; the first one represents them. See `by_need` for several checks."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding to show."""
        return self.findings[0]

    @property
    def subjects(self) -> list[str]:
        """The subjects of the findings."""
        return [finding.subject for finding in self.findings]

    @property
    def checks(self) -> list[str]:
        """The ids of their checks, each once."""
        return list(dict.fromkeys(finding.check for finding in self.findings))

    @property
    def rule(self) -> str:
        """The rule that they are about: that of the first check, and how many more there are."""
        more = len(self.checks) - 1
        return (
            f"{self.first.title} (and {counted(more, 'more rule')}, untestable for the same reason)"
            if more
            else self.first.title
        )

    @property
    def label(self) -> str:
        """The level, MUST, SHOULD or note; or that it could not be tested, or is accepted."""
        if self.first.accepted:
            return "accepted"
        if self.first.verdict in (Verdict.UNTESTABLE, Verdict.NOTE):
            return self.first.verdict.value
        return self.first.level


def alike(findings: Iterable[Finding]) -> Iterator[Group]:
    """The findings in groups, ordered by the first one of each."""

    def said(one: Finding) -> tuple[str, ...]:
        return one.check, one.verdict, one.expected, one.actual, one.hint, one.reason, one.accepted

    return (Group(tuple(group)) for group in grouped(said, findings).values())


def shared_causes(findings: Iterable[Finding]) -> Mapping[Cause, tuple[str, ...]]:
    """The causes that violations of several checks share, each with its checks; accepted violations do not count."""
    blamed = (finding for finding in findings if finding.red and not finding.accepted)
    checks = distinct((finding.cause, finding.check) for finding in blamed if finding.cause)
    return {cause: names for cause, names in checks.items() if len(names) > 1}


def together(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups in order, except that those with a common cause follow the first of them."""
    places: dict[Cause, int] = {}
    keys = []
    for place, group in enumerate(groups):
        cause = None if group.first.accepted else group.first.cause
        keys.append(places.setdefault(cause, place) if cause else place)
    return tuple(group for _, group in sorted(zip(keys, groups, strict=True), key=lambda pair: pair[0]))


def by_need(groups: Iterable[Group]) -> tuple[Group, ...]:
    """The groups in order, except that checks that are untestable for the same reason, such as lack of time, share one."""
    same = grouped(lambda group: group.first.reason if group.label == Verdict.UNTESTABLE else id(group), groups)
    return tuple(Group(tuple(finding for group in alike for finding in group.findings)) for alike in same.values())
