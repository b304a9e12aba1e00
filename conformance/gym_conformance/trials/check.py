"""What a check is: data and one function.

A check raises `Violation` if the contract is violated, `NotApplicable` if the rule does not apply to this server, and
`Untestable` if something that it needs is missing. Any other exception is a bug of ours, never a finding.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from gym_conformance.findings import Finding, Verdict
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.trial import Trial


class Level(StrEnum):
    """How severe a rule is: a MUST fails the run, a SHOULD warns (RFC 2119); a NOTE states a fact and is no rule."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    NOTE = "NOTE"

    @classmethod
    def of(cls, title: str) -> "Level":
        """The level that the title names; a title with neither MUST nor SHOULD states a fact."""
        return next((level for level in (cls.MUST, cls.SHOULD) if level in title.split()), cls.NOTE)


@dataclass(frozen=True)
class Need:
    """A prerequisite of checks, which is asked about once for each gym, before the first check that needs it.

    `ask` is given a trial. It raises `NotApplicable` if the rule does not apply to such a gym, and `Untestable`, with what
    is missing, if it cannot be tested.
    """

    name: str
    ask: Callable[[Trial], Awaitable[None]]


Body = Callable[[Trial, Any], Awaitable[None]]
Subjects = Callable[[Trial], Iterable[Any]]
Attempt = Callable[[Trial, Schedule], Awaitable[None]]


@dataclass(frozen=True)
class Check:
    """One rule of the contract.

    Attributes:
        id: permanent, in kebab case; its first word is the section of the contract.
        title: the rule in one line, with its MUST or SHOULD; for a note, the fact.
        why: what a violation does to training, or why the fact is worth knowing.
        doc: the documentation: how the rule is tested, and its source.
        needs: its prerequisites.
        subjects: makes what it is tried on, with a trial for each; `str()` names them.
        body: tries one subject.
        attempt: for a property, tries one schedule, as `--gym-replay` does; otherwise None.
        framework: whether every stock NeMo Gym server has this finding, which its author cannot fix.
        beside: whether its subjects may be tried concurrently if each takes long; one that does not pass then is tried
            again alone.
        gentle: whether it sends only what a client sends, and measures no time. It may be judged concurrently with
            other such checks; unless it passes there, it is judged again alone.
        waits: what a property tries before its search, where that mostly waits. It may be tried beside gentle checks;
            unless it passes there, `body` tries it again.
        url: where its documentation is, if not on our own page.
    """

    id: str
    title: str
    why: str
    doc: str
    needs: tuple[Need, ...]
    subjects: Subjects
    body: Body
    attempt: Attempt | None = None
    framework: bool = False
    beside: bool = False
    gentle: bool = False
    waits: Callable[[Trial], Awaitable[None]] | None = None
    url: str = ""

    @property
    def level(self) -> Level:
        """How severe a violation is."""
        return Level.of(self.title)

    @property
    def section(self) -> str:
        """The part of the contract that the rule belongs to."""
        return self.id.partition("-")[0]

    def finding(
        self, verdict: Verdict, reason: str = "", *, subject: str = "server", log: tuple[str, ...] = ()
    ) -> Finding:
        """A finding for one subject that has no more than a reason."""
        return Finding(self.id, self.level.value, self.title, verdict, subject, reason=reason, log=log, docs=self.url)


def the_server(_trial: Trial) -> Iterable[str]:
    """The one subject of a check that is about the server as a whole."""
    return ("server",)


def check(
    check_id: str,
    title: str,
    *,
    why: str,
    needs: Iterable[Need] = (),
    subjects: Subjects = the_server,
    framework: bool = False,
    beside: bool = False,
    gentle: bool = False,
    url: str = "",
) -> Callable[[Body], Check]:
    """Make the decorated function a check; its docstring is the check's documentation.

    The arguments are those of `Check`; `url` is for checks of other packages.
    """

    def declare(body: Body) -> Check:
        doc = inspect.getdoc(body) or ""
        rule = Check(check_id, title, why, doc, tuple(needs), subjects, body)
        return replace(rule, framework=framework, beside=beside, gentle=gentle, url=url)

    return declare
