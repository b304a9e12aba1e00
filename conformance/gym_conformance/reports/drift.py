"""Drift as the reports show it."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Weight(StrEnum):
    """How much a difference between two schemas weighs."""

    BREAKING = "breaking"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Drift:
    """One difference between the tools that rows declare and those that the server serves.

    Attributes:
        kind: what sort of difference, such as "argument refused".
        weight: how much it weighs.
        tool: the tool's name.
        message: the difference, in one line.
        argument: a path into the arguments; '' for the tool as a whole.
        sources: where both sides were read: FILE:LINE, or a document of the server.
        declared: the JSON Schema that the rows show to the policy; None where there is none.
        served: the JSON Schema that the server takes; None where there is none.
        witness: arguments that one side accepts and the other refuses; None where there are none.
        live: "confirmed", "not confirmed" or "not tried"; '' where nothing is to be tried.
        detail: what the live server said to the witness, or why it was not asked.
    """

    kind: str
    weight: Weight
    tool: str
    message: str
    argument: str = ""
    sources: tuple[str, ...] = ()
    declared: Any = None
    served: Any = None
    witness: Any = None
    live: str = ""
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """A JSON object of plain types; a schema or witness that is not there is left out."""
        data = asdict(self) | {"weight": self.weight.value, "sources": list(self.sources)}
        return {name: value for name, value in data.items() if value is not None}
