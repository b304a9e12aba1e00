"""Reading schemas as validators in the field do: what is not sound JSON Schema is fixed or left out."""

import copy
from typing import Any

import jsonschema_rs

from gym_schemas.json_values import TYPES, Json
from gym_schemas.tree import Schema, lookup, walk
from gym_schemas.upgrade import old_arrays, old_bounds

_MOST_REPAIRS = 200

#: Keywords that may make a whole document unreadable.
_OF_THE_WHOLE = ("$schema", "$id", "$ref", "$dynamicRef", "$recursiveRef", "$vocabulary")

#: Names of types that people write, and what they mean. "any" means no limit at all.
_TYPE_NAMES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "map": "object",
    "none": "null",
    "nonetype": "null",
}


def sound(schema: Json) -> Schema:
    """A schema that every validator takes, equal to the given one if that is sound; {} if too much of it is not."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        return {}
    fixed: dict[str, Any] = copy.deepcopy(schema)
    _remove_lost_references(fixed)
    for _ in range(_MOST_REPAIRS):
        path = _first_fault(fixed)
        if path is None:
            return fixed
        _repair(fixed, path)
    return {}


def _remove_lost_references(schema: dict[str, Any]) -> None:
    """Take away every `$ref` that leads nowhere within the document: nothing is fetched."""
    identified = any("$id" in inner or "$anchor" in inner for _, inner in walk(schema))
    for _, inner in list(walk(schema)):
        reference = inner.get("$ref")
        if reference is None:
            continue
        within = isinstance(reference, str) and reference.startswith("#") and lookup(schema, reference) is not None
        if not isinstance(reference, str) or not (identified or within):
            del inner["$ref"]


def _first_fault(schema: dict[str, Any]) -> list[str | int] | None:
    """Where the schema is not sound, as a path into it."""
    try:
        jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        return list(error.instance_path)
    except (ValueError, RecursionError):
        return []
    return None


def _repair(schema: dict[str, Any], path: list[str | int]) -> None:
    """Fix the innermost keyword on the path, or take it away."""
    holder, keyword = _keyword_at(schema, path)
    if keyword is None:
        lost = next((name for name in _OF_THE_WHOLE if name in schema), None)
        if lost is None:
            schema.clear()
        else:
            del schema[lost]
        return
    value = holder.pop(keyword)
    if value is True and keyword == "required":
        _require_in_parent(schema, path)
    else:
        _mend(holder, keyword, value)


def _keyword_at(schema: dict[str, Any], path: list[str | int]) -> tuple[dict[str, Any], str | None]:
    """The innermost object schema on the path, and its keyword that the path goes through."""
    places = {id(inner) for _, inner in walk(schema)}
    holder, keyword, place = schema, None, schema
    for part in path:
        if id(place) in places and isinstance(part, str):
            holder, keyword = place, part
        try:
            place = place[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            break
    return holder, keyword


def _require_in_parent(schema: dict[str, Any], path: list[str | int]) -> None:
    """Read `required: true` in a property as draft 3 does: its object requires the property."""
    if len(path) < 3 or path[-3] != "properties":  # noqa: PLR2004 (.../properties/NAME/required)
        return
    parent: Any = schema
    for part in path[:-3]:
        parent = parent[part]
    names = parent.setdefault("required", [])
    if isinstance(names, list) and path[-2] not in names:
        names.append(path[-2])


def _mend(holder: dict[str, Any], keyword: str, value: Json) -> None:
    """Put what the keyword was meant to say into its holder, if that is known."""
    match keyword, value:
        case "type", str() | list() if meant := _types_meant(value):
            holder["type"] = meant
        case "required", list() if named := list(dict.fromkeys(name for name in value if isinstance(name, str))):
            holder["required"] = named
        case (("exclusiveMinimum" | "exclusiveMaximum"), True):
            bound = "minimum" if keyword == "exclusiveMinimum" else "maximum"
            if bound in holder:
                holder[keyword] = True
                old_bounds(holder)
        case "items", list():
            holder["items"] = value
            old_arrays(holder)


def _types_meant(value: str | list[Json]) -> str | list[str]:
    """The `type` that was meant; empty where a name in it means nothing."""
    names = [_type_name(name) for name in (value if isinstance(value, list) else [value])]
    known = list(dict.fromkeys(name for name in names if name))
    if len(known) < len(set(names)):
        return []
    return known[0] if len(known) == 1 else known


def _type_name(name: Json) -> str | None:
    """The type meant, or None where none is known."""
    if not isinstance(name, str):
        return "null" if name is None else None
    plain = name.lower()
    return plain if plain in TYPES else _TYPE_NAMES.get(plain)
