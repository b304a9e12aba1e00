"""A JSON Schema with its references followed and its choices made."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

Schema = Mapping[str, Any]

#: The type that a keyword is about, for schemas that name none.
ABOUT = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("pattern", "minLength", "maxLength", "format"),
}
TYPES = ("string", "integer", "boolean", "object", "array", "null", "number")
LARGEST = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"}
SMALLEST = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}
CHOICES = ("anyOf", "oneOf")
LINKS = 50  # references that lead to references


def resolved(schema: Any, root: Schema, random: Random, *, brief: bool) -> dict[str, Any]:
    """A schema without references, `allOf`, choices and conditions: one way to satisfy it.

    Args:
        schema: an object, or true or false.
        root: where references start.
        random: makes the choices.
        brief: choose what does not refer to anything, where there is such a choice.

    Raises:
        LookupError: the schema is false, a reference leads nowhere or round in a circle.
    """
    found = _object(schema)
    for _ in range(LINKS):
        if "$ref" in found:
            target = target_of(found.pop("$ref"), root)
            found = merged(target, found)
        elif "allOf" in found:
            for part in found.pop("allOf"):
                found = merged(found, _object(part))
        elif choice := next((key for key in CHOICES if found.get(key)), None):
            branches = found.pop(choice)
            plain = [branch for branch in branches if "$ref" not in str(branch)]
            found = merged(found, _object(random.choice(plain if plain and brief else branches)))
        elif "if" in found:
            condition, then, other = (found.pop(key, True) for key in ("if", "then", "else"))
            found = merged(found, _object({"allOf": [condition, then]} if random.random() < 0.5 else other))  # noqa: PLR2004 - either
        else:
            return found
    raise LookupError("references lead round in a circle")


def target_of(reference: str, root: Schema) -> dict[str, Any]:
    """What a reference within the schema leads to.

    Raises:
        LookupError: nothing.
    """
    if reference == "#":
        return dict(root)
    if reference.startswith("#/"):
        node: Any = root
        for step in reference[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) and key.isdigit() else node[key]
        return _object(node)
    return _anchored(reference.removeprefix("#"), root)


def types_of(schema: Schema) -> list[str]:
    """The types that a schema allows, or means."""
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if isinstance(named, Sequence):
        return list(named)
    meant = [kind for kind, keys in ABOUT.items() if any(key in schema for key in keys)]
    return meant or (list(TYPES) if "not" in schema else ["string"])


def merged(one: Schema, other: Schema) -> dict[str, Any]:
    """A schema that allows what both allow, as far as a sample needs to know."""
    result = dict(one)
    for key, value in other.items():
        result[key] = _both(key, result[key], value) if key in result else value
    return result


def _both(key: str, one: Any, other: Any) -> Any:  # noqa: PLR0911 - one case for each kind of keyword
    if key in {"properties", "patternProperties"}:
        return {name: _either(one, other, name) for name in {**one, **other}}
    if key == "required":
        return [*dict.fromkeys([*one, *other])]
    if key == "type":
        mine, theirs = types_of({"type": one}), types_of({"type": other})
        return [kind for kind in _subtypes(mine) if kind in _subtypes(theirs)] or theirs
    if key == "enum":
        return [value for value in one if value in other]
    if key in LARGEST:
        return max(one, other)
    if key in SMALLEST:
        return min(one, other)
    if key == "allOf":
        return [*one, *other]
    if key == "pattern":
        return f"(?:{one})(?:{other})"  # often matches both: "^a" and "b$", say
    if key == "items":
        return {"allOf": [one, other]}
    return one if one is False else other


def _either(one: Schema, other: Schema, name: str) -> Any:
    if name in one and name in other:
        return {"allOf": [one[name], other[name]]}
    return one[name] if name in one else other[name]


def _subtypes(kinds: Sequence[str]) -> list[str]:
    return [*kinds, "integer"] if "number" in kinds and "integer" not in kinds else list(kinds)


def _object(schema: Any) -> dict[str, Any]:
    if schema is False:
        raise LookupError("nothing is allowed here")
    return dict(schema) if isinstance(schema, Mapping) else {}


def _anchored(name: str, node: Any) -> dict[str, Any]:
    """The subschema with an anchor."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            if each.get("$anchor") == name:
                return dict(each)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    raise LookupError(f"no subschema is called {name}")
