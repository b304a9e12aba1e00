"""`strict: true` and what it demands of a schema.

Source: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas": every object forbids other
properties and requires all of its own; an optional argument is one that may be null; some keywords are not supported.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gym_schemas import Way, pointer, walk

#: Keywords that the guide names as unsupported, and `oneOf`, which is not among the supported ones.
UNSUPPORTED = (
    *("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
    *("unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
)

_NAMED = 3


class Problem(NamedTuple):
    """What is wrong with a definition: where in its parameters, what, and how far it goes where that is to be said."""

    where: Way
    what: str
    extent: str = ""


def not_strict(schema: Mapping[str, Any]) -> Iterator[Problem]:
    """What in the schema is not strict, each rule once: the first place, and in how many."""
    if "anyOf" in schema:
        yield Problem(("anyOf",), "strict is true, but its root is a union, which strict does not allow")
    parts = list(walk(schema))
    objects = [(way, node) for way, node in parts if _is_object(node)]
    optional = {way: _optional(node) for way, node in objects if _optional(node)}
    unsupported = {way: [key for key in UNSUPPORTED if key in node] for way, node in parts}
    yield from _rule(
        [way for way, node in objects if node.get("additionalProperties") is not False],
        "an object does not set additionalProperties to false",
    )
    names = list(dict.fromkeys(name for several in optional.values() for name in several))
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    yield from _rule(list(optional), f"an object does not require {listed}: make an optional argument nullable instead")
    keywords = dict.fromkeys(key for several in unsupported.values() for key in several)
    yield from _rule([way for way, several in unsupported.items() if several], f"it uses {', '.join(keywords)}")


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
