"""Latency as the reports show it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Latency:
    """How long requests to one endpoint took: at least one sample, in seconds, ascending."""

    endpoint: str
    seconds: tuple[float, ...]

    def quantile(self, part: float) -> float:
        """The sample that `part` of all samples (0 to 1) do not exceed."""
        return self.seconds[min(int(part * len(self.seconds)), len(self.seconds) - 1)]

    def as_json(self) -> dict[str, Any]:
        """A JSON object of plain types."""
        return {"endpoint": self.endpoint, "seconds": list(self.seconds)}
