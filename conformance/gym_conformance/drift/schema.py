"""JSON Schemas as trees: going through them, and one spelling for the dialects that meet here.

Rows come in any draft, servers in OpenAPI 3.0 or 3.1. `modern` turns all of them into JSON Schema 2020-12 with every
reference of the form `#/$defs/NAME...`, so that any part can stand alone beside the same `$defs`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Any  #: an object or a bool
Defs = Mapping[str, Any]

_ONE = frozenset(
    {
        *("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"),
        *("unevaluatedProperties", "unevaluatedItems", "additionalItems"),
    }
)
_LIST = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})

#: Keywords that say nothing of the value.
ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"),
        *("discriminator", "$schema", "$id", "externalDocs", "xml", "$defs", "definitions"),
    }
)

#: Where the document itself is filed, for references to it.
_ROOT = "_document"


def children(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """The schemas directly inside this one, each with its way from here."""
    for key, value in node.items():
        if key in _ONE and isinstance(value, (dict, bool)):
            yield (key,), value
        elif key in (_LIST | {"items"}) and isinstance(value, list):
            yield from (((key, str(index)), inner) for index, inner in enumerate(value))
        elif key in _NAMED and isinstance(value, dict):
            yield from (((key, name), inner) for name, inner in value.items())


def walk(node: Schema, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """This schema and all inside it that are objects, outermost first, each with its way from the root."""
    if isinstance(node, dict):
        yield way, node
        for step, inner in children(node):
            yield from walk(inner, way + step)


def rewrite(node: Schema, change: Callable[[dict[str, Any]], Schema]) -> Schema:
    """A copy in which every schema object, innermost first, has been given to `change`."""
    if not isinstance(node, dict):
        return node
    made = dict(node)
    for key, value in node.items():
        if key in _ONE and isinstance(value, dict):
            made[key] = rewrite(value, change)
        elif key in (_LIST | {"items"}) and isinstance(value, list):
            made[key] = [rewrite(inner, change) for inner in value]
        elif key in _NAMED and isinstance(value, dict):
            made[key] = {name: rewrite(inner, change) for name, inner in value.items()}
    return change(made)


def pointer(way: tuple[str | int, ...]) -> str:
    """The way as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in way)


def resolve(node: Schema, defs: Defs) -> Schema:
    """The node itself, or what its `$ref` leads to, with the keywords that stand beside the reference."""
    seen = set()
    while isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
        if ref in seen or not ref.startswith("#/$defs/"):
            return True
        seen.add(ref)
        found: Any = defs
        for step in ref[len("#/$defs/") :].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(name)] if name.isdigit() and int(name) < len(found) else True
            else:
                found = found.get(name, True) if isinstance(found, dict) else True
        beside = {key: value for key, value in node.items() if key != "$ref"}
        node = {**found, **beside} if isinstance(found, dict) else found
    return node


def alone(node: Schema, defs: Defs) -> Schema:
    """The node as a document of its own."""
    return {**node, "$defs": dict(defs)} if isinstance(node, dict) and defs else node


def split(document: Schema) -> tuple[Schema, Defs]:
    """A modern document's own schema, and its `$defs`."""
    if not isinstance(document, dict):
        return document, {}
    return {key: value for key, value in document.items() if key != "$defs"}, document.get("$defs") or {}


def modern(document: Schema) -> Schema:
    """The document in JSON Schema 2020-12; it accepts the same values."""
    made = rewrite(document, _modern)
    if not isinstance(made, dict):
        return made
    node, defs = split(made)
    text = json.dumps(made)
    if '"$ref": "#' in text.replace('"$ref": "#/$defs/', ""):
        made = {**node, "$defs": {**defs, _ROOT: node}}
        made = rewrite(made, _root_references)
    return made


def _root_references(node: dict[str, Any]) -> Schema:
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#") and not ref.startswith("#/$defs/"):
        return {**node, "$ref": f"#/$defs/{_ROOT}{ref[1:]}"}
    return node


def _modern(node: dict[str, Any]) -> Schema:
    for name in ("$schema", "$id", "discriminator"):
        node.pop(name, None)
    if isinstance(old := node.pop("definitions", None), dict):
        node["$defs"] = {**old, **node.get("$defs", {})}
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#/definitions/"):
        node["$ref"] = "#/$defs/" + ref[len("#/definitions/") :]
    _old_arrays(node)
    _old_bounds(node)
    _old_dependencies(node)
    return _old_nullable(_single_all_of(node))


def _old_arrays(node: dict[str, Any]) -> None:
    """Before 2020-12, `items` was a list for a tuple, and `additionalItems` its rest."""
    rest = node.pop("additionalItems", None)
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
        if rest is not None:
            node["items"] = rest


def _old_bounds(node: dict[str, Any]) -> None:
    """In draft 4 and OpenAPI 3.0, an exclusive bound was a flag beside the bound."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and bound in node:
            node[exclusive] = node.pop(bound)


def _old_dependencies(node: dict[str, Any]) -> None:
    """Before 2019-09, `dependencies` held both names and schemas."""
    old = node.pop("dependencies", None)
    for name, needs in old.items() if isinstance(old, dict) else ():
        keyword = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        node[keyword] = {**node.get(keyword, {}), name: needs}


def _single_all_of(node: dict[str, Any]) -> dict[str, Any]:
    """Before 2.9, pydantic wraps a reference that has a default or a description in a list of one."""
    parts = node.get("allOf")
    if not (isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict)):
        return node
    rest = {key: value for key, value in node.items() if key != "allOf"}
    return {**parts[0], **rest} if not (parts[0].keys() & rest.keys()) - ANNOTATIONS else node


def _old_nullable(node: dict[str, Any]) -> Schema:
    """OpenAPI 3.0 knew no null type."""
    if node.pop("nullable", None) is not True or "type" not in node:
        return node
    return {"anyOf": [node, {"type": "null"}]}
