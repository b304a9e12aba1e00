"""JSON values: equality, serialisation, and differences.

Equality is that of JSON Schema (core, section 4.2.2): 1 is 1.0, true is not 1.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeGuard

from jsonschema_rs.canonical.json import to_string

Json: TypeAlias = Any
"""None, bool, int, finite float, str, list of Json, or dict from str to Json."""

Way: TypeAlias = tuple[str | int, ...]
"""A place in a value: the keys and indices that lead to it."""

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
"""JSON Schema's types, simple values first."""


class Absent:
    """The type of `ABSENT`, which represents a missing value, unlike null."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = Absent()


@dataclass(frozen=True)
class Change:
    """One place where two values differ; `ABSENT` on the side that lacks it."""

    way: Way
    before: Json
    after: Json

    @property
    def path(self) -> str:
        """The place, as a JSON Pointer."""
        return pointer(self.way)

    def __str__(self) -> str:
        end = "is gone" if self.after is ABSENT else "is new" if self.before is ABSENT else "differs"
        return f"{self.path or 'the whole'} {end}"


def differences(before: Json, after: Json, way: Way = ()) -> Iterator[Change]:
    """The places that differ, in the order of `before`; arrays of different length differ as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), (*way, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, two) in enumerate(zip(before, after, strict=True)):
            if not (isinstance(one, str) and one == two):  # a page has thousands of words
                yield from differences(one, two, (*way, index))
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield Change(way, before, after)


def same(one: Json, two: Json) -> bool:
    """Whether two values are equal."""
    return bool(one == two) and next(differences(one, two), None) is None  # to Python, true equals 1


def distance(one: Json, two: Json) -> int:
    """The number of places where two values differ; places that only one of them has count twice."""
    if isinstance(one, list) and isinstance(two, list):
        return sum(map(distance, one, two)) + abs(len(one) - len(two))
    if isinstance(one, dict) and isinstance(two, dict):
        return sum(distance(one[key], two[key]) if key in one and key in two else 2 for key in one | two)
    return int(not same(one, two))


def without(value: Json, way: Way) -> Json:
    """The value without what is at that place; an item of an array becomes null."""
    if not way or not isinstance(value, dict | list):
        return None
    step, rest = way[0], way[1:]
    if isinstance(value, list):
        return [without(inner, rest) if index == step else inner for index, inner in enumerate(value)]
    if rest:
        return {key: without(inner, rest) if key == step else inner for key, inner in value.items()}
    return {key: inner for key, inner in value.items() if key != step}


def filled(value: Json, values: Mapping[Way, Any], way: Way = ()) -> Json:
    """The value with these in their places; where there is to be ABSENT, nothing is left."""
    if way in values:
        return values[way]
    if isinstance(value, dict):
        inner = {key: filled(each, values, (*way, key)) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each is not ABSENT}
    if isinstance(value, list):
        return [one for at, each in enumerate(value) if (one := filled(each, values, (*way, at))) is not ABSENT]
    return value


def pointer(way: Way) -> str:
    """The place as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in way)


def steps_of(pointer: str) -> list[str]:
    """The steps of a JSON Pointer; none if it leads to the whole."""
    steps = pointer.removeprefix("/").split("/") if pointer else []
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def first_step(pointer: str) -> str:
    """The first step of a JSON Pointer; '' if it leads to the whole."""
    return next(iter(steps_of(pointer)), "")


def text(value: Json) -> str:
    """The value as JSON on one line, ASCII only, with keys in their order."""
    return json.dumps(value)


def scalars(value: Json, way: Way = ()) -> Iterator[tuple[Json, Way]]:
    """All values within that have no parts, with their places."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalars(inner, (*way, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from scalars(inner, (*way, at))
    else:
        yield value, way


def mapped(
    value: Json,
    change: Callable[[Json, Way], Json],
    *,
    leaf: Callable[[Json], bool] = lambda _: False,
    keys: Callable[[str], str] = str,
    way: Way = (),
) -> Json:
    """The value with its keys changed, and its leaves (without parts, or by `leaf`), given each leaf and its place."""
    if isinstance(value, dict) and not leaf(value):
        found = value.items()
        return {keys(key): mapped(inner, change, leaf=leaf, keys=keys, way=(*way, key)) for key, inner in found}
    if isinstance(value, list):
        return [mapped(inner, change, leaf=leaf, keys=keys, way=(*way, at)) for at, inner in enumerate(value)]
    return change(value, way)


def name_of(way: Way) -> str:
    """The key at a place; for an item of a list, that of the list."""
    return next((step for step in reversed(way) if isinstance(step, str)), "")


def texts_in(value: Json) -> Iterator[str]:
    """All texts in the value, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)


def without_decimals(schema: Any) -> Json:
    """A schema of jsonschema_rs, which has decimals for bounds that are no doubles, with the nearest doubles.

    Raises:
        ValueError: one is beyond all doubles.
    """
    return json.loads(json.dumps(schema, default=float, allow_nan=False))


def shown(value: Json, limit: int = 60) -> str:
    """The value as JSON, with the middle cut out if it is longer than `limit` characters."""
    whole = text(value) if not isinstance(value, str) else text(value[: limit + 1])
    return whole if len(whole) <= limit else f"{whole[: limit - 15]} ... {whole[-10:]}"


def simplicity(value: Json) -> tuple[int, str]:
    """A sort key: shorter JSON is simpler; false is as short as true; null comes last, since it says least."""
    whole = text(value)
    return len(whole) - (value is False) + 5 * (value is None), whole


def identity(value: Json) -> str:
    """A text that is the same for two values if, and only if, they are equal."""
    try:
        return to_string(value)
    except ValueError:  # a lone surrogate
        return json.dumps(whole(value), sort_keys=True)


def is_numeric(value: Json) -> TypeGuard[int | float]:
    """Whether it is a number; to Python, a bool is one, too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def type_of(value: Json) -> str:  # noqa: PLR0911 (one case for each type)
    """The value's JSON Schema type; a float without a fraction is an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def whole(value: Json) -> Json:
    """The value with whole numbers as most clients write them: 1000.0 is an integer to JSON Schema, not to Python."""
    return mapped(value, lambda each, _: int(each) if isinstance(each, float) and each.is_integer() else each)
