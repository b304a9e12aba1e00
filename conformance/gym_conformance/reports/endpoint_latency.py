"""Latencies in the form that reports show."""

from dataclasses import dataclass
from typing import Any, Final

from gym_conformance.session.latencies import Samples

#: The quantiles in the JSON report, in milliseconds.
_TIMES: Final = {"median_ms": 0.5, "p95_ms": 0.95, "max_ms": 1.0}


@dataclass(frozen=True)
class Latency:
    """Latency of one endpoint's good replies.

    Attributes:
        endpoint: method and path.
        seconds: at least one sample, ascending; of many replies a sample of them, with the slowest.
        count: how many replies there were; 0 if `seconds` has them all.
    """

    endpoint: str
    seconds: tuple[float, ...]
    count: int = 0

    @classmethod
    def of(cls, endpoint: str, samples: Samples) -> "Latency":
        """Made from the samples of a run."""
        more = () if round(samples.slowest, 6) in samples.kept else (samples.slowest,)
        return cls(endpoint, tuple(sorted((*samples.kept, *more))), samples.count)

    @property
    def requests(self) -> int:
        """How many replies there were."""
        return self.count or len(self.seconds)

    def quantile(self, part: float) -> float:
        """The sample that a `part` (0 to 1) of all samples do not exceed."""
        return self.seconds[min(int(part * len(self.seconds)), len(self.seconds) - 1)]

    def as_json(self) -> dict[str, Any]:
        """As a JSON object."""
        times = {name: round(self.quantile(part) * 1000, 3) for name, part in _TIMES.items()}
        return {"endpoint": self.endpoint, "count": self.requests, **times, "seconds": list(self.seconds)}
