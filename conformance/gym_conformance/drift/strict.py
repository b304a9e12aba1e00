"""`strict: true` and what it demands of a schema.

Source: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas": every object forbids other
properties and requires all of its own; an optional argument is one that may be null; some keywords are not supported.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gym_conformance.drift.schema import walk

#: Keywords that the guide names as unsupported, and `oneOf`, which is not among the supported ones.
UNSUPPORTED = (
    *("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
    *("unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
)


def not_strict(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What in the schema is not strict: where, and what."""
    if "anyOf" in schema:
        yield ("anyOf",), "strict is true, and its root is a union, which strict does not allow"
    for way, node in walk(schema):
        if _is_object(node):
            yield from _object(way, node)
        unsupported = [keyword for keyword in UNSUPPORTED if keyword in node]
        if unsupported:
            yield way, f"strict is true, and strict does not support {', '.join(unsupported)}"


def _object(way: tuple[str, ...], node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    if node.get("additionalProperties") is not False:
        yield way, "strict is true, and it does not set additionalProperties to false"
    required = node.get("required") or ()
    optional = [name for name in node.get("properties", {}) if name not in required]
    if optional:
        yield way, f"strict is true, and it does not require {', '.join(optional)}: make them required and nullable"


def _is_object(node: Mapping[str, Any]) -> bool:
    given = node.get("type")
    return "properties" in node or given == "object" or (isinstance(given, list) and "object" in given)
