"""The search for witnesses: values that one schema allows and another refuses, the smallest for each place."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gym_conformance.drift.place import Places
from gym_conformance.drift.witnesses import Witnesses
from gym_schemas import Acceptance, Refusal, Schema, Way, distance, rewrite, subtract, walk

#: How many values are tried for one tool, and how many constants of the one schema are tried in the other.
TRIED, HINTS = 3_000, 12
_EXACT = 2**52


#: What is against a value; nothing where it is taken.
Refusals = Callable[[Any], list[Refusal]]


@dataclass(frozen=True)
class Refused:
    """One place where a value is refused: the smallest such value, and why."""

    path: str
    way: Way
    refusal: Refusal
    value: Any


def candidates(source: Schema, targets: Iterable[Schema], witnesses: Witnesses) -> list[Any]:
    """Distinct objects that `source` allows, first those that a target is likely to refuse."""
    allowed = Acceptance(source)
    targets = list(targets)
    gaps = [gap for target in targets if (gap := subtract(source, target)) is not None]
    found: dict[str, Any] = {}
    for schema in (*gaps, _hinted(source, targets[-1])):
        for value in islice(witnesses(schema), TRIED):
            if isinstance(value, dict) and allowed.accepts(value):
                found.setdefault(json.dumps(value, sort_keys=True), value)
    return list(found.values())


def refused(values: Iterable[Any], source: Schema, places: Places, refusals_of: Refusals) -> dict[str, Refused]:
    """For each place, the smallest of the values of `source` that are refused there, made smaller still."""
    allowed = Acceptance(source)
    found: dict[str, tuple[tuple[int, int, str], Refused]] = {}
    for value in values:
        refusals = refusals_of(value)
        for refusal in refusals:
            path = _path(places, refusal)
            rank = (len(refusals), *_size(value))
            if path not in found or rank < found[path][0]:
                found[path] = rank, Refused(path, refusal.way, refusal, value)
    return {path: _smaller(one, places, allowed, refusals_of) for path, (_, one) in sorted(found.items())}


def nearest(value: Any, others: Iterable[Any]) -> Any | None:
    """The one of the others that differs least from the value, None where there is none."""
    return min(others, key=lambda other: (distance(value, other), *_size(other)), default=None)


def _path(places: Places, refusal: Refusal) -> str:
    return places.path(refusal.way, literal=refusal.missing or refusal.unexpected)


def _size(value: Any) -> tuple[int, str]:
    text = json.dumps(value, sort_keys=True)
    return len(text), text


def _smaller(one: Refused, places: Places, allowed: Acceptance, refusals_of: Refusals) -> Refused:
    """Leave out whatever the refusal does not need."""
    shrunk = True
    while shrunk:
        shrunk = False
        for value in _shorter(one.value):
            again = next((r for r in refusals_of(value) if _path(places, r) == one.path), None)
            if again is not None and allowed.accepts(value):
                one, shrunk = Refused(one.path, again.way, again, value), True
                break
    return one


def _shorter(value: Any) -> Iterator[Any]:
    """The value with one property or one item less, anywhere in it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: kept for name, kept in value.items() if name != key}
            yield from ({**value, key: less} for less in _shorter(inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value[:index] + value[index + 1 :]
            yield from ([*value[:index], less, *value[index + 1 :]] for less in _shorter(inner))


def _hinted(source: Schema, target: Schema) -> Schema:
    """The source with constants of the target as examples: where the two part, it is at these."""
    texts, numbers = _constants(target)

    def hint(node: dict[str, Any]) -> Schema:
        given = node.get("type")
        types = set(given) if isinstance(given, list) else {given}
        more = [*(texts if types & {"string", None} else []), *(numbers if types & {"integer", "number", None} else [])]
        if not more or node.keys() & {"enum", "const", "$ref", "properties", "anyOf", "oneOf", "allOf"}:
            return node
        return {**node, "examples": [*(node.get("examples") or ()), *more]}

    return rewrite(source, hint)


def _constants(schema: Schema) -> tuple[list[str], list[int | float]]:
    texts: dict[str, None] = {}
    numbers: dict[int | float, None] = {}
    for _, node in walk(schema):
        for value in (*_listed(node.get("enum")), node.get("const")):
            if isinstance(value, str):
                texts[value] = None
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            if isinstance(bound := node.get(key), (int, float)):
                numbers |= dict.fromkeys((bound, bound - 1, bound + 1, *([bound + 0.5] if abs(bound) < _EXACT else [])))
        for key in ("minLength", "maxLength"):
            if isinstance(length := node.get(key), int) and length < TRIED:
                texts |= dict.fromkeys(("a" * length, "a" * (length + 1), "a" * max(0, length - 1)))
    return list(texts)[:HINTS], list(numbers)[:HINTS]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
