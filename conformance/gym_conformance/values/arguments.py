"""Arguments of tool calls, from the tool's JSON Schema: valid ones, and ones with exactly one thing wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema_rs import canonical as views

from gym_conformance.values.build import Builder, Mined, builder, held
from gym_conformance.values.faults import Fault, faults
from gym_conformance.values.formats import format_strategy
from gym_conformance.values.json_values import Json
from gym_conformance.values.patterns import compiled
from gym_conformance.values.places import Place, places, put
from gym_conformance.values.reading import Reading, read
from gym_conformance.values.smallest import NoValue, smallest

Parameters = Mapping[str, Any] | bool
"""A tool's `parameters`: a JSON Schema, of draft 2020-12 unless its `$schema` says otherwise."""

_TRIES = 12
_NOTHING_MINED: Mined = {}


@dataclass(frozen=True)
class NearMiss:
    """Arguments that the schema refuses for one reason."""

    value: Json
    label: str
    """What is wrong: `city: 3 is not a string`, `missing required city`, `extra argument x`."""
    keyword: str
    """The keyword that is violated. Servers differ on `format`: to JSON Schema it may be a mere annotation."""


def valid_arguments(schema: Parameters, mined: Mined = _NOTHING_MINED) -> SearchStrategy[Any]:
    """Values that the schema admits: objects, if it asks for objects, and simple ones first.

    `mined` are known good values by the name of a property, at any depth (recorded arguments, what the server
    returned): where the schema admits them, they are drawn three times out of four. A property without a word on its
    values is given too; one that the schema does not name only where it speaks of others, or of none.
    Empty (`is_empty`) where no value can be made: `unsupported` says why.
    """
    reading = read(schema)
    if not mined:
        return _valid(reading)
    return _held(reading, Builder(reading, mined).root())


def near_misses(schema: Parameters, mined: Mined = _NOTHING_MINED) -> SearchStrategy[NearMiss]:
    """Values that the schema refuses: valid ones with one thing wrong at one place, each fault as likely as any other.

    Empty where nothing can be wrong, or no valid value is known.
    """
    reading = read(schema)
    found = _faults(reading)
    right = valid_arguments(schema, mined)
    return st.nothing() if right.is_empty or not found else _near_misses(reading, right, found)


def admits(schema: Parameters, value: Json) -> bool:
    """Whether the schema's validator takes the value."""
    return read(schema).admits(value)


def minimal(schema: Parameters) -> Json:
    """A smallest valid value: always the same, as a new object.

    Raises:
        NoValue: none is known; `unsupported` says why.
    """
    reading = read(schema)
    value = smallest(reading)
    if not reading.admits(value):
        raise NoValue
    return value


@lru_cache(512)
def _unsupported(reading: Reading) -> tuple[str, ...]:
    made = builder(reading)
    remarks = list(reading.remarks)
    for place in places(made):
        remarks += _not_made(made, place)
    if _valid(reading).is_empty:
        remarks.append("#: no valid value is known")
    else:
        try:
            minimal(reading.source)
        except NoValue:
            remarks.append("#: no smallest value is known")
    return tuple(dict.fromkeys(remarks))


def unsupported(schema: Parameters) -> tuple[str, ...]:
    """What of the schema is not taken as written, or cannot be made: one line each, with where and why; mostly none.

    Values are valid all the same: what is named here is ignored (it is not sound), left out (an optional property
    whose values cannot be made), without meaning (a format that is not JSON Schema's), or leaves no value at all.
    """
    return _unsupported(read(schema))


def _not_made(made: Builder, place: Place) -> list[str]:
    path, view = place.path or "#", place.node.view()
    found = []
    if isinstance(view, views.StringView):
        found += [
            f"{path}: format {name!r} is not JSON Schema's: any string is given"
            for name in view.formats
            if format_strategy(name) is None
        ]
        found += [
            f"{path}: pattern {pattern!r} is beyond Python's re"
            for pattern in view.patterns
            if compiled(pattern) is None
        ]
    if made.of(place.node, place.depth).is_empty and place.steps:
        found.append(f"{path}: no valid value is known")
    return found


def _held(reading: Reading, values: SearchStrategy[Json]) -> SearchStrategy[Json]:
    """Values held to the schema's own validator: what the canonical form or its strategies get wrong is not given."""
    try:
        fallback = smallest(reading)
    except NoValue:
        return values.filter(reading.admits)
    return held(values, reading.admits, fallback) if reading.admits(fallback) else values.filter(reading.admits)


@lru_cache(512)
def _valid(reading: Reading) -> SearchStrategy[Json]:
    values = builder(reading).root()
    return values if values.is_empty else _held(reading, values)


@lru_cache(512)
def _faults(reading: Reading) -> tuple[Fault, ...]:
    made = builder(reading)
    return tuple(fault for place in places(made) for fault in faults(made, place))


@st.composite
def _near_misses(draw: DrawFn, reading: Reading, right: SearchStrategy[Json], found: Sequence[Fault]) -> NearMiss:
    faults_ = st.sampled_from(found)
    for _ in range(_TRIES):
        fault = draw(faults_)
        words = ""

        def spoil(value: Json, fault: Fault = fault) -> Json:
            nonlocal words
            wrong, words = fault.wrong(draw, value)
            return wrong

        value = put(draw, draw(right), fault.place.steps, spoil)
        if not reading.admits(value):
            path = fault.place.path
            return NearMiss(value, f"{path}: {words}" if path else words, fault.keyword)
    assume(condition=False)
    raise AssertionError
