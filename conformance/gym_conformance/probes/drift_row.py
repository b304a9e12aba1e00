"""Drift as the reports show it: a difference between schemas, and what the live server said to its witness."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from gym_conformance.drift.tool_drift import Certainty, Drift, Weight
from gym_conformance.probes.live_answer import NOTHING_TRIED, Live, LiveAnswer
from gym_conformance.redaction import NO_SECRETS, Secrets

#: What a breaking drift weighs that the live server does not confirm: nothing is claimed that was not seen.
_DEMOTED: Final = {LiveAnswer.NOT_CONFIRMED: Weight.NOTE, LiveAnswer.NOT_TRIED: Weight.WARNING}

#: What holds words of the rows or of the server.
_FREE: Final = ("tool", "message", "argument", "declared", "served", "witness", "detail")


@dataclass(frozen=True)
class DriftRow:
    """One row of the drift table.

    Attributes:
        kind: what sort of difference, such as "argument-refused".
        weight: how much it weighs.
        tool: the tool's name.
        message: the difference, in one line.
        argument: a path into the arguments; '' for the tool as a whole.
        certainty: whether the schemas alone bear it out.
        sources: where the tool is declared, FILE:LINE each.
        declared: the JSON Schema that the rows show to the policy; None where there is none.
        served: the JSON Schema that the server takes; None where there is none.
        witness: arguments that one side accepts and the other refuses; None where there are none.
        live: what came of the witness.
        detail: what the live server said to the witness, or why it was not asked.
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

    @classmethod
    def of(cls, drift: Drift, live: Live = NOTHING_TRIED) -> "DriftRow":
        """The row for a drift; `live` says what came of its witness, and may make it weigh less."""
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
        """Whether it spoils rollouts."""
        return self.weight is Weight.BREAKING

    def as_json(self, secrets: Secrets = NO_SECRETS) -> dict[str, Any]:
        """A JSON object of plain types, without the secrets; a schema or witness that is not there is left out."""
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
