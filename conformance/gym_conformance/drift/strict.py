"""`strict: true` and what it requires of a schema.

Source: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas": every object forbids other
properties and requires all of its own; an optional argument is one that may be null; some keywords are not supported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gym_schemas import Way, pointer, walk

#: Keywords that the guide names as unsupported, and `oneOf`, which is not among the supported ones.
UNSUPPORTED = (
    *("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
    *("unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
)

_NAMED = 3

Parts = Sequence[tuple[Way, Mapping[str, Any]]]


class Problem(NamedTuple):
    """What is wrong with a definition: where in its parameters, what, and its extent if that is stated."""

    where: Way
    what: str
    extent: str = ""


def not_strict(schema: Mapping[str, Any]) -> Iterator[Problem]:
    """What in the schema is not strict: each rule once, with the first place and the number of places."""
    if "anyOf" in schema:
        yield Problem(("anyOf",), "strict is true, but its root is a union, which strict does not allow")
    parts = list(walk(schema))
    objects = [(way, node) for way, node in parts if _is_object(node)]
    open_ones = [way for way, node in objects if node.get("additionalProperties") is not False]
    yield from _rule(open_ones, "an object does not set additionalProperties to false")
    ways, names = _found(objects, _optional)
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    yield from _rule(ways, f"an object does not require {listed}: make an optional argument nullable instead")
    ways, keywords = _found(parts, lambda node: [key for key in UNSUPPORTED if key in node])
    yield from _rule(ways, f"it uses {', '.join(keywords)}")


def _found(parts: Parts, names_in: Callable[[Mapping[str, Any]], list[str]]) -> tuple[list[Way], list[str]]:
    """The parts of a schema that contain such names, and the distinct names."""
    found = {way: names for way, node in parts if (names := names_in(node))}
    return list(found), list(dict.fromkeys(name for names in found.values() for name in names))


def _rule(ways: list[Way], what: str) -> Iterator[Problem]:
    if ways:
        more = f" (in {len(ways)} places, first at {pointer(ways[0]) or 'the root'})" if len(ways) > 1 else ""
        yield Problem(ways[0], f"strict is true, and {what}", more)


def _optional(node: Mapping[str, Any]) -> list[str]:
    required = node.get("required") or ()
    return [name for name in node.get("properties", {}) if name not in required]


def _is_object(node: Mapping[str, Any]) -> bool:
    given = node.get("type")
    return "properties" in node or given == "object" or (isinstance(given, list) and "object" in given)
