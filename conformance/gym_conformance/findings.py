"""Findings: what a check found on one subject."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from gym_conformance import DOCS
from gym_conformance.printable import printable


class Verdict(StrEnum):
    """How a check ended on one subject."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    NOTE = "note"
    NOT_APPLICABLE = "not_applicable"
    UNTESTABLE = "untestable"


class Cause(StrEnum):
    """What several findings may have in common; reports show those of one cause together, under its `headline`."""

    SHARED_STATE = "shared-state"
    OUTLIVING_STATE = "outliving-state"
    LOST_SESSION = "lost-session"
    SEPARATE_PROCESSES = "separate-processes"
    WORN_OUT = "worn-out"

    @property
    def headline(self) -> str:
        """The cause in a sentence."""
        return _HEADLINES[self]


_HEADLINES: Final = {
    Cause.SHARED_STATE: "Sessions share state: one changes what another sees",
    Cause.OUTLIVING_STATE: "State outlives its session: a new one sees what an earlier one left behind",
    Cause.LOST_SESSION: "Sessions get lost: a later request no longer reaches the session that was seeded",
    Cause.SEPARATE_PROCESSES: "Several processes answer, and each keeps sessions of its own",
    Cause.WORN_OUT: "The server wears out: after so many sessions it opens no more",
}

#: What a reader is shown, and of how many characters at most.
_TEXTS: Final = ("title", "why", "subject", "expected", "actual", "hint", "reason", "file", "accepted", "caution")
_LINES: Final = ("trajectory", "log")
_LONGEST: Final = 1_000

_LISTS = ("reproduce", "trajectory", "drift", "readings", "load", "rewards", "log")

#: Left out of the JSON where they say nothing.
_OPTIONAL = frozenset(
    {
        *("file", "line", "accepted", "trajectory", "replay", "drift", "readings", "load", "rewards", "log"),
        *("script", "framework", "caution", "cause", "not_examined"),
    }
)


#: The reason of a check that -k, -m or a node id left out.
NOT_SELECTED: Final = "it was not selected in this run"


@dataclass(frozen=True)
class ProcessReading:
    """What the server's process held after so many sessions: memory in bytes, child processes, open files, threads."""

    sessions: int
    memory: int
    children: int
    files: int
    threads: int = 0  # not in earlier reports


