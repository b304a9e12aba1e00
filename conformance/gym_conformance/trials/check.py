"""What a check is: data and one function.

A check raises `Violation` when the contract is violated, `NotApplicable` when the rule says nothing about this
server, `Untestable` when something it needs is missing. Any other exception is our own fault, never a finding.
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
    """How much a rule weighs: a MUST fails the run, a SHOULD warns (RFC 2119); a NOTE tells a fact and is no rule."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    NOTE = "NOTE"

    @classmethod
    def of(cls, title: str) -> "Level":
        """What the rule itself says; a title that says neither tells a fact."""
        return next((level for level in (cls.MUST, cls.SHOULD) if level in title.split()), cls.NOTE)


@dataclass(frozen=True)
class Need:
    """What a check cannot do without; asked once for a gym, before the first check that has it.

    `ask` is given a trial, and raises `NotApplicable` where the rule says nothing about such a gym, and `Untestable` where something is
    missing, with what it is.
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
        title: the rule, in one line, with the MUST or SHOULD that it weighs; of a note the fact.
        why: what a violation does to training, or why the fact is worth knowing.
        doc: the documentation: how the rule is tested, and its source.
        needs: what it cannot do without.
        subjects: what it is tried on, one trial each; each is named by `str()`.
        body: tries one subject.
        attempt: for a property, tries one schedule: what `--gym-replay` runs; else None.
        framework: whether every stock NeMo Gym server has this finding, which its author cannot fix.
        beside: whether its subjects may be tried beside each other where each takes long; what does not pass then is tried alone.
        gentle: whether it sends only what a client sends, and measures no time: where the server is slow it may be judged
            beside other such checks; unless it passes there, it is judged again, alone.
        url: of its documentation, where that is not our own page.
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
    url: str = ""

    @property
    def level(self) -> Level:
        """How much it weighs."""
        return Level.of(self.title)

    @property
    def section(self) -> str:
        """The part of the contract that the rule belongs to."""
        return self.id.partition("-")[0]

    def finding(
        self, verdict: Verdict, reason: str = "", *, subject: str = "server", log: tuple[str, ...] = ()
    ) -> Finding:
        """What came of it for a subject, with no more than its reason."""
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

    `beside` says that several subjects may be tried at once where the server is slow, and `gentle` that other checks may be
    judged at the same time; `url` is where that can be read, of checks that are not this package's own.
    """

    def declare(body: Body) -> Check:
        doc = inspect.getdoc(body) or ""
        rule = Check(check_id, title, why, doc, tuple(needs), subjects, body)
        return replace(rule, framework=framework, beside=beside, gentle=gentle, url=url)

    return declare
