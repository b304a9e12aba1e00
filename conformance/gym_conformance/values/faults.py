"""What can be wrong at one place: per keyword, how to turn the right value into a wrong one, and what to call it."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import jsonschema_rs
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views

from gym_conformance.values.build import ALPHABET, Builder
from gym_conformance.values.formats import not_of_format
from gym_conformance.values.json_values import TYPES, Json, identity, shown, text
from gym_conformance.values.places import Place, fresh_name
from gym_conformance.values.reading import accepts, validator_of
from gym_conformance.values.smallest import MOST_ITEMS, names_admitted

_LONGEST = 10_000

Wrong = Callable[[DrawFn, Json], tuple[Json, str]]
"""From the right value at a place, a wrong one, and what is wrong with it."""


@dataclass(frozen=True)
class Fault:
    """One thing that can be wrong at a place."""

    place: Place
    keyword: str
    """The JSON Schema keyword that it violates, in the canonical form (`exclusiveMinimum: 0` of integers is `minimum`)."""
    wrong: Wrong


def faults(builder: Builder, place: Place) -> Iterator[Fault]:
    """Everything that can be wrong at the place itself; what lies within it is a place of its own."""
    found = [] if place.is_branch else [*_types(builder, place.node)]
    match place.node.view():
        case views.ConstView(value) if value == {}:
            found += [("additionalProperties", _extra(st.sampled_from(["extra", "x"])))]
        case views.ConstView(value):
            found += _members([value])
        case views.EnumView(values) if set(map(type, values)) != {bool}:
            found += _members(builder.reading.ordered(values))
        case views.StringView() as view:
            found += _strings(view)
        case views.IntegerView() | views.NumberView() as view:
            found += _numbers(view)
        case views.ArrayView() as view:
            found += _arrays(builder, place, view)
        case views.ObjectView() as view:
            found += _objects(builder, place, view)
        case views.NotView(inner):
            found += [("not", _drawn(builder.of(inner), "{} is what must not be"))]
    return (Fault(place, keyword, wrong) for keyword, wrong in found)


Found = Iterator[tuple[str, Wrong]]


def _drawn(values: SearchStrategy[Json], words: str) -> Wrong:
    """Wrong values that do not depend on the right one; {} in the words is the value."""

    def wrong(draw: DrawFn, _: Json) -> tuple[Json, str]:
        value = draw(values)
        return value, words.replace("{}", shown(value))

    return wrong


def _types(builder: Builder, node: CanonicalSchema) -> Found:
    admitted = builder.reading.types(node)
    if not admitted or set(admitted) >= set(TYPES):
        return
    plain = [_named(name) for name in admitted if name != "integer" or "number" not in admitted]
    wanted = " or ".join(filter(None, [", ".join(plain[:-1]), plain[-1]]))

    def wrong(draw: DrawFn, right: Json) -> tuple[Json, str]:
        others: list[Json] = []
        if "string" not in admitted:
            others += ["", "text", *([text(right)] if len(text(right)) < _LONGEST else [])]
        if "integer" not in admitted:
            others += [0, 3]
        if "number" not in admitted:
            others += [0.5]
        others += [] if "boolean" in admitted else [False, True]
        others += [] if "array" in admitted else [[], [right]]
        others += [] if "object" in admitted else [{}, {"value": right}]
        others += [] if "null" in admitted else [None]
        value = draw(st.sampled_from(others))
        return value, f"{shown(value)} is not {wanted}"

    yield "type", wrong


def _named(type_name: str) -> str:
    return type_name if type_name == "null" else f"an {type_name}" if type_name[0] in "aio" else f"a {type_name}"


def _members(values: list[Json]) -> Found:
    known = {identity(value) for value in values}
    words = "{} is not " + (f"one of {shown(values, 80)}" if len(values) > 1 else shown(values[0]))
    near: list[Json] = []
    for value in values[:20]:
        match value:
            case str():
                near += [value + "x", value.upper(), value.capitalize(), value[:-1], f" {value}"]
            case bool():
                near += [not value]
            case int() | float():
                near += [value + 1, value - 1, -value]
            case list():
                near += [[*value, 0], value[:-1]]
            case dict():
                near += [{**value, "extra": 0}]
    near = list({identity(value): value for value in near if identity(value) not in known}.values())
    if near:
        yield "enum", _drawn(st.sampled_from(near), words)


def _strings(view: views.StringView) -> Found:
    low, high = view.min_length or 0, view.max_length
    if 0 < low <= _LONGEST:
        yield "minLength", lambda draw, right: _said(right[: draw(st.integers(0, low - 1))], f"is shorter than {low}")
    if high is not None and high <= _LONGEST:
        yield (
            "maxLength",
            lambda draw, right: _said(right.ljust(high, "0") + "0" * draw(st.integers(1, 9)), f"is longer than {high}"),
        )
    for pattern in view.patterns:
        yield from _matching("pattern", {"pattern": pattern}, f"{{}} does not match {pattern}")
    for pattern in view.excluded_patterns:
        yield from _matching("pattern", {"not": {"pattern": pattern}}, f"{{}} matches {pattern}")
    for name in view.formats:
        wrong = not_of_format(name)
        if wrong:
            yield "format", _drawn(st.sampled_from(wrong), f"{{}} is no {name}")
    if view.excluded:
        yield "enum", _drawn(st.sampled_from(view.excluded), "{} is what must not be")


def _said(value: Json, words: str) -> tuple[Json, str]:
    return value, f"{shown(value)} {words}"


_ODD_STRINGS = ("", "0", "a", "A", " ", "-", "~", "\u00e9", "a b", "not this", "\n", "{}", "x" * 50)


def _matching(keyword: str, schema: dict[str, Json], words: str) -> Found:
    """Strings that the schema refuses."""
    validator = jsonschema_rs.validator_for(schema)
    odd = [one for one in (*_ODD_STRINGS, *re.findall(r"\w+", text(schema))) if not accepts(validator, one)]
    if odd:
        yield (
            keyword,
            _drawn(
                st.one_of(st.sampled_from(odd), st.text(ALPHABET).filter(lambda one: not accepts(validator, one))),
                words,
            ),
        )


def _numbers(view: views.IntegerView | views.NumberView) -> Found:
    whole = isinstance(view, views.IntegerView)
    open_low = isinstance(view, views.NumberView) and view.exclusive_minimum
    open_high = isinstance(view, views.NumberView) and view.exclusive_maximum
    if view.minimum is not None:
        yield "exclusiveMinimum" if open_low else "minimum", _beyond(view.minimum, -1, exclusive=open_low)
    if view.maximum is not None:
        yield "exclusiveMaximum" if open_high else "maximum", _beyond(view.maximum, 1, exclusive=open_high)
    for step in view.multiple_of:
        exact = Fraction(str(step))
        if whole and exact.numerator == 1:
            continue
        part = Fraction(1) if whole else exact / 2
        yield "multipleOf", _off_step(part, whole=whole, words=f"no multiple of {step}")


def _beyond(limit: float | Decimal, sign: int, *, exclusive: bool) -> Wrong:
    bound = limit if isinstance(limit, int) else float(limit)
    side = "minimum" if sign < 0 else "maximum"

    def wrong(draw: DrawFn, _: Json) -> tuple[Json, str]:
        far = draw(st.integers(0 if exclusive else 1, 1_000))
        value = bound + sign * far
        if far and value == bound:  # a float so large that steps of this size are lost
            value = math.nextafter(bound, sign * math.inf)
        words = (
            f"is the exclusive {side}" if far == 0 else f"is {'below' if sign < 0 else 'above'} {side} {shown(bound)}"
        )
        return value, f"{shown(value)} {words}"

    return wrong


def _off_step(part: Fraction, *, whole: bool, words: str) -> Wrong:
    def wrong(draw: DrawFn, right: Json) -> tuple[Json, str]:
        moved = Fraction(str(right)) + part * draw(st.sampled_from([1, -1]))
        value: Json = int(moved) if whole else float(moved)
        return value, f"{shown(value)} is {words}"

    return wrong


def _arrays(builder: Builder, place: Place, view: views.ArrayView) -> Found:
    low, high = view.min_items or 0, view.max_items
    below = place.depth + 1
    items = builder.of(view.items, below) if view.items is not None else st.integers(0, 9)
    if 0 < low <= MOST_ITEMS:
        yield (
            "minItems",
            lambda draw, right: _said(right[: draw(st.integers(0, low - 1))], f"has fewer than {low} items"),
        )
    if high is not None and high <= MOST_ITEMS and not items.is_empty:

        def too_many(draw: DrawFn, right: Json) -> tuple[Json, str]:
            return _said([*right, *(draw(items) for _ in range(high + 1 - len(right)))], f"has more than {high} items")

        yield "maxItems", too_many
    if view.distinctness == views.Distinctness.ALL_DISTINCT:

        def twice(draw: DrawFn, right: Json) -> tuple[Json, str]:
            one = right[0] if right else draw(items)
            return _said([one, one, *right[2:]], "repeats an item")

        yield "uniqueItems", twice
    for part in view.contains:
        yield "contains", _lacking(part.schema)


def _lacking(wanted: CanonicalSchema) -> Wrong:
    validator, schema = validator_of(wanted), wanted.to_json_schema()
    named = shown(
        {key: said for key, said in schema.items() if key != "$schema"} if isinstance(schema, dict) else schema
    )

    def wrong(_: DrawFn, right: Json) -> tuple[Json, str]:
        return _said([item for item in right if not accepts(validator, item)], f"lacks an item of {named}")

    return wrong


def _objects(builder: Builder, place: Place, view: views.ObjectView) -> Found:
    for name in view.required:
        yield "required", _without(name)
    for name, node in view.properties.items():
        if node.kind == views.CanonicalKind.FALSE:
            yield "properties", _extra(st.just(name))
    listed = names_admitted(view)
    if listed:
        near = [name + end for name in listed for end in ("s", "_")] + [name.upper() for name in listed]
        fresh = [name for name in ("extra", "x", *near) if name not in listed and name not in view.properties]
        yield "additionalProperties", _extra(st.sampled_from(fresh))
    elif view.property_names is not None:
        validator = validator_of(view.property_names)
        odd = [name for name in _ODD_STRINGS if not accepts(validator, name)]
        if odd:
            yield "propertyNames", _extra(st.sampled_from(odd))
    low, high = view.min_properties or 0, view.max_properties
    if low > len(view.required):
        yield (
            "minProperties",
            lambda _, right: _said(
                {n: right[n] for n in [*view.required, *right][: low - 1] if n in right},
                f"has fewer than {low} properties",
            ),
        )
    if high is not None and high <= MOST_ITEMS:
        yield "maxProperties", _too_many(builder, place, view, high)


def _without(name: str) -> Wrong:
    return lambda _, right: ({key: value for key, value in right.items() if key != name}, f"missing required {name}")


def _extra(names: SearchStrategy[str]) -> Wrong:
    def wrong(draw: DrawFn, right: Json) -> tuple[Json, str]:
        name = draw(names)
        return {**right, name: draw(st.sampled_from([0, "", None]))}, f"extra argument {name}"

    return wrong


def _too_many(builder: Builder, place: Place, view: views.ObjectView, high: int) -> Wrong:
    def wrong(draw: DrawFn, right: Json) -> tuple[Json, str]:
        value = dict(right)
        for name, node in view.properties.items():
            if name not in value and len(value) <= high:
                value[name] = draw(builder.of(node, place.depth + 1))
        while len(value) <= high:
            value[fresh_name(view) + str(len(value))] = (
                draw(builder.of(view.additional_properties)) if view.additional_properties else 0
            )
        return _said(value, f"has more than {high} properties")

    return wrong
