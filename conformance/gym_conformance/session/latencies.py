"""Latencies of good replies by endpoint, in constant memory however many requests there are."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

#: Samples to keep for one endpoint, and endpoints to tell apart.
KEPT: Final = 1_000
ENDPOINTS: Final = 64

#: The name under which all further endpoints are counted.
OTHERS: Final = "others"

_PICK: Final = random.Random(0)


@dataclass
class Samples:
    """Times in seconds: all of them up to a limit, then a fair sample; the count and the slowest are exact."""

    count: int = 0
    slowest: float = 0.0
    kept: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        """Add a time."""
        self.count += 1
        self.slowest = max(self.slowest, seconds)
        if len(self.kept) < KEPT:
            self.kept.append(seconds)
        elif (place := int(_PICK.random() * self.count)) < KEPT:
            self.kept[place] = seconds

    def merge(self, other: "Samples") -> None:
        """Add the times of another, each side weighted by its count."""
        total = self.count + other.count
        if len(self.kept) + len(other.kept) > KEPT:
            ours = round(KEPT * self.count / total)
            self.kept = [*_some(self.kept, ours), *_some(other.kept, KEPT - ours)]
        else:
            self.kept = [*self.kept, *other.kept]
        self.count, self.slowest = total, max(self.slowest, other.slowest)

    def as_json(self) -> list[Any]:
        """As a JSON array."""
        return [self.count, self.slowest, [round(one, 6) for one in self.kept]]


class Latencies:
    """The samples of each endpoint; endpoints beyond the first `ENDPOINTS` are counted together."""

    def __init__(self) -> None:
        self.of: dict[str, Samples] = {}

    def add(self, endpoint: str, seconds: float) -> None:
        """Add the time of one reply."""
        self._at(endpoint).add(seconds)

    def merge(self, data: Iterable[list[Any]]) -> None:
        """Add what `as_json` of another returned."""
        for endpoint, count, slowest, kept in data:
            self._at(endpoint).merge(Samples(count, slowest, list(kept)))

    def as_json(self) -> list[list[Any]]:
        """As a JSON array of arrays, one for each endpoint."""
        return [[endpoint, *samples.as_json()] for endpoint, samples in self.of.items()]

    def _at(self, endpoint: str) -> Samples:
        if (samples := self.of.get(endpoint)) is not None:
            return samples
        return self.of.setdefault(endpoint if len(self.of) < ENDPOINTS else OTHERS, Samples())


def _some(samples: list[float], count: int) -> list[float]:
    return samples if count >= len(samples) else _PICK.sample(samples, count)
