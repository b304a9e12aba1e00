"""The sources of the decisions that select one value of the many that a schema admits.

`Maker` asks a `Choices` at each step. `Simplest` always takes the simplest option, `Chance` asks a seeded
`random.Random`, `boundaries.Tried` follows a limited enumeration, and `strategies.Drawn` lets Hypothesis draw and
shrink.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import TypeVar

from jsonschema_rs import CanonicalSchema

from gym_schemas.json_values import ABSENT, Json, Way

T = TypeVar("T")

_WORDS = ("apple", "Paris", "blue", "seven", "note", "x")
_SPREAD = 10


class Choices(ABC):
    """A series of decisions. The first of several options is the simplest."""

    tries = 1
    """How often a part that its schema refuses is made anew; 1 where that would come to the same."""

    def __init__(self) -> None:
        self.way: Way = ()
        """The place in the value that is being made."""

    @abstractmethod
    def whole(self, low: int, high: int) -> int:
        """An integer from `low` to `high`."""

    @abstractmethod
    def fraction(self, low: float, high: float) -> float:
        """A number from `low` to `high`, with a fraction if possible."""

    @abstractmethod
    def text(self, low: int, high: int | None) -> str:
        """Any text with a length in this range."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.whole(0, len(options) - 1)]

    def count(self, low: int, high: int) -> int:
        """How many of something to make."""
        return self.whole(low, high)

    def letter(self, members: str) -> str:
        """One of the characters."""
        return self.pick(members)

    def some(self, names: Sequence[str], low: int, high: int) -> list[str]:
        """Between `low` and `high` of the names, in their order."""
        chosen: set[str] = set()
        for start in range(0, len(names), 16):
            part = names[start : start + 16]
            mask = self.whole(0, 2 ** len(part) - 1)
            chosen |= {name for bit, name in enumerate(part) if mask >> bit & 1}
        chosen |= set([name for name in names if name not in chosen][: max(0, low - len(chosen))])
        return [name for name in names if name in chosen][:high]

    def anything(self, _types: Sequence[str]) -> Json:
        """A value of one of the types, with no other constraints; `ABSENT` leaves it to the maker."""
        return ABSENT

    def for_names(self) -> "Choices":
        """The choices for the name of a property that the schema does not name."""
        return self

    def settled(self) -> bool:
        """Whether nothing is to be decided at this place, so that the smallest value will do."""
        return False

    def padding(self) -> str:
        """Text to add before or after a match of a pattern that has no anchor there."""
        return ""

    def hint(self, _node: CanonicalSchema, _type: str) -> Json:
        """A scalar of the type to try, which the node admits; `ABSENT` for none."""
        return ABSENT


class Simplest(Choices):
    """The simplest option at each step, or the one a few steps after it."""

    def __init__(self, more: int = 0) -> None:
        super().__init__()
        self._more = more

    def whole(self, low: int, high: int) -> int:
        nearest = min(max(low, 0), high)
        return nearest + self._more if nearest + self._more <= high else max(low, nearest - self._more)

    def fraction(self, low: float, high: float) -> float:
        nearest = Fraction(min(max(low, 0.0), high))
        for unit in (1, 2, 10, 100, 1000):
            for number in (
                (math.ceil(nearest * unit) + self._more) / unit,
                (math.floor(nearest * unit) - self._more) / unit,
            ):
                if low <= number <= high and not (number.is_integer() and unit > 1):
                    return number
        return low / 2 + high / 2

    def text(self, low: int, high: int | None) -> str:
        return "0" * (low + self._more if high is None else min(low + self._more, high))

    def some(self, names: Sequence[str], low: int, high: int) -> list[str]:
        return [*names[: max(0, min(low + self._more, high))]]


class Chance(Choices):
    """The choices of a seeded random number generator: everyday words, and numbers close to zero."""

    tries = 4

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def count(self, low: int, high: int) -> int:
        return self._random.randint(low, min(high, low + 3))

    def whole(self, low: int, high: int) -> int:
        nearest = min(max(low, 0), high)
        if high > nearest:
            return self._random.randint(nearest, min(high, nearest + _SPREAD))
        return self._random.randint(max(low, nearest - _SPREAD), nearest)

    def fraction(self, low: float, high: float) -> float:
        nearest = min(max(low, 0.0), high)
        low, high = (
            (nearest, min(high, nearest + _SPREAD)) if high > nearest else (max(low, nearest - _SPREAD), nearest)
        )
        number = low + (high - low) * self._random.randint(0, 40) / 40
        return min(max(number, low), high)

    def text(self, low: int, high: int | None) -> str:
        return self._random.choice(_WORDS).ljust(low, "x")[:high]

    def some(self, names: Sequence[str], low: int, high: int) -> list[str]:
        likely = {name for name in names if self._random.random() < 0.5}  # noqa: PLR2004 (either)
        likely |= set(names[: max(0, low - len(likely))])
        return [name for name in names if name in likely][:high]
