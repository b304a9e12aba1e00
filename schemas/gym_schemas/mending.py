"""Repairs schemas as validators in the field do: what is not sound JSON Schema is fixed or left out."""

import json
from typing import Any

import jsonschema_rs

from gym_schemas.json_values import TYPES, Json
from gym_schemas.tree import Schema, lookup, walk
from gym_schemas.upgrade import old_arrays, old_bounds

_MOST_REPAIRS = 200

#: Keywords that can make a whole document unreadable.
_OF_THE_WHOLE = ("$schema", "$id", "$ref", "$dynamicRef", "$recursiveRef", "$vocabulary")

#: Keywords that do not constrain values.
_SAY_NOTHING = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)

#: The type that people write if they mean no limit at all.
_ANY = "any"

#: Type names that people write, and what they mean.
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
    """A schema that every validator accepts, equal to the given one if that is sound; {} if too much of it is not."""
    return mended(schema)[0]


def mended(schema: Json) -> tuple[Schema, bool]:
    """A sound schema, and whether it still says all that the given one says about values."""
    if isinstance(schema, bool):
        return schema, True
    if not isinstance(schema, dict):
        return {}, False
    text = json.dumps(schema, ensure_ascii=False)
    encoded = text.encode("utf-8", "replace")  # no validator accepts a lone surrogate, even in a description
    fixed: dict[str, Any] = json.loads(encoded)
    whole = encoded.decode() == text
    whole &= not _remove_lost_references(fixed)
    for _ in range(_MOST_REPAIRS):
        path = _first_fault(fixed)
        if path is None:
            return fixed, whole
        whole &= _repair(fixed, path)
    return {}, False


def _remove_lost_references(schema: dict[str, Any]) -> bool:
    """Remove each `$ref` that leads nowhere in the document, as nothing is fetched; returns whether any did."""
    lost = False
    identified = any("$id" in inner or "$anchor" in inner for _, inner in walk(schema))
    for _, inner in list(walk(schema)):
        reference = inner.get("$ref")
        if reference is None:
            continue
        within = isinstance(reference, str) and reference.startswith("#") and lookup(schema, reference) is not None
        if not isinstance(reference, str) or not (identified or within):
            del inner["$ref"]
            lost = True
    return lost


def _first_fault(schema: dict[str, Any]) -> list[str | int] | None:
    """The path to the first place where the schema is not sound."""
    try:
        jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        return list(error.instance_path)
    except (ValueError, RecursionError):
        return []
    return None


def _repair(schema: dict[str, Any], path: list[str | int]) -> bool:
    """Fix or remove the innermost keyword on the path; returns whether all that it says about values is kept."""
    holder, keyword = _keyword_at(schema, path)
    if keyword is None:
        lost = next((name for name in _OF_THE_WHOLE if name in schema), None)
        if lost is None:
            schema.clear()
        else:
            del schema[lost]
        return lost in _SAY_NOTHING
    value = holder.pop(keyword)
    if value is True and keyword == "required":
        _require_in_parent(schema, path)
        return True
    return _mend(holder, keyword, value) or keyword in _SAY_NOTHING


def _keyword_at(schema: dict[str, Any], path: list[str | int]) -> tuple[dict[str, Any], str | None]:
    """The innermost object schema on the path, and the keyword of it through which the path goes."""
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
    """Read `required: true` in a property as in draft 3: its object requires the property."""
    if len(path) < 3 or path[-3] != "properties":  # noqa: PLR2004 (.../properties/NAME/required)
        return
    parent: Any = schema
    for part in path[:-3]:
        parent = parent[part]
    names = parent.setdefault("required", [])
    if isinstance(names, list) and path[-2] not in names:
        names.append(path[-2])


def _mend(holder: dict[str, Any], keyword: str, value: Json) -> bool:
    """Replace the keyword by what was meant; returns whether that is known."""
    match keyword, value:
        case "type", str() if value.lower() == _ANY:
            pass
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
        case _:
            return False
    return True


def _types_meant(value: str | list[Json]) -> str | list[str]:
    """The `type` that was meant; empty if one of its names has no known meaning."""
    names = [_type_name(name) for name in (value if isinstance(value, list) else [value])]
    known = list(dict.fromkeys(name for name in names if name))
    if len(known) < len(set(names)):
        return []
    return known[0] if len(known) == 1 else known


def _type_name(name: Json) -> str | None:
    """The type that was meant; None if unknown."""
    if not isinstance(name, str):
        return "null" if name is None else None
    plain = name.lower()
    return plain if plain in TYPES else _TYPE_NAMES.get(plain)
