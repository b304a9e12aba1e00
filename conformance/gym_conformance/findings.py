"""Findings: the result of a check on one subject."""

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
    """A common cause of several findings; reports show these together, under its `headline`."""

    SHARED_STATE = "shared-state"
    OUTLIVING_STATE = "outliving-state"
    LOST_SESSION = "lost-session"
    SEPARATE_PROCESSES = "separate-processes"
    WORN_OUT = "worn-out"
    UNANSWERED = "unanswered"

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
    Cause.UNANSWERED: "Requests get no whole answer: the server hangs, or breaks the connection",
}

#: The fields that readers see, and how many characters of them at most.
_TEXTS: Final = ("title", "why", "subject", "expected", "actual", "hint", "reason", "file", "accepted", "caution")
_LINES: Final = ("trajectory", "log")
_LONGEST: Final = 1_000

_LISTS = ("reproduce", "trajectory", "drift", "readings", "load", "rewards", "log")

#: Fields that are left out of the JSON if they are empty.
_OPTIONAL = frozenset(
    {
        *("file", "line", "accepted", "trajectory", "replay", "drift", "readings", "load", "rewards", "log"),
        *("script", "framework", "caution", "cause", "not_examined"),
    }
)


#: The reason of a check that was deselected by -k, -m or a node id.
NOT_SELECTED: Final = "it was not selected in this run"


@dataclass(frozen=True)
class ProcessReading:
    """Resources of the server's process after so many sessions: memory in bytes, children, open files, threads."""

    sessions: int
    memory: int
    children: int
    files: int
    threads: int = 0  # missing in older reports


