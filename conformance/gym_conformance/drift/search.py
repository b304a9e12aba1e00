"""The search for witnesses: values that one schema allows and another refuses, the smallest for each place."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from gym_conformance.drift.argument_places import Places
from gym_schemas import Acceptance, Schema, SchemaRefusal, Way, boundary_values, constants, distance, identity, subtract

#: A bound on the properties of all values tried while making refused ones smaller: of thousands, each would be removed
#: in turn.
_WORK = 1_000_000

#: The refusals of a value; none if it is accepted.
Refusals = Callable[[Any], list[SchemaRefusal]]

#: Called between the steps of a search, which it ends by raising: a thousand arguments may take a minute.
GoOn = Callable[[], object]


def without_end() -> None:
    """Let a search take as long as it needs."""


@dataclass(frozen=True)
class RefusedValue:
    """One place where a value is refused: the smallest such value, and why."""

    path: str
    way: Way
    refusal: SchemaRefusal
    value: Any


def candidates(source: Schema, targets: Iterable[Schema], go_on: GoOn = without_end) -> list[Any]:
    """Distinct objects that `source` allows, first those that a target is likely to refuse."""
    allowed = Acceptance(source)
    targets = list(targets)
    gaps = [gap for target in targets if (gap := subtract(source, target)) is not None]
    hints = constants(targets[-1])  # the two schemas most likely differ at these
    found: dict[str, Any] = {}
    for schema in (*gaps, source):
        for value in boundary_values(schema, hints):
            go_on()
            if isinstance(value, dict) and allowed.accepts(value):
                found.setdefault(identity(value), value)
    return list(found.values())


def refused(
    values: Iterable[Any], source: Schema, places: Places, refusals_of: Refusals, go_on: GoOn = without_end
) -> dict[str, RefusedValue]:
    """For each place, the smallest of the `source` values refused there, minimized."""
    allowed = Acceptance(source)
    found: dict[str, tuple[tuple[int, int, str], RefusedValue]] = {}
    for value in values:
        go_on()
        refusals = refusals_of(value)
        rank = (len(refusals), *_size(value))
        for refusal in refusals:
            path = _path(places, refusal)
            if path not in found or rank < found[path][0]:
                found[path] = rank, RefusedValue(path, refusal.way, refusal, value)
    work = _Work(go_on)
    return {path: _smaller(one, places, allowed, refusals_of, work) for path, (_, one) in sorted(found.items())}


def nearest(value: Any, others: Iterable[Any]) -> Any | None:
    """The one of the others that differs least from the value; None if there are none."""
    return min(others, key=lambda other: (distance(value, other), *_size(other)), default=None)


def _path(places: Places, refusal: SchemaRefusal) -> str:
    return places.path(refusal.way, literal=refusal.missing or refusal.unexpected)


def _size(value: Any) -> tuple[int, str]:
    text = json.dumps(value, sort_keys=True)
    return len(text), text


@dataclass
class _Work:
    """The work left to spend."""

    go_on: GoOn
    left: int = _WORK

    def allows(self, value: Any) -> bool:
        """Whether enough is left for one more value."""
        self.go_on()
        self.left -= 1 + (len(value) if isinstance(value, dict | list) else 0)
        return self.left > 0


def _smaller(
    one: RefusedValue, places: Places, allowed: Acceptance, refusals_of: Refusals, work: _Work
) -> RefusedValue:
    """Remove whatever the refusal does not need, as far as the work allows."""
    shrunk = True
    while shrunk:
        shrunk = False
        for value in takewhile(work.allows, _shorter(one.value)):
            again = _refused_there(one, refusals_of(value), places) if allowed.accepts(value) else None
            if again is not None:
                one, shrunk = RefusedValue(one.path, again.way, again, value), True
                break
    return one


def _refused_there(one: RefusedValue, refusals: list[SchemaRefusal], places: Places) -> SchemaRefusal | None:
    """The first refusal at the same place, trying the same path first, since it usually leads there."""
    ordered = sorted(refusals, key=lambda refusal: refusal.way != one.way)
    return next((refusal for refusal in ordered if _path(places, refusal) == one.path), None)


def _shorter(value: Any) -> Iterator[Any]:
    """The value with one property or item removed, anywhere in it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: kept for name, kept in value.items() if name != key}
            yield from ({**value, key: less} for less in _shorter(inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value[:index] + value[index + 1 :]
            yield from ([*value[:index], less, *value[index + 1 :]] for less in _shorter(inner))
