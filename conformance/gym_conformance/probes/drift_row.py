"""Drift as reports show it: a difference between schemas, and the live server's reply to its witness."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from gym_conformance.drift.tool_drift import Certainty, Drift, DriftKind, Weight
from gym_conformance.probes.live_answer import NOTHING_TRIED, Live, LiveAnswer
from gym_conformance.redaction import NO_SECRETS, Secrets

#: The weight of breaking drift that the live server does not confirm: only what was observed is claimed.
_DEMOTED: Final = {LiveAnswer.NOT_CONFIRMED: Weight.NOTE, LiveAnswer.NOT_TRIED: Weight.WARNING}

#: Fields that contain text from the rows or the server.
_FREE: Final = ("tool", "message", "argument", "declared", "served", "witness", "detail")


@dataclass(frozen=True)
class DriftRow:
    """One row of the drift table.

    Attributes:
        kind: the kind of difference, such as "argument-refused".
        weight: how serious it is.
        tool: the tool's name.
        message: the difference, in one line.
        argument: a path into the arguments; '' for the tool as a whole.
        certainty: whether the schemas alone prove it.
        sources: where the tool is declared, as FILE:LINE.
        declared: the JSON Schema that the rows show to the policy, or None; a locked tool, if the lock is outdated.
        served: the JSON Schema that the server accepts, or None; or that tool as it is now.
        witness: arguments that one side accepts and the other refuses, or None.
        live: the result of trying the witness.
        detail: the live server's reply to the witness, or why it was not tried.
    """

    kind: str
    weight: Weight
    tool: str
    message: str
    argument: str = ""
    certainty: Certainty = Certainty.SHOWN
    sources: tuple[str, ...] = ()
    declared: Any = None
    served: Any = None
    witness: Any = None
    live: LiveAnswer = LiveAnswer.NOTHING_TO_TRY
    detail: str = ""

    @property
    def sides(self) -> tuple[str, str]:
        """What `declared` and `served` are, in a few words: of a lock, one side's tool then and now."""
        return ("Locked", "Now") if self.kind == DriftKind.LOCK_OUTDATED else ("Rows declare", "Server takes")

    @classmethod
    def of(cls, drift: Drift, live: Live = NOTHING_TRIED) -> "DriftRow":
        """The row for a drift; `live` is the result of trying its witness, which may lower its weight."""
        return cls(
            drift.kind.value,
            _weight(drift, live.said),
            drift.tool,
            drift.message,
            drift.path,
            drift.certainty,
            tuple(f"{source.path}:{source.line}" for source in drift.sources),
            drift.definition,
            drift.served,
            drift.witness.value if drift.witness else None,
            live.said,
            live.detail,
        )

    @property
    def breaks(self) -> bool:
        """Whether the drift spoils rollouts."""
        return self.weight is Weight.BREAKING

    def as_json(self, secrets: Secrets = NO_SECRETS) -> dict[str, Any]:
        """A JSON object of plain types with secrets removed; a missing schema or witness is left out."""
        free = {name: secrets.redact_json(getattr(self, name)) for name in _FREE}
        plain = {
            "weight": self.weight.value,
            "certainty": self.certainty.value,
            "live": self.live.value,
            "sources": list(self.sources),
        }
        return {name: value for name, value in (asdict(self) | free | plain).items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "DriftRow":
        """The inverse of `as_json`."""
        values = {
            "weight": Weight(data["weight"]),
            "certainty": Certainty(data["certainty"]),
            "live": LiveAnswer(data["live"]),
        }
        return cls(**{**data, **values, "sources": tuple(data["sources"])})


def _weight(drift: Drift, live: LiveAnswer) -> Weight:
    if drift.weight is not Weight.BREAKING:
        return drift.weight
    return _DEMOTED.get(live, Weight.BREAKING if drift.shown or live else Weight.WARNING)
