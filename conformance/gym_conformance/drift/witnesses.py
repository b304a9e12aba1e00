"""Boundary values of a schema: a bounded, deterministic enumeration that needs no engine.

For an object it yields the smallest value, then that with each single argument varied, so the number of values grows
with the number of arguments and not with its power. Every value satisfies the schema. Not everything is found: a
schema may allow values and this yield none of them.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from gym_conformance.drift.combining import variants
from gym_conformance.drift.pattern import matching
from gym_conformance.drift.schema import Defs, alone, resolve, split
from gym_schemas import Acceptance, Schema

#: Whatever yields values that a schema allows, such as `boundary_values`; the best witnesses first, and not endlessly.
Witnesses = Callable[[Schema], Iterable[Any]]

#: How many values are yielded for an object, and for anything else.
OBJECTS, LEAVES = 400, 32

_LEVELS = 6
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_TEXTS = (
    *("", "a", "0", "1.5", "true", "A b", "\u00e9", "a@example.com", "https://example.com/a", "2024-02-29"),
    *("2024-02-29T12:30:00Z", "12:30:00Z", "P1D", "6fa459ea-ee8a-4ca4-894e-db77e160355e", "127.0.0.1", "::1"),
    *("example.com", "/a", "a-b_c", "ABC", "12345"),
)
_NUMBERS = (0, 1, -1, 2, 0.5, -0.5, 0.3, 10, 100, 1e3, 12345678901)
_MANY = 200
_EXACT = 2**52  # beyond it a float has no halves


def boundary_values(schema: Schema) -> Iterator[Any]:
    """Values that a modern schema allows, smallest first; a schema that cannot be read has none."""
    node, defs = split(schema)
    yield from _values(node, defs, _LEVELS)


def _values(node: Schema, defs: Defs, levels: int) -> list[Any]:
    """Distinct values that the node allows."""
    if node is False or levels == 0:
        return []
    try:
        schema = Acceptance(alone(node, defs))
    except ValueError:
        return []
    seen: dict[str, Any] = {}
    limit = LEAVES
    for value in _candidates(node, defs, levels):
        if isinstance(value, dict):
            limit = OBJECTS
        text = json.dumps(value, sort_keys=True)
        if text not in seen and schema.accepts(value):
            seen[text] = value
        if len(seen) >= limit:
            break
    return list(seen.values())


def _candidates(node: Schema, defs: Defs, levels: int) -> Iterator[Any]:
    for variant in variants(resolve(node, defs), defs):
        if isinstance(variant, dict):
            yield from _plain(variant, defs, levels)
        elif variant is True:
            yield from _plain({}, defs, levels)


def _plain(node: dict[str, Any], defs: Defs, levels: int) -> Iterator[Any]:
    """Candidates for a schema that combines no others."""
    if "const" in node:
        yield node["const"]
        return
    if isinstance(node.get("enum"), list):
        yield from islice(node["enum"], LEAVES)
        return
    given = node.get("type", _implied(node))
    for name in [given] if isinstance(given, str) else given:
        yield from _of_type(name, node, defs, levels)
    yield from node.get("examples") or ()
    if "default" in node:
        yield node["default"]


def _of_type(name: str, node: dict[str, Any], defs: Defs, levels: int) -> Iterator[Any]:
    match name:
        case "string":
            yield from _strings(node)
        case "integer" | "number":
            yield from _numbers(node)
        case "boolean":
            yield from (True, False)
        case "null":
            yield None
        case "array":
            yield from _arrays(node, defs, levels)
        case "object":
            yield from _objects(node, defs, levels)


def _implied(node: dict[str, Any]) -> tuple[str, ...]:
    """The type that the keywords speak of; all types where they speak of none."""
    if node.keys() & {"properties", "required", "additionalProperties", "propertyNames", "minProperties"}:
        return ("object", "string")
    if node.keys() & {"items", "prefixItems", "minItems", "maxItems", "contains"}:
        return ("array", "string")
    return _TYPES


def _strings(node: dict[str, Any]) -> Iterator[str]:
    least, most = node.get("minLength", 0), node.get("maxLength", _MANY)
    if "pattern" in node:
        yield from matching(node["pattern"])
    yield from _TEXTS
    if least <= _MANY * _MANY:
        yield from ("a" * least, "0" * least, "a" * (least + 1))
    if most <= _MANY * _MANY:
        yield "a" * most
    if isinstance(refused := node.get("not"), dict) and "pattern" in refused:
        yield from (text + "!" for text in matching(refused["pattern"]))


def _numbers(node: dict[str, Any]) -> Iterator[int | float]:
    step = node.get("multipleOf")
    bounds = [node[key] for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if key in node]
    yield from (value for value in _NUMBERS if isinstance(value, int))
    for bound in bounds:
        yield from (bound, bound + 1, bound - 1)
        if abs(bound) < _EXACT:
            yield from (bound + 0.5, bound - 0.5)
        if step:
            first = bound // step * step
            yield from (first, first + step, first - step)
    if step:
        yield from (step, -step, 2 * step)
    yield from _NUMBERS


def _arrays(node: dict[str, Any], defs: Defs, levels: int) -> Iterator[list[Any]]:
    heads = [_values(inner, defs, levels - 1) for inner in node.get("prefixItems", ())]
    rest = _values(node.get("items", True), defs, levels - 1)
    wanted = _values(node["contains"], defs, levels - 1) if "contains" in node else []
    least, most = max(node.get("minItems", 0), node.get("minContains", 0)), node.get("maxItems", _MANY)
    if least > _MANY:
        return
    fixed = [values[0] for values in heads if values]

    def of_size(size: int, *first: Any) -> list[Any]:
        rolled = [*first, *rest] if node.get("uniqueItems") else [*first, *rest[:1] * size]
        return [*fixed[:size], *rolled[: max(0, size - len(fixed))]]

    yield of_size(least)
    if wanted:
        yield of_size(max(least, node.get("minContains", 1)), *wanted)
        yield wanted[:1] * max(least, node.get("minContains", 1))
    yield from (of_size(size) for size in (least + 1, len(heads), least + 2, 2))
    yield from (of_size(max(least, len(heads) + 1), value) for value in rest)
    for index, values in enumerate(heads):
        yield from ([*fixed[:index], value, *fixed[index + 1 :]] for value in values)
    if rest:
        yield from (rest[:1] * size for size in {least + 1, 2, min(most, _MANY)})


def _objects(node: dict[str, Any], defs: Defs, levels: int) -> Iterator[dict[str, Any]]:
    given: dict[str, Any] = node.get("properties", {})
    required = [name for name in node.get("required", ()) if isinstance(name, str)]
    others = node.get("additionalProperties", True)
    schemas = {**given, **{name: others for name in required if name not in given}}
    values = {name: _values(inner, defs, levels - 1) for name, inner in schemas.items()}
    if any(not values[name] for name in required):
        return
    base = {name: values[name][0] for name in required}
    free = _free(node, defs, levels)
    needs = node.get("dependentRequired", {})

    def with_(name: str, value: Any) -> dict[str, Any]:
        needed = {other: values[other][0] for other in needs.get(name, ()) if values.get(other)}
        return {**base, **needed, name: value}

    yield from (base, base | free)
    optional = [name for name in given if name not in base and values[name]]
    yield from (with_(name, values[name][0]) for name in optional)
    everything = {name: found[0] for name, found in values.items() if found}
    yield everything
    yield from (with_(name, value) for name, found in values.items() for value in found[1:])
    yield everything | free
    extra = ("b", "c", "d", "e", "f")
    fill = next(iter(free.values()), "")
    yield from (dict(list((base | free).items()) + [(key, fill) for key in extra[:size]]) for size in (1, 2, 5))
    yield from (base | {name: value} for name, value in _free_values(node, defs, levels))


def _free(node: dict[str, Any], defs: Defs, levels: int) -> dict[str, Any]:
    """One property that the schema does not name, if it allows any."""
    return dict(islice(_free_values(node, defs, levels), 1))


def _free_values(node: dict[str, Any], defs: Defs, levels: int) -> Iterator[tuple[str, Any]]:
    names: list[Any] = ["a"]
    if "propertyNames" in node:
        names = _values({"type": "string", **resolve(node["propertyNames"], defs)}, defs, levels - 1)[:3]
    for pattern, inner in node.get("patternProperties", {}).items():
        names_here = matching(pattern)[:2]
        yield from ((name, value) for name in names_here for value in _values(inner, defs, levels - 1)[:8])
    inner = node.get("additionalProperties", {"type": "string"})
    if inner is True:
        inner = {"type": "string"}
    for value in _values(inner, defs, levels - 1)[:8]:
        yield from ((name, value) for name in names if name not in node.get("properties", {}))
