"""Converts all schemas to one dialect: JSON Schema 2020-12.

Rows come in any draft, servers in OpenAPI 3.0 or 3.1. An upgraded schema admits the same values, and each of its
references has the form `#/$defs/NAME...`, so that any part of it can stand alone with those `$defs`.
"""

from collections.abc import Callable
from typing import Any, Final

from gym_schemas.json_values import is_numeric
from gym_schemas.tree import ANNOTATIONS, LISTED, NAMED, SINGLE, Schema, rewrite, walk

#: The name of the document itself in `$defs`, for references to it.
_ROOT = "_document"


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_schema, value))


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


#: The forms of keyword values that all readers of schemas rely on, in every draft.
_FORMS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(SINGLE, _is_schema),
    **dict.fromkeys(LISTED, _is_list),
    **dict.fromkeys(NAMED, _is_map),
    **dict.fromkeys(("$ref", "$anchor", "pattern", "format"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"), is_numeric),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), is_numeric),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), lambda value: isinstance(value, int | float)),
    "items": lambda value: _is_schema(value) or _is_list(value),
    "dependencies": lambda value: (
        isinstance(value, dict) and all(_is_schema(one) or _are_names(one) for one in value.values())
    ),
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
    "enum": lambda value: isinstance(value, list),
    "required": _are_names,
    "type": lambda value: _is_text(value) or _are_names(value),
}


def upgrade(schema: Schema) -> Schema:
    """The schema in JSON Schema 2020-12; keywords whose value has a form that no draft allows are ignored."""
    made = rewrite(schema, _upgraded)
    if not isinstance(made, dict):
        return made
    anchors = {node["$anchor"]: "".join(f"/{step}" for step in way) for way, node in walk(made) if "$anchor" in node}
    references = {str(node["$ref"]) for _, node in walk(made) if "$ref" in node}
    if not any(one.startswith("#") and not one.startswith("#/$defs/") for one in references):
        return made
    node, defs = {key: value for key, value in made.items() if key != "$defs"}, made.get("$defs", {})

    def lead(inner: dict[str, Any]) -> Schema:
        reference = inner.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return inner
        place = anchors.get(reference[1:], reference[1:])
        return {**inner, "$ref": f"#{place}" if place.startswith("/$defs/") else f"#/$defs/{_ROOT}{place}"}

    return rewrite({**node, "$defs": {**defs, _ROOT: node}}, lead)


def _upgraded(node: dict[str, Any]) -> Schema:
    unread = [key for key, value in node.items() if (form := _FORMS.get(key)) and not form(value)]
    for name in ("$schema", "$id", "discriminator", *unread):
        node.pop(name, None)
    if isinstance(old := node.pop("definitions", None), dict):
        node["$defs"] = {**old, **node.get("$defs", {})}
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/definitions/"):
        node["$ref"] = "#/$defs/" + reference[len("#/definitions/") :]
    old_arrays(node)
    old_bounds(node)
    _old_dependencies(node)
    return _old_nullable(_single_all_of(node))


def old_arrays(node: dict[str, Any]) -> None:
    """Before 2020-12, a tuple was a list in `items`, with the rest in `additionalItems`."""
    rest = node.pop("additionalItems", None)
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
        if rest is not None:
            node["items"] = rest


def old_bounds(node: dict[str, Any]) -> None:
    """In draft 4 and OpenAPI 3.0, an exclusive bound was a flag beside the bound."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and bound in node:
            node[exclusive] = node.pop(bound)


def _old_dependencies(node: dict[str, Any]) -> None:
    """Before 2019-09, `dependencies` contained both names and schemas."""
    old = node.pop("dependencies", None)
    for name, needs in old.items() if isinstance(old, dict) else ():
        keyword = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        node[keyword] = {**node.get(keyword, {}), name: needs}


def _single_all_of(node: dict[str, Any]) -> dict[str, Any]:
    """Before 2.9, pydantic wraps a reference that has a default or a description in an `allOf` of one."""
    parts = node.get("allOf")
    if not (isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict)):
        return node
    rest = {key: value for key, value in node.items() if key != "allOf"}
    return {**parts[0], **rest} if not (parts[0].keys() & rest.keys()) - ANNOTATIONS else node


def _old_nullable(node: dict[str, Any]) -> Schema:
    """OpenAPI 3.0 has no null type."""
    if node.pop("nullable", None) is not True or "type" not in node:
        return node
    return {"anyOf": [node, {"type": "null"}]}