@dataclass(frozen=True)
class EndpointLoad:
    """How long good replies of one endpoint took under load, in seconds."""

    endpoint: str
    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class LoadLevel:
    """What came of whole episodes, so many at once.

    Attributes:
        in_flight: episodes under way at once.
        episodes: those that ended.
        seconds: from the first to the last.
        wrong: of those that ended, with another reply or reward than alone, and how many of them were
        lost: answered 4xx where alone they are not, or
        crashed: answered 5xx.
        unanswered: episodes that got no answer in time.
        broken: episodes whose connection broke, or was refused.
        memory: resident, of the server's process and its children, in bytes; 0 where it is not known.
        cores: that the server kept busy; 0 where it is not known.
        endpoints: how long replies took.
        nodes: of a cluster from which they were driven; 0 where this machine drove them.
        missing: nodes whose part is missing, and why.
    """

    in_flight: int
    episodes: int
    seconds: float
    wrong: int
    lost: int
    crashed: int
    unanswered: int
    broken: int
    memory: int
    cores: float
    endpoints: tuple[EndpointLoad, ...] = ()
    nodes: int = 0
    missing: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Episodes a second."""
        return self.episodes / self.seconds if self.seconds else 0.0

    @property
    def held(self) -> bool:
        """Whether each episode was answered, and as alone."""
        return not (self.wrong or self.unanswered or self.broken)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "LoadLevel":
        """From a JSON object, as `dataclasses.asdict` makes it."""
        endpoints = tuple(EndpointLoad(**each) for each in data["endpoints"])
        return cls(**dict(data) | {"endpoints": endpoints, "missing": tuple(data.get("missing", ()))})


@dataclass(frozen=True)
class RowPay:
    """What one row of a dataset pays.

    Attributes:
        place: the row.
        verdict: `holds`, `fails` or `unchecked`.
        own: the reward of its own answer; None where it has none.
        others: the rewards of what else was handed in, by name.
        amiss: what earns what it should not, or does not earn what it should; '' where nothing is.
        reproduce: shell commands that send the same requests; only of the worst rows.
    """

    place: str
    verdict: str
    own: float | None
    others: Mapping[str, float] = field(default_factory=dict)
    amiss: str = ""
    reproduce: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewardSpread:
    """What rows pay, at a glance.

    Attributes:
        answers: how rows are answered.
        top: the usual best reward.
        low: the least reward of the steps.
        high: the highest.
        verdicts: how many rows hold, fail and are unchecked.
        counts: by what was handed in, how many rewards lie in each of equal steps from `low` to `high`.
        rows: the worst first; all of them where there are few.
    """

    answers: str
    top: float
    low: float
    high: float
    verdicts: Mapping[str, int]
    counts: Mapping[str, tuple[int, ...]]
    rows: tuple[RowPay, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "RewardSpread":
        """From a JSON object, as `dataclasses.asdict` makes it; each text is taken through the gate."""
        rows = tuple(
            RowPay(
                printable(row["place"], _LONGEST),
                row["verdict"],
                row["own"],
                {printable(name, _LONGEST): reward for name, reward in row["others"].items()},
                printable(row["amiss"], _LONGEST),
                tuple(printable(command, None) for command in row["reproduce"]),
            )
            for row in data["rows"]
        )
        counts = {name: tuple(steps) for name, steps in data["counts"].items()}
        return cls(**dict(data) | {"answers": printable(data["answers"], _LONGEST), "counts": counts, "rows": rows})


@dataclass(frozen=True)
class Finding:
    """One verdict, ready to show: every text from the server is escaped, cut and free of secrets.

    Attributes:
        check: the check's id.
        level: MUST, SHOULD or NOTE.
        title: the rule; of a note the fact.
        verdict: how it ended.
        subject: what it was tried on, such as a row or a tool.
        expected: what the contract asks; with `actual`, `why` and `hint` only where the verdict is fail or note.
        actual: what came.
        why: what this does to training.
        hint: the likely cause.
        reason: why it is not applicable, or what is missing to test it.
        reproduce: shell commands that send the same requests.
        script: where these are kept as a file, if they do not fit on a screen; '' where they do.
        trajectory: the shortest schedule that breaks a property, a step a line.
        replay: that schedule as the text of a file that `--gym-replay` reads.
        file: the dataset file that the subject comes from, as it was given; '' where it comes from none.
        line: the line in that file, counted from 1.
        log: the last lines that a launched server printed, where it is not testable as launched.
        accepted: why the baseline accepts this finding; '' where it does not.
        framework: whether it is NeMo Gym's own, and the same in every stock server: nothing for the env's author to fix.
        caution: of a pass, why it says less than it seems to, such as too few tries; '' where it does not.
        cause: what it has in common with other findings, where that is known.
        not_examined: of a check that does not apply, whether an option or a file would have made it apply (`reason`).
        drift: rows for the drift report, as JSON objects (`probes.drift_row`).
        readings: what the server's process held, where it was looked at, as JSON objects (`ProcessReading`).
        load: what came of episodes, so many at once, as JSON objects (`LoadLevel`).
        rewards: what rows pay, where they were calibrated, as one JSON object (`RewardSpread`).
        docs: the address of the check's documentation.
    """

    check: str
    level: str
    title: str
    verdict: Verdict
    subject: str
    expected: str = ""
    actual: str = ""
    why: str = ""
    hint: str = ""
    reason: str = ""
    reproduce: tuple[str, ...] = field(default=())
    script: str = ""
    trajectory: tuple[str, ...] = field(default=())
    replay: str = ""
    file: str = ""
    line: int = 0
    accepted: str = ""
    log: tuple[str, ...] = field(default=())
    drift: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    readings: tuple[Mapping[str, int], ...] = field(default=(), repr=False)
    load: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    rewards: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    framework: bool = False
    caution: str = ""
    cause: Cause | None = None
    not_examined: bool = False
    docs: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Take each text through the gate, wherever it comes from: a judge, a launch, a worker, a file of results."""
        if not self.docs:  # this package's own checks are documented on its own page
            object.__setattr__(self, "docs", f"{DOCS}#{self.check}")
        for name in _TEXTS:
            object.__setattr__(self, name, printable(getattr(self, name), _LONGEST))
        for name in _LINES:
            object.__setattr__(self, name, tuple(printable(line, _LONGEST) for line in getattr(self, name)))
        object.__setattr__(self, "reproduce", tuple(printable(command, None) for command in self.reproduce))

    @property
    def red(self) -> bool:
        """Whether it is something to fix: a violation, or a rule that could not be tested; never the framework's own."""
        return self.verdict in (Verdict.FAIL, Verdict.UNTESTABLE) and not self.framework

    @property
    def told(self) -> bool:
        """Whether it says something beyond a pass: a violation, a note, or what is missing to test the rule."""
        return self.verdict in (Verdict.FAIL, Verdict.NOTE, Verdict.UNTESTABLE)

    def breaks(self, *, strict: bool) -> bool:
        """Whether it fails the run: untestable, or a MUST violated (if `strict` a SHOULD too), and not accepted.

        What is the framework's own fails no run, however strict.
        """
        if self.accepted or not self.red:
            return False
        return self.verdict is Verdict.UNTESTABLE or self.level == "MUST" or (strict and self.level == "SHOULD")

    def as_json(self) -> dict[str, Any]:
        """A JSON object of plain types, for the report and for the way from an xdist worker."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        data = asdict(self) | lists | {"verdict": self.verdict.value}
        return {name: value for name, value in data.items() if value or name not in _OPTIONAL}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Finding":
        """The inverse of `as_json`.

        Raises:
            ValueError: it is no such object: a file of results may have been changed.
        """
        try:
            tuples = {name: tuple(data.get(name, ())) for name in _LISTS}
            cause = Cause(data["cause"]) if data.get("cause") else None
            finding = cls(**data | tuples | {"verdict": Verdict(data["verdict"]), "cause": cause})
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"no finding: {error!r}") from None
        words = (finding.check, finding.level, finding.script, finding.replay, finding.docs)
        objects = (*finding.drift, *finding.readings, *finding.load, *finding.rewards)
        flags = (finding.framework, finding.not_examined)
        if not (
            all(isinstance(word, str) for word in words)
            and all(isinstance(each, dict) for each in objects)
            and all(isinstance(flag, bool) for flag in flags)
            and type(finding.line) is int
        ):
            raise ValueError("no finding: a field has a value of another type")
        return finding


def worst(findings: Iterable[Finding]) -> Verdict:
    """One verdict for several: fail, else untestable, else note, else pass, else not applicable."""
    verdicts = {finding.verdict for finding in findings}
    order = (Verdict.FAIL, Verdict.UNTESTABLE, Verdict.NOTE, Verdict.PASS)
    return next((verdict for verdict in order if verdict in verdicts), Verdict.NOT_APPLICABLE)
