"""The baseline: findings that a repo accepts for now, each with a reason, and which of its entries are stale."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase

from gym_conformance.findings import Finding, Verdict
from gym_conformance.printable import printable


@dataclass(frozen=True)
class Entry:
    """One accepted finding.

    Attributes:
        check: the check's id.
        reason: why it is accepted; never empty.
        subject: the subject for which it is accepted, or a glob over subjects.
        until: the last day on which it is accepted; None for ever.
        line: the entry's line in its file, from 1; 0 if unknown.
        server: the name of the server that it is about; '' if only one is judged.
    """

    check: str
    reason: str
    subject: str = "*"
    until: date | None = None
    line: int = 0
    server: str = ""

    def matches(self, finding: Finding) -> bool:
        """Whether it is about this finding, whatever its verdict."""
        same = finding.subject == self.subject or fnmatchcase(finding.subject, self.subject)
        return finding.check == self.check and same

    def expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return self.until is not None and self.until < today


@dataclass(frozen=True)
class Stale:
    """An entry that is wrong, or no longer right; `file` and `line` locate it, `problem` says what to do."""

    check: str
    subject: str
    file: str
    line: int
    problem: str
    server: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return printable(": ".join(filter(None, [where, self.server, f"{self.check}, {self.subject}", self.problem])))


@dataclass(frozen=True)
class Baseline:
    """The entries of one file, in order."""

    file: str
    entries: tuple[Entry, ...] = ()

    def of(self, server: str) -> "Baseline":
        """The entries about one server, and those that name no server."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.server in ("", server)))

    def accept(self, findings: Iterable[Finding], today: date) -> list[Finding]:
        """The same findings, with the reason of the entry that accepts them, if any."""
        valid = [entry for entry in self.entries if not entry.expired(today)]
        return [_accepted(finding, valid) for finding in findings]

    def stale(self, check_id: str, findings: Sequence[Finding], today: date) -> list[Stale]:
        """The stale entries for one check, which ran and found all these findings."""
        problems = [(entry, _problem(entry, findings, today)) for entry in self.entries if entry.check == check_id]
        return [self._stale(entry, problem) for entry, problem in problems if problem]

    def unknown(self, known: Collection[str]) -> list[Stale]:
        """The entries for checks that do not exist."""
        problem = "there is no such check; correct the id, or remove the entry"
        return [self._stale(entry, problem) for entry in self.entries if entry.check not in known]

    def _stale(self, entry: Entry, problem: str) -> Stale:
        return Stale(entry.check, entry.subject, self.file, entry.line, problem, entry.server)


def _accepted(finding: Finding, entries: Iterable[Entry]) -> Finding:
    reason = next((entry.reason for entry in entries if entry.matches(finding)), "")
    return replace(finding, accepted=reason) if reason and finding.told else finding


def _problem(entry: Entry, findings: Sequence[Finding], today: date) -> str:
    """What is wrong with an entry; '' if nothing is, or if this run could not tell."""
    matching = [finding for finding in findings if entry.matches(finding)]
    if matching and not any(finding.told for finding in matching):
        return "it no longer fails; remove the entry"
    if entry.expired(today):
        return f"it was accepted until {entry.until}; fix the finding, or give a later date"
    cut_short = any(finding.verdict is Verdict.UNTESTABLE for finding in findings)
    return "" if matching or cut_short else "the check has no subject of this name; remove the entry"
