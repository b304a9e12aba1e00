"""Schemas that combine others, turned into plain ones whose values are worth trying.

This is a search heuristic and no proof: merging may lose a constraint, and whoever tries a value checks it.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from gym_conformance.drift.schema import Defs, resolve
from gym_schemas import Schema

#: How many plain schemas one may stand for.
_VARIANTS = 24
_COMBINING = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas")


def variants(node: Schema, defs: Defs, levels: int = 4) -> Iterator[Schema]:
    """Plain schemas that together stand for this one."""
    yield from islice(_variants(node, defs, levels), _VARIANTS)


def _variants(node: Schema, defs: Defs, levels: int) -> Iterator[Schema]:
    node = resolve(node, defs)
    if not isinstance(node, dict) or not any(key in node for key in _COMBINING):
        yield node
        return
    if levels == 0:
        return
    plain: Schema = {key: value for key, value in node.items() if key not in _COMBINING}
    for inner in node.get("allOf", ()):
        plain = merged(plain, resolve(inner, defs))
    if plain is False:
        return
    for option in _options(node):
        joined = merged(plain, resolve(option, defs))
        if joined is not False:
            yield from _variants(joined, defs, levels - 1)


def _options(node: dict[str, Any]) -> Iterator[Schema]:
    """What may come on top: a branch of a union, a consequence, nothing."""
    for key in ("anyOf", "oneOf"):
        yield from node.get(key, ())
    if "if" in node:
        yield node.get("else", True)
        yield merged(node["if"], node.get("then", True))
    for name, inner in node.get("dependentSchemas", {}).items():
        yield merged({"required": [name]}, inner)
    if not node.keys() & {"anyOf", "oneOf"}:
        yield True


def merged(left: Schema, right: Schema) -> Schema:
    """One schema for both, as well as a simple merge can say it."""
    if left is False or right is False:
        return False
    if not isinstance(left, dict) or not isinstance(right, dict):
        return left if isinstance(left, dict) else right
    made = {**left, **right}
    for key in left.keys() & right.keys():
        made[key] = _joined(key, left[key], right[key])
    return made


def _joined(key: str, left: Any, right: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs"):
        both = {name: merged(left[name], right[name]) for name in left.keys() & right.keys()}
        return {**left, **right, **both}
    if key in ("required", "allOf", "examples"):
        return [*left, *(name for name in right if name not in left)]
    if key in ("items", "additionalProperties", "propertyNames"):
        return merged(left, right)
    return _JOINS[key](left, right) if key in _JOINS else right


def _types(left: Any, right: Any) -> Any:
    ours, theirs = ([one] if isinstance(one, str) else one for one in (left, right))
    if ("integer" in ours and "number" in theirs) or ("number" in ours and "integer" in theirs):
        ours = [*ours, "integer"]
        theirs = [*theirs, "integer"]
    return [one for one in ours if one in theirs] or left


_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "enum": lambda left, right: [value for value in left if value in right] or left,
    "not": lambda left, _: left,
    "type": _types,
}
