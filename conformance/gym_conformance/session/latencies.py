"""How long good replies took, by endpoint: few numbers, however many requests."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

#: Samples that are kept for one endpoint, and endpoints that are told apart.
KEPT: Final = 1_000
ENDPOINTS: Final = 64

#: Stands for all endpoints beyond those.
OTHERS: Final = "others"

_PICK: Final = random.Random(0)


@dataclass
class Samples:
    """Times in seconds: all of them while they are few, then a fair choice; the count and the slowest are exact."""

    count: int = 0
    slowest: float = 0.0
    kept: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        """Take one more time."""
        self.count += 1
        self.slowest = max(self.slowest, seconds)
        if len(self.kept) < KEPT:
            self.kept.append(seconds)
        elif (place := int(_PICK.random() * self.count)) < KEPT:
            self.kept[place] = seconds

    def merge(self, other: "Samples") -> None:
        """Take the times of another; each has its part in the choice."""
        total = self.count + other.count
        if len(self.kept) + len(other.kept) > KEPT:
            ours = round(KEPT * self.count / total)
            self.kept = [*_some(self.kept, ours), *_some(other.kept, KEPT - ours)]
        else:
            self.kept = [*self.kept, *other.kept]
        self.count, self.slowest = total, max(self.slowest, other.slowest)

    def as_json(self) -> list[Any]:
        """A JSON array."""
        return [self.count, self.slowest, [round(one, 6) for one in self.kept]]


class Latencies:
    """The samples of each endpoint; endpoints beyond the first `ENDPOINTS` share one place."""

    def __init__(self) -> None:
        self.of: dict[str, Samples] = {}

    def add(self, endpoint: str, seconds: float) -> None:
        """Take the time of one reply."""
        self._at(endpoint).add(seconds)

    def merge(self, data: Iterable[list[Any]]) -> None:
        """Take in what `as_json` of another gave."""
        for endpoint, count, slowest, kept in data:
            self._at(endpoint).merge(Samples(count, slowest, list(kept)))

    def as_json(self) -> list[list[Any]]:
        """A JSON array of plain arrays, one for each endpoint."""
        return [[endpoint, *samples.as_json()] for endpoint, samples in self.of.items()]

    def _at(self, endpoint: str) -> Samples:
        if (samples := self.of.get(endpoint)) is not None:
            return samples
        return self.of.setdefault(endpoint if len(self.of) < ENDPOINTS else OTHERS, Samples())


def _some(samples: list[float], count: int) -> list[float]:
    return samples if count >= len(samples) else _PICK.sample(samples, count)
