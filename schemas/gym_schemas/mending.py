"""Reading schemas as validators in the field do: what is not sound JSON Schema is fixed or left out, and named."""

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from gym_schemas.json_values import TYPES, Json, pointer, shown
from gym_schemas.tree import Schema, lookup, walk
from gym_schemas.upgrade import old_arrays, old_bounds

_MOST_REPAIRS = 200

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


def sound(schema: Json) -> tuple[Schema, tuple[str, ...]]:
    """A schema that every validator takes, and one remark for each part that was changed: where, what, and what became of it.

    A schema that is sound comes back equal, with no remarks.
    """
    if not isinstance(schema, dict | bool):
        return {}, (f"#: {shown(schema)} is no schema: anything is taken to be valid",)
    if isinstance(schema, bool):
        return schema, ()
    fixed: dict[str, Any] = copy.deepcopy(schema)
    remarks = [*_without_lost_references(fixed)]
    for _ in range(_MOST_REPAIRS):
        fault = _first_fault(fixed)
        if fault is None:
            return fixed, tuple(remarks)
        path, message = fault
        remarks.append(_repair(fixed, path, message))
    return {}, (*remarks, "#: too much is unsound: anything is taken to be valid")


def _without_lost_references(schema: dict[str, Any]) -> Iterator[str]:
    """Take away every `$ref` that leads nowhere within the document: nothing is fetched."""
    identified = any("$id" in inner or "$anchor" in inner for _, inner in walk(schema))
    for way, inner in list(walk(schema)):
        reference = inner.get("$ref")
        if reference is None:
            continue
        within = isinstance(reference, str) and reference.startswith("#") and lookup(schema, reference) is not None
        if not isinstance(reference, str) or not (identified or within):
            del inner["$ref"]
            yield f"#{pointer(way)}/$ref: {shown(reference)} leads nowhere in this document: ignored"


def _first_fault(schema: dict[str, Any]) -> tuple[list[str | int], str] | None:
    """Where the schema is not sound, as a path into it, and why."""
    try:
        jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        return list(error.instance_path), error.message
    except (ValueError, RecursionError) as error:
        return [], str(error)
    return None


def _repair(schema: dict[str, Any], path: list[str | int], message: str) -> str:
    """Fix the innermost keyword on the path, or take it away; the remark."""
    holder, keyword = _keyword_at(schema, path)
    where = f"#{pointer(tuple(path))}"
    if keyword is None:
        lost = [
            name for name in ("$schema", "$id", "$ref", "$dynamicRef", "$recursiveRef", "$vocabulary") if name in schema
        ]
        if not lost:
            schema.clear()
            return f"#: {message}: anything is taken to be valid"
        value = schema.pop(lost[0])
        return f"#/{lost[0]}: {shown(value)}: {message}: ignored"
    value = holder.pop(keyword)
    became = (
        _required_of_parent(schema, path)
        if value is True and keyword == "required"
        else _mended(holder, keyword, value)
    )
    return f"{where}: {shown(value)} is not sound ({message[:80]}): {became}"


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


def _required_of_parent(schema: dict[str, Any], path: list[str | int]) -> str:
    """Draft 3 says `required: true` in the property itself."""
    if len(path) < 3 or path[-3] != "properties":  # noqa: PLR2004 (.../properties/NAME/required)
        return "ignored"
    parent: Any = schema
    for part in path[:-3]:
        parent = parent[part]
    names = parent.setdefault("required", [])
    if isinstance(names, list) and path[-2] not in names:
        names.append(path[-2])
    return "read as draft 3: the property is required"


def _mended(holder: dict[str, Any], keyword: str, value: Json) -> str:
    """Put what the keyword was meant to say into its holder, where that is known; what became of it."""
    match keyword, value:
        case "type", str() | list() if meant := _types_meant(value):
            holder["type"] = meant
            return f"read as {shown(meant)}"
        case "required", list() if named := list(dict.fromkeys(name for name in value if isinstance(name, str))):
            holder["required"] = named
            return f"read as {shown(named)}"
        case (("exclusiveMinimum" | "exclusiveMaximum"), True):
            bound = "minimum" if keyword == "exclusiveMinimum" else "maximum"
            if bound in holder:
                holder[keyword] = True
                old_bounds(holder)
                return f"read as draft 4: {bound} is exclusive"
        case "items", list():
            holder["items"] = value
            old_arrays(holder)
            return "read as prefixItems"
    return "ignored"


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
