"""The differences between the findings of this run and those of an earlier one."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gym_conformance.findings import Finding, Verdict
from gym_conformance.reports.shown_text import named

#: Parts of a text that differ from run to run without meaning: numbers, ids, hashes.
_VARYING: Final = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+", re.IGNORECASE)

#: Verdicts of checks that could look.
_LOOKED: Final = (Verdict.PASS, Verdict.FAIL, Verdict.NOTE)

NEW, MENDED, CHANGED = "new", "mended", "changed"

_Key = tuple[str, str]


@dataclass(frozen=True)
class FindingChange:
    """One finding that is new, mended or changed.

    Attributes:
        word: which of the three.
        finding: the current finding; of a mended one, the earlier one.
        was: the earlier state; '' if there was none.
    """

    word: str
    finding: Finding
    was: str = ""


@dataclass(frozen=True)
class Changes:
    """What is new, mended and changed since an earlier report; `file` is the path of that report."""

    file: str
    all: tuple[FindingChange, ...]

    def __str__(self) -> str:
        """The number of each, in a few words."""
        counts = {word: sum(change.word == word for change in self.all) for word in (NEW, MENDED, CHANGED)}
        return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "no difference"

    @property
    def lines(self) -> Iterator[tuple[str, str, str]]:
        """Word, check and description of each change; equal ones are combined."""
        groups: dict[tuple[str, str, str], list[str]] = {}
        for change in self.all:
            now = said(change.finding) if change.word != MENDED else ""
            text = f"{now}; it was: {change.was}" if change.word == CHANGED else now
            groups.setdefault((change.word, change.finding.check, text), []).append(change.finding.subject)
        for (word, check, text), subjects in groups.items():
            on = ", ".join(named([subject for subject in subjects if subject != "server"]))
            yield word, check, ": ".join(filter(None, (on, text)))

    def as_json(self) -> dict[str, Any]:
        """As a JSON object; a change names its finding by check and subject."""
        found: dict[str, Any] = {"file": self.file, NEW: [], MENDED: [], CHANGED: []}
        for change in self.all:
            named_by = {"check": change.finding.check, "subject": change.finding.subject}
            found[change.word].append(named_by | ({"was": change.was} if change.word == CHANGED else {}))
        return found

    def word_of(self, finding: Finding) -> str:
        """Which of the three a finding is; '' for none."""
        return next((change.word for change in self.all if _key(change.finding) == _key(finding)), "")


def said(finding: Finding) -> str:
    """A finding in short."""
    return f"needs {finding.reason}" if finding.verdict is Verdict.UNTESTABLE else finding.actual


def compare(file: str, before: Iterable[Finding], now: Iterable[Finding]) -> Changes:
    """The changes from one run to the next, ignoring checks that could not look this time.

    Findings that the baseline accepts now are not new.
    """
    now = tuple(now)
    was, is_ = _red(before), _red(now)
    looked = {finding.check for finding in now if finding.verdict in _LOOKED}
    untestable = {finding.check for finding in now if finding.verdict is Verdict.UNTESTABLE}
    changes = [FindingChange(NEW, finding) for key, finding in is_.items() if key not in was and not finding.accepted]
    changes += [
        FindingChange(MENDED, finding, said(finding))
        for key, finding in was.items()
        if key not in is_ and finding.check in looked - untestable
    ]
    changes += [
        FindingChange(CHANGED, finding, said(was[key]))
        for key, finding in is_.items()
        if key in was and _essence(finding) != _essence(was[key])
    ]
    return Changes(file, tuple(changes))


def _red(findings: Iterable[Finding]) -> Mapping[_Key, Finding]:
    return {_key(finding): finding for finding in findings if finding.red}


def _key(finding: Finding) -> _Key:
    return finding.check, finding.subject


def _essence(finding: Finding) -> tuple[str, ...]:
    return finding.verdict, finding.level, _VARYING.sub("#", said(finding))
