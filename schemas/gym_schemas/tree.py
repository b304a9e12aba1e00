"""JSON Schemas as trees: traversing them, changing them, and following their references."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from gym_schemas.json_values import Way, first_step

Schema: TypeAlias = Any
"""An object or a bool."""

#: Keywords whose value contains schemas: itself, in a list, or by name. `items` was a list before 2020-12.
SINGLE = frozenset(
    {
        *("items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
        *("unevaluatedProperties", "unevaluatedItems"),
    }
)
LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})

#: Keywords that do not constrain the value.
ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"),
        *("discriminator", "$schema", "$id", "externalDocs", "xml", "$defs", "definitions"),
    }
)
_DEFS = "#/$defs/"


def walk(schema: Schema) -> Iterator[tuple[Way, dict[str, Any]]]:
    """This schema and all object schemas inside it, outer ones first, each with its path from the root."""
    waiting: list[tuple[Way, Schema]] = [((), schema)]
    while waiting:
        way, node = waiting.pop()
        if isinstance(node, dict):
            yield way, node
            waiting += reversed([((*way, *step), inner) for step, inner in _children(node)])


def takes_all(schema: Schema) -> bool:
    """Whether it admits every value."""
    return schema is True or (isinstance(schema, dict) and schema.keys() <= ANNOTATIONS)


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    """The properties that an object's schema names, each with its schema; empty if it is not such a schema."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, dict) else {}


def _children(node: Mapping[str, Any]) -> Iterator[tuple[Way, Schema]]:
    for key, value in node.items():
        if key in SINGLE and isinstance(value, dict):
            yield (key,), value
        elif key in LISTED and isinstance(value, list):
            yield from (((key, index), inner) for index, inner in enumerate(value))
        elif key in NAMED and isinstance(value, dict):
            yield from (((key, name), inner) for name, inner in value.items())


def rewrite(schema: Schema, change: Callable[[dict[str, Any]], Schema]) -> Schema:
    """A copy in which every object schema, inner ones first, was passed to `change`.

    Raises:
        RecursionError: it is nested too deep (which `size.too_large` reports beforehand).
    """
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for key, value in schema.items():
        if key in SINGLE and isinstance(value, dict):
            made[key] = rewrite(value, change)
        elif key in LISTED and isinstance(value, list):
            made[key] = [rewrite(inner, change) for inner in value]
        elif key in NAMED and isinstance(value, dict):
            made[key] = {name: rewrite(inner, change) for name, inner in value.items()}
    return change(made)


def lookup(document: Any, reference: str) -> Schema | None:
    """The target of a `#/...` reference in a document; None if there is none, or it is not a schema."""
    place = document
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(place, dict):
            place = place.get(name)
        elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place if isinstance(place, dict | bool) else None


class Document:
    """An upgraded schema: its root without `$defs`, and its `$defs`, to which every reference leads."""

    def __init__(self, schema: Schema) -> None:
        given = schema if isinstance(schema, dict) else {}
        self.root: Schema = {key: value for key, value in given.items() if key != "$defs"} if given else schema
        self.defs: Mapping[str, Any] = given.get("$defs") or {}
        self._reached: dict[str, frozenset[str]] = {}

    @cached_property
    def recursive(self) -> bool:
        """Whether anything in it is referred to."""
        return bool(self._names(self.root)) or any(map(self._names, self.defs.values()))

    def resolve(self, node: Schema) -> Schema:
        """The node itself, or the target of its `$ref`, combined with the keywords beside the reference."""
        seen = set()
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            if reference in seen or not reference.startswith(_DEFS):
                return True
            seen.add(reference)
            found = lookup({"$defs": self.defs}, reference)
            beside = {key: value for key, value in node.items() if key != "$ref"}
            node = {**found, **beside} if isinstance(found, dict) else True if found is None else found
        return node

    def alone(self, node: Schema) -> Schema:
        """A node as a document of its own, with the `$defs` that it can reach."""
        needed = self._closure(self._names(node)) if self.defs and isinstance(node, dict) else ()
        return {**node, "$defs": {name: self.defs[name] for name in self.defs if name in needed}} if needed else node

    def _names(self, node: Schema) -> set[str]:
        """The `$defs` that a node refers to directly."""
        references = (inner.get("$ref") for _, inner in walk(node))
        steps = (one[len(_DEFS) :] for one in references if isinstance(one, str) and one.startswith(_DEFS))
        return set(map(first_step, steps))

    def _closure(self, names: set[str]) -> set[str]:
        found: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name in self.defs and name not in found:
                found.add(name)
                if name not in self._reached:
                    self._reached[name] = frozenset(self._names(self.defs[name]))
                waiting += self._reached[name]
        return found
