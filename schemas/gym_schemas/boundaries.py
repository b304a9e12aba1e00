"""Boundary values of a schema: a limited, deterministic enumeration.

A value is first made by the simplest choices, then by choices that differ from these in one decision, and so on for
decisions that only arise then. So the number of values is linear in the number of arguments, not exponential. The
enumeration is incomplete: it may yield nothing for a schema that admits values.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from jsonschema_rs import CanonicalSchema
from jsonschema_rs.canonical.schema import clone

from gym_schemas.choices import Choices, Simplest
from gym_schemas.json_values import ABSENT, Json, Way, identity, is_numeric, type_of
from gym_schemas.making import Maker, NoValue, possible
from gym_schemas.schema_reading import Parameters, fits, read
from gym_schemas.tree import Schema, walk

T = TypeVar("T")

#: How many values to yield, for objects and for other types, and how many combinations of choices to try for them.
OBJECTS, OTHERS, TRIED = 400, 32, 1_200

#: How many combinations to try if no value is known, since a hint may be one.
UNLIKELY = 64

#: How many constants of one schema to try in another, and how long texts may be.
_CONSTANTS, _LONGEST = 12, 3_000
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_EXACT = 2**52  # above this a float has no fraction
_TEXTS = (
    *("", "a", "0", "1.5", "true", "A b", "\u00e9", "a@example.com", "https://example.com/a", "2024-02-29"),
    *("2024-02-29T12:30:00Z", "12:30:00Z", "P1D", "6fa459ea-ee8a-4ca4-894e-db77e160355e", "127.0.0.1", "::1"),
    *("example.com", "/a", "a-b_c", "ABC", "12345"),
)
_ANYTHING: tuple[Json, ...] = ("", 0, False, [], {}, "a", 0.5, True, ["a"], {"a": "a"}, None)
_NUMBERS = (0, 1, -1, 2, 0.5, -0.5, 0.3, 10, 100, 1e3, 12345678901)


def boundary_values(schema: Parameters, hints: Iterable[Json] = ()) -> Iterator[Json]:
    """Distinct values that a schema admits, simple ones first; `hints` are scalars to try everywhere."""
    reading = read(schema)
    tried = (*hints, *constants(reading.source), *_TEXTS, *_NUMBERS)
    fitting = _Fitting(
        {
            "string": list(dict.fromkeys(hint for hint in tried if isinstance(hint, str))),
            "number": list(dict.fromkeys(hint for hint in tried if isinstance(hint, int | float))),
        }
    )
    seen: set[str] = set()
    most = OTHERS
    waiting: deque[dict[_Decision, int]] = deque([{}])
    # looked for only once, at the root: if there is no smallest value, each try would look for it again
    tries = TRIED if possible(reading, reading.root) else UNLIKELY
    for _ in range(tries):
        if not waiting or len(seen) >= most:
            return
        choices = _Tried(waiting.popleft(), fitting)
        try:
            value = Maker(reading, choices).make(reading.root)
        except NoValue:
            continue
        finally:
            waiting.extend(islice(choices.further(), TRIED - len(waiting)))
        if (name := identity(value)) not in seen and reading.admits(value):
            seen.add(name)
            most = max(most, OBJECTS if isinstance(value, dict) else 0)
            yield value


def constants(schema: Schema) -> list[Json]:
    """The constants in a schema: members of enums, examples, defaults, and the numbers and texts at its bounds."""
    texts: dict[str, None] = {}
    numbers: dict[int | float, None] = {}
    for _, node in walk(schema):
        listed = [one for key in ("enum", "examples") if isinstance(node.get(key), list) for one in node[key]]
        named = (*listed, node.get("const"), node.get("default"))
        texts |= dict.fromkeys(value for value in named if isinstance(value, str))
        numbers |= dict.fromkeys(value for value in named if is_numeric(value))
        for bound in filter(is_numeric, map(node.get, _BOUNDS)):
            halves = (bound + 0.5, bound - 0.5) if abs(bound) < _EXACT else ()
            numbers |= dict.fromkeys((bound, bound + 1, bound - 1, *halves))
        for length in map(node.get, ("minLength", "maxLength")):
            if isinstance(length, int) and length < _LONGEST:
                texts |= dict.fromkeys(("a" * length, "a" * (length + 1), "a" * max(0, length - 1)))
    return [*list(texts)[:_CONSTANTS], *list(numbers)[:_CONSTANTS]]


class _Fitting:
    """The hints that a node admits, computed once for each node."""

    def __init__(self, hints: dict[str, list[Json]]) -> None:
        self._hints = hints
        self._found: dict[CanonicalSchema, list[Json]] = {}

    def of(self, node: CanonicalSchema, type_name: str) -> list[Json]:
        if node not in self._found:
            self._found[node] = [ABSENT, *(hint for hint in self._hints[type_name] if fits(node, hint))]
        return self._found[node]


_Decision = tuple[Way, int]
"""Where in the value, and the how manieth there."""


class _Tried(Choices):
    """Makes the given decisions, and otherwise the simplest. Parts that the last one does not affect are reused."""

    def __init__(self, given: dict[_Decision, int], hints: _Fitting) -> None:
        super().__init__()
        self._given = given
        self._scope: Way = next(reversed(given))[0] if given else ()
        self._hints = hints
        self._made: dict[_Decision, int] = {}
        self._counts: dict[Way, int] = {}
        self._whole = False

    def further(self) -> Iterator[dict[_Decision, int]]:
        """The alternative decisions within the part of the value that the last given one made."""
        if self._whole:  # variations inside are tried with that one alone
            return
        after = [*self._made]
        last = next(reversed(self._given), None)
        after = after[after.index(last) + 1 :] if last in self._made else after if last is None else []
        within = [one for one in after if one[0][: len(self._scope)] == self._scope and one not in self._given]
        for option in range(1, max((self._made[one] for one in within), default=0)):
            yield from ({**self._given, one: option} for one in within if option < self._made[one])

    def settled(self) -> bool:
        """Whether nothing is decided at this place or further inside."""
        way, scope = self.way, self._scope
        apart = way[: len(scope)] != scope and scope[: len(way)] != way
        return apart and not any(one[0][: len(way)] == way for one in self._given)

    def pick(self, options: Sequence[T]) -> T:
        number = self._counts.get(self.way, 0)
        self._counts[self.way] = number + 1
        decision = (self.way, number)
        self._made[decision] = min(len(options), OTHERS)
        return options[min(self._given.get(decision, 0), len(options) - 1)]

    def letter(self, members: str) -> str:
        return members[0]

    def whole(self, low: int, high: int) -> int:
        nearest = min(max(low, 0), high)
        near = (nearest, nearest + 1, nearest - 1, low, low + 1, high, high - 1)
        return self.pick(list(dict.fromkeys(number for number in near if low <= number <= high)))

    def fraction(self, low: float, high: float) -> float:
        middle = low / 2 + high / 2
        near = (min(max(low, 0.5), high), middle, low, high, min(max(low, -0.5), high))
        return self.pick(list(dict.fromkeys(near)))

    def count(self, low: int, high: int) -> int:
        return self.pick(list(dict.fromkeys(min(number, high) for number in (low, low + 1, low + 2, high))))

    def text(self, low: int, high: int | None) -> str:
        sizes = [low, low + 1, *([high] if high is not None and high <= _LONGEST else [])]
        made = [filler * size for size in sizes for filler in "a0" if high is None or size <= high]
        return self.pick(list(dict.fromkeys(made)))

    def some(self, names: Sequence[str], low: int, high: int) -> list[str]:
        if len(names) > 1 and self.pick((False, True)):
            self._whole = True
            return [*names[: max(0, high)]]
        at, chosen = self.way, set[str]()
        if at[: len(self._scope)] == self._scope:
            for name in names:
                self.way = (*at, name)
                chosen |= {name} if self.pick((False, True)) else set()
            self.way = at
        else:
            for way, number in self._given:
                if number == 0 and way[:-1] == at and way[-1:] and way[-1] in names:
                    self._made[way, 0], self._counts[way] = 2, 1
                    chosen.add(str(way[-1]))
        chosen |= set([name for name in names if name not in chosen][: max(0, low - len(chosen))])
        return [name for name in names if name in chosen][: max(0, high)]

    def anything(self, types: Sequence[str]) -> Json:
        return clone(self.pick([value for value in _ANYTHING if type_of(value) in types]))

    def for_names(self) -> Choices:
        return Simplest()

    def hint(self, node: CanonicalSchema, type_name: str) -> Json:
        return self.pick(self._hints.of(node, type_name))