@dataclass(frozen=True)
class EndpointLoad:
    """Latency of one endpoint's good replies under load, in seconds."""

    endpoint: str
    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class LoadLevel:
    """The results of one level of a load: complete episodes, `in_flight` at once.

    Attributes:
        in_flight: concurrent episodes.
        episodes: how many ended.
        seconds: the duration of the level.
        wrong: how many of them had a different reply or reward than alone; of these,
            lost: were answered 4xx, unlike alone, and
            crashed: were answered 5xx.
        unanswered: how many got no answer in time.
        broken: how many had a connection that broke, or was refused.
        memory: resident memory of the server's process and its children, in bytes; 0 if unknown.
        cores: how many cores the server kept busy; 0 if unknown.
        endpoints: the latencies of its endpoints.
        nodes: how many cluster nodes ran the episodes; 0 if this machine did.
        missing: nodes whose results are missing, and why.
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
        """Episodes per second."""
        return self.episodes / self.seconds if self.seconds else 0.0

    @property
    def held(self) -> bool:
        """Whether each episode was answered, and in the same way as alone."""
        return not (self.wrong or self.unanswered or self.broken)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "LoadLevel":
        """Made from a JSON object, in the form of `dataclasses.asdict`."""
        endpoints = tuple(EndpointLoad(**each) for each in data["endpoints"])
        return cls(**dict(data) | {"endpoints": endpoints, "missing": tuple(data.get("missing", ()))})


@dataclass(frozen=True)
class RowPay:
    """The rewards of one dataset row.

    Attributes:
        place: the row.
        verdict: `holds`, `fails` or `unchecked`.
        own: the reward of its own answer; None if it has none.
        others: the rewards of the other submissions, by name.
        amiss: which submission gets a reward that it should not, or lacks one that it should get; '' if none.
        reproduce: shell commands that send the same requests; only for the worst rows.
    """

    place: str
    verdict: str
    own: float | None
    others: Mapping[str, float] = field(default_factory=dict)
    amiss: str = ""
    reproduce: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewardSpread:
    """A summary of the rewards of rows.

    Attributes:
        answers: how rows are answered.
        top: the usual best reward.
        low: the lower end of the steps.
        high: the upper end of the steps.
        verdicts: how many rows hold, fail and are unchecked.
        counts: by submission, how many rewards are in each of the equal steps from `low` to `high`.
        rows: worst first; all of them if they are few.
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
        """Made from a JSON object, in the form of `dataclasses.asdict`; all texts are made printable."""
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
    """One verdict, ready to show: all text from the server is escaped, cut and free of secrets.

    Attributes:
        check: the check's id.
        level: MUST, SHOULD or NOTE.
        title: the rule; for a note, the fact.
        verdict: how it ended.
        subject: what was tested, such as a row or a tool.
        expected: what the contract requires; like `actual`, `why` and `hint`, only set if the verdict is fail or note.
        actual: what happened.
        why: the effect on training.
        hint: the likely cause.
        reason: why the check does not apply, or what is missing to test it.
        reproduce: shell commands that send the same requests.
        script: the file of these commands, if they do not fit on a screen; '' if they do.
        trajectory: the shortest schedule that breaks a property, one step per line.
        replay: that schedule as the content of a file for `--gym-replay`.
        file: the dataset file of the subject, as it was given; '' if it has none.
        line: the line in that file, counted from 1.
        log: the last output of a launched server, if it is not testable as launched.
        accepted: why the baseline accepts this finding; '' if it does not.
        framework: whether every stock NeMo Gym server has it, so that the env's author cannot fix it.
        caution: why a pass means less than it seems to, such as too few tries; '' if it does not.
        cause: the cause that it shares with other findings, if known.
        not_examined: for a check that does not apply, whether an option or a file would have made it apply (`reason`).
        drift: rows for the drift report, as JSON objects (`probes.drift_row`).
        readings: of the server's process, if it was observed, as JSON objects (`ProcessReading`).
        load: the results of a load, as JSON objects (`LoadLevel`).
        rewards: the rewards of rows, if they were calibrated, as one JSON object (`RewardSpread`).
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
        """Make all texts printable, wherever they come from: a judge, a launch, a worker, a file of results."""
        if not self.docs:  # our own checks are documented on our page
            object.__setattr__(self, "docs", f"{DOCS}#{self.check}")
        for name in _TEXTS:
            object.__setattr__(self, name, printable(getattr(self, name), _LONGEST))
        for name in _LINES:
            object.__setattr__(self, name, tuple(printable(line, _LONGEST) for line in getattr(self, name)))
        object.__setattr__(self, "reproduce", tuple(printable(command, None) for command in self.reproduce))

    @property
    def red(self) -> bool:
        """Whether it needs a fix: a violation, or a rule that could not be tested; never a fault of the framework."""
        return self.verdict in (Verdict.FAIL, Verdict.UNTESTABLE) and not self.framework

    @property
    def told(self) -> bool:
        """Whether it says more than a pass: a violation, a note, or what is missing to test the rule."""
        return self.verdict in (Verdict.FAIL, Verdict.NOTE, Verdict.UNTESTABLE)

    def breaks(self, *, strict: bool) -> bool:
        """Whether it fails the run: untestable, or a MUST violated (if `strict` also a SHOULD), and not accepted.

        Faults of the framework never fail the run.
        """
        if self.accepted or not self.red:
            return False
        return self.verdict is Verdict.UNTESTABLE or self.level == "MUST" or (strict and self.level == "SHOULD")

    def as_json(self) -> dict[str, Any]:
        """As a JSON object, for reports, and for transfer from an xdist worker, which carries no enums."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        data = asdict(self) | lists | {"verdict": self.verdict.value, "cause": self.cause and self.cause.value}
        return {name: value for name, value in data.items() if value or name not in _OPTIONAL}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Finding":
        """The inverse of `as_json`.

        Raises:
            ValueError: it is not such an object; a file of results may have been edited.
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
    """The combined verdict: fail, else untestable, else note, else pass, else not applicable."""
    verdicts = {finding.verdict for finding in findings}
    order = (Verdict.FAIL, Verdict.UNTESTABLE, Verdict.NOTE, Verdict.PASS)
    return next((verdict for verdict in order if verdict in verdicts), Verdict.NOT_APPLICABLE)
