"""Values that a schema refuses for one reason: for each keyword, how to make a valid value at a place invalid."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from random import Random

import jsonschema_rs
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views

from gym_schemas.acceptance import accepted
from gym_schemas.choices import Chance
from gym_schemas.formats import not_of_format
from gym_schemas.json_values import ABSENT, TYPES, Json, identity, shown, text, without_decimals
from gym_schemas.making import MOST_ITEMS, Maker, NoValue, makeable, names_admitted, possible
from gym_schemas.places import SchemaPlace, fresh_name, places, put
from gym_schemas.schema_reading import Parameters, SchemaReading, read, validator_of

_LONGEST = 10_000
_TRIES = 12


@dataclass(frozen=True)
class NearMiss:
    """Arguments that the schema refuses for one reason."""

    value: Json
    label: str
    """What is wrong: `city: 3 is not a string`, `missing required city`, `extra argument x`."""
    keyword: str
    """The keyword that is violated. Servers differ on `format`: to JSON Schema it may be a mere annotation."""


Wrong = Callable[[Maker, Json], tuple[Json, str]]
"""From the right value at a place, a wrong one, and what is wrong with it."""


@dataclass(frozen=True)
class SchemaFault:
    """One kind of fault at one place."""

    place: SchemaPlace
    keyword: str
    """The JSON Schema keyword that it violates, in the canonical form (`exclusiveMinimum: 0` of integers is `minimum`)."""
    wrong: Wrong


def near_miss(maker: Maker, right: Json = ABSENT) -> NearMiss | None:
    """A value with one fault at one place, all faults being equally likely; None if the choices found none.

    It starts from the given valid value, or from one that the maker makes.

    Raises:
        NoValue: no valid value is known.
    """
    reading = maker.reading
    found = faults(reading)
    for _ in range(_TRIES if found else 0):
        fault = maker.choices.pick(found)
        words = ""

        def spoil(value: Json, fault: SchemaFault = fault) -> Json:
            nonlocal words
            wrong, words = fault.wrong(maker, value)
            return wrong

        try:
            value = put(maker, maker.value() if right is ABSENT else right, fault.place.steps, spoil)
        except NoValue:
            if not makeable(reading):
                raise
            continue
        if not reading.admits(value):
            path = fault.place.path
            return NearMiss(value, f"{path}: {words}" if path else words, fault.keyword)
    return None


def near_sample(schema: Parameters, right: Json, random: Random) -> Json:
    """The valid value with one random fault; `ABSENT` if none is known."""
    try:
        found = near_miss(Maker(read(schema), Chance(random)), right)
    except NoValue:
        return ABSENT
    return ABSENT if found is None else found.value


@lru_cache(512)
def faults(reading: SchemaReading) -> tuple[SchemaFault, ...]:
    """All faults that a value can have."""
    return tuple(fault for place in places(reading) for fault in _at(reading, place))


def _at(reading: SchemaReading, place: SchemaPlace) -> Iterator[SchemaFault]:
    """All faults at the place itself; values inside it have places of their own."""
    found = [] if place.is_branch else [*_types(reading, place.node)]
    match place.node.view():
        case views.ConstView(value) if value == {}:
            found += [("additionalProperties", _extra(["extra", "x"]))]
        case views.ConstView(value):
            found += _members([value])
        case views.EnumView(values) if set(map(type, values)) != {bool}:
            found += _members(reading.ordered(values))
        case views.StringView() as view:
            found += _strings(view)
        case views.IntegerView() | views.NumberView() as view:
            found += _numbers(view)
        case views.ArrayView() as view:
            found += _arrays(reading, view)
        case views.ObjectView() as view:
            found += _objects(view)
        case views.NotView(inner):
            found += [("not", lambda maker, _: _said(maker.make(inner), "is what must not be"))]
    return (SchemaFault(place, keyword, wrong) for keyword, wrong in found)


Found = Iterator[tuple[str, Wrong]]


def _drawn(values: Sequence[Json], words: str) -> Wrong:
    """Wrong values that do not depend on the valid one; {} in the words stands for the value."""

    def wrong(maker: Maker, _: Json) -> tuple[Json, str]:
        value = maker.choices.pick(values)
        return value, words.replace("{}", shown(value))

    return wrong


def _types(reading: SchemaReading, node: CanonicalSchema) -> Found:
    admitted = reading.types(node)
    if not admitted or set(admitted) >= set(TYPES):
        return
    plain = [_named(name) for name in admitted if name != "integer" or "number" not in admitted]
    wanted = " or ".join(filter(None, [", ".join(plain[:-1]), plain[-1]]))

    def wrong(maker: Maker, right: Json) -> tuple[Json, str]:
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
        value = maker.choices.pick(others)
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
        yield "enum", _drawn(near, words)


def _strings(view: views.StringView) -> Found:
    low, high = view.min_length or 0, view.max_length
    if 0 < low <= _LONGEST:
        yield (
            "minLength",
            lambda maker, right: _said(right[: maker.choices.whole(0, low - 1)], f"is shorter than {low}"),
        )
    if high is not None and high <= _LONGEST:
        yield (
            "maxLength",
            lambda maker, right: _said(
                right.ljust(high, "0") + "0" * maker.choices.whole(1, 9), f"is longer than {high}"
            ),
        )
    for pattern in view.patterns:
        yield from _matching({"pattern": pattern}, f"{{}} does not match {pattern}")
    for pattern in view.excluded_patterns:
        yield from _matching({"not": {"pattern": pattern}}, f"{{}} matches {pattern}")
    for name in view.formats:
        wrong = not_of_format(name)
        if wrong:
            yield "format", _drawn(wrong, f"{{}} is no {name}")
    if view.excluded:
        yield "enum", _drawn(view.excluded, "{} is what must not be")


def _said(value: Json, words: str) -> tuple[Json, str]:
    return value, f"{shown(value)} {words}"


_ODD_STRINGS = ("", "0", "a", "A", " ", "-", "~", "\u00e9", "a b", "not this", "\n", "{}", "x" * 50)


def _matching(schema: dict[str, Json], words: str) -> Found:
    """Strings that the schema refuses."""
    validator = jsonschema_rs.validator_for(schema)
    odd = [one for one in (*_ODD_STRINGS, *re.findall(r"\w+", text(schema))) if not accepted(validator, one)]

    def wrong(maker: Maker, _: Json) -> tuple[Json, str]:
        free = maker.choices.text(0, None)
        value = maker.choices.pick([*odd, free] if not accepted(validator, free) else odd)
        return value, words.replace("{}", shown(value))

    if odd:
        yield "pattern", wrong


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

    def wrong(maker: Maker, _: Json) -> tuple[Json, str]:
        far = maker.choices.whole(0 if exclusive else 1, 1_000)
        value = bound + sign * far
        if far and value == bound:  # a float so large that it cannot express such a step
            value = math.nextafter(bound, sign * math.inf)
        words = (
            f"is the exclusive {side}" if far == 0 else f"is {'below' if sign < 0 else 'above'} {side} {shown(bound)}"
        )
        return value, f"{shown(value)} {words}"

    return wrong


def _off_step(part: Fraction, *, whole: bool, words: str) -> Wrong:
    def wrong(maker: Maker, right: Json) -> tuple[Json, str]:
        moved = Fraction(str(right)) + part * maker.choices.pick([1, -1])
        value: Json = int(moved) if whole else float(moved)
        return value, f"{shown(value)} is {words}"

    return wrong


def _arrays(reading: SchemaReading, view: views.ArrayView) -> Found:
    low, high = view.min_items or 0, view.max_items
    items = view.items

    def item(maker: Maker) -> Json:
        return maker.choices.whole(0, 9) if items is None else maker.at(0, items)

    if 0 < low <= MOST_ITEMS:
        yield (
            "minItems",
            lambda maker, right: _said(right[: maker.choices.whole(0, low - 1)], f"has fewer than {low} items"),
        )
    if high is not None and high <= MOST_ITEMS and possible(reading, items):

        def too_many(maker: Maker, right: Json) -> tuple[Json, str]:
            return _said([*right, *(item(maker) for _ in range(high + 1 - len(right)))], f"has more than {high} items")

        yield "maxItems", too_many
    if view.distinctness == views.Distinctness.ALL_DISTINCT:

        def twice(maker: Maker, right: Json) -> tuple[Json, str]:
            one = right[0] if right else item(maker)
            return _said([one, one, *right[2:]], "repeats an item")

        yield "uniqueItems", twice
    for part in view.contains:
        yield "contains", _lacking(part.schema)


def _lacking(wanted: CanonicalSchema) -> Wrong:
    validator, schema = validator_of(wanted), without_decimals(wanted.to_json_schema())
    named = shown(
        {key: said for key, said in schema.items() if key != "$schema"} if isinstance(schema, dict) else schema
    )

    def wrong(_: Maker, right: Json) -> tuple[Json, str]:
        return _said([item for item in right if not accepted(validator, item)], f"lacks an item of {named}")

    return wrong


def _objects(view: views.ObjectView) -> Found:
    for name in view.required:
        yield "required", _without(name)
    for name, node in view.properties.items():
        if node.kind == views.CanonicalKind.FALSE:
            yield "properties", _extra([name])
    yield from _odd_names(view)
    low, high = view.min_properties or 0, view.max_properties
    if low > len(view.required):
        yield "minProperties", _too_few(view, low)
    if high is not None and high <= MOST_ITEMS:
        yield "maxProperties", _too_many(view, high)


def _odd_names(view: views.ObjectView) -> Found:
    """Names that the object does not list, or that its `propertyNames` refuses."""
    if listed := names_admitted(view):
        near = [name + end for name in listed for end in ("s", "_")] + [name.upper() for name in listed]
        fresh = [name for name in ("extra", "x", *near) if name not in listed and name not in view.properties]
        yield "additionalProperties", _extra(fresh)
    elif view.property_names is not None:
        validator = validator_of(view.property_names)
        if odd := [name for name in _ODD_STRINGS if not accepted(validator, name)]:
            yield "propertyNames", _extra(odd)


def _without(name: str) -> Wrong:
    return lambda _, right: ({key: value for key, value in right.items() if key != name}, f"missing required {name}")


def _extra(names: Sequence[str]) -> Wrong:
    def wrong(maker: Maker, right: Json) -> tuple[Json, str]:
        name = maker.choices.pick(names)
        return {**right, name: maker.choices.pick([0, "", None])}, f"extra argument {name}"

    return wrong


def _too_few(view: views.ObjectView, low: int) -> Wrong:
    def wrong(_: Maker, right: Json) -> tuple[Json, str]:
        kept = [*view.required, *right][: low - 1]
        return _said({name: right[name] for name in kept if name in right}, f"has fewer than {low} properties")

    return wrong


def _too_many(view: views.ObjectView, high: int) -> Wrong:
    def wrong(maker: Maker, right: Json) -> tuple[Json, str]:
        value = dict(right)
        for name, node in view.properties.items():
            if name not in value and len(value) <= high:
                value[name] = maker.at(name, node)
        while len(value) <= high:
            value[fresh_name(view) + str(len(value))] = (
                maker.make(view.additional_properties) if view.additional_properties else 0
            )
        return _said(value, f"has more than {high} properties")

    return wrong
