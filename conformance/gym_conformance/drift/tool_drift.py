"""Drift: one difference between the tools that rows declare and the tools that a server serves, as a value."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gym_conformance.contract.dataset_rows import Source

#: How many places a drift or a definition keeps; the others are only counted.
SOURCES = 3


class Weight(StrEnum):
    """How much a drift matters: a breaking one spoils rollouts, a note only explains."""

    BREAKING = "breaking"
    WARNING = "warning"
    NOTE = "note"


class Certainty(StrEnum):
    """Whether a validator confirms the drift from both schemas; trying the live server is a further step.

    SHOWN: the witness satisfies one schema and not the other, even after every conversion that pydantic's lax mode
    might make. UNKNOWN: it was neither shown nor ruled out, so no gate should fail because of it before it was tried
    live.
    """

    SHOWN = "shown"
    UNKNOWN = "unknown"


class DriftKind(StrEnum):
    """The kind of drift; the ids are permanent."""

    TOOL_MISSING = "tool-missing"
    ARGUMENT_REFUSED = "argument-refused"
    ARGUMENT_IGNORED = "argument-ignored"
    LOCK_OUTDATED = "lock-outdated"
    RESULT_UNDECLARED = "result-undeclared"
    ROWS_DISAGREE = "rows-disagree"
    DEFINITION_UNSOUND = "definition-unsound"
    ARGUMENT_WIDENED = "argument-widened"
    ARGUMENT_UNOFFERED = "argument-unoffered"
    UNNAMED_REFUSED = "unnamed-argument-refused"
    ROUTE_UNUSED = "route-unused"
    DESCRIPTION_DIFFERS = "description-differs"

    @property
    def weight(self) -> Weight:
        """The weight of this kind; only an unsound definition may weigh less."""
        if self in (
            DriftKind.TOOL_MISSING,
            DriftKind.ARGUMENT_REFUSED,
            DriftKind.ARGUMENT_IGNORED,
            DriftKind.LOCK_OUTDATED,
        ):
            return Weight.BREAKING
        if self in (DriftKind.RESULT_UNDECLARED, DriftKind.ROWS_DISAGREE, DriftKind.DEFINITION_UNSOUND):
            return Weight.WARNING
        return Weight.NOTE


@dataclass(frozen=True)
class Witness:
    """A JSON value, wrapped because it may itself be None."""

    value: Any


@dataclass(frozen=True)
class Drift:
    """One difference.

    Attributes:
        kind: the kind; its id is permanent.
        tool: the tool's name.
        message: what differs, in an env author's words. It quotes schemas and values verbatim, so escape it.
        path: the argument, as a JSON pointer into the call's arguments with `*` for any index or key; "" is the call.
            For an unsound definition it points into its `parameters`.
        weight: breaking, warning or note.
        problem: for an unsound definition, what is wrong with it, regardless of where and how often; otherwise "".
        certainty: shown, or unknown if the comparison could not tell.
        sources: the first places that declare the tool.
        count: how many rows declare it.
        definition: the declared schema at `path`, or None.
        served: the server's schema at `path`, or None.
        witness: a call's arguments, or None. Refused: the definition allows them, the server refuses them. Ignored:
            they contain the argument. Widened, unoffered: the server accepts them, the definition does not allow them.
        counterpart: arguments that both sides accept and that differ as little as possible; for an ignored argument,
            only in it.
    """

    kind: DriftKind
    tool: str
    message: str
    path: str = ""
    weight: Weight = Weight.BREAKING
    problem: str = ""
    certainty: Certainty = Certainty.SHOWN
    sources: tuple[Source, ...] = ()
    count: int = 0
    definition: Any = None
    served: Any = None
    witness: Witness | None = None
    counterpart: Witness | None = None

    @property
    def shown(self) -> bool:
        """Whether the schemas prove it."""
        return self.certainty is Certainty.SHOWN

    def __str__(self) -> str:
        """What it is about: the tool, and the argument or the place in its definition."""
        return self.tool + self.path
