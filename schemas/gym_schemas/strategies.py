"""Hypothesis strategies for a tool's arguments: valid ones, and ones with exactly one fault."""

from functools import lru_cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from gym_schemas.choices import Choices
from gym_schemas.json_values import Json
from gym_schemas.making import Maker, Mined, makeable
from gym_schemas.near_misses import NearMiss, faults, near_miss
from gym_schemas.schema_reading import Parameters, SchemaReading, read

#: Characters of valid strings: control characters and lone surrogates are left to hostile ones. Not defined by a codec,
#: as in `st.text` by default: Hypothesis would then encode every character there is, which takes a second per folder.
_ALPHABET = st.characters(exclude_categories=("Cc", "Cs"))
_NOTHING_MINED: Mined = {}

_integers = lru_cache(4_096)(st.integers)
_texts = lru_cache(1_024)(lambda low, high: st.text(_ALPHABET, min_size=low, max_size=high))
_floats = lru_cache(1_024)(st.floats)
_PADDING = st.one_of(st.just(""), st.text(_ALPHABET, max_size=5))


class Drawn(Choices):
    """Choices drawn by Hypothesis, which shrinks them to the simplest."""

    tries = 4

    def __init__(self, draw: DrawFn) -> None:
        super().__init__()
        self._draw = draw

    def whole(self, low: int, high: int) -> int:
        return low if low == high else self._draw(_integers(low, high))

    def fraction(self, low: float, high: float) -> float:
        return self._draw(_floats(low, high))

    def text(self, low: int, high: int | None) -> str:
        return self._draw(_texts(low, high))

    def padding(self) -> str:
        return self._draw(_PADDING)


def drawn_maker(draw: DrawFn, reading: SchemaReading, mined: Mined = _NOTHING_MINED) -> Maker:
    """A maker of values that Hypothesis draws."""
    return Maker(reading, Drawn(draw), mined)


def valid_arguments(schema: Parameters, mined: Mined = _NOTHING_MINED) -> SearchStrategy[Any]:
    """Values that the schema admits: objects, if it asks for objects, and simple ones first.

    `mined` are known good values by the name of a property, at any depth (recorded arguments, or what the server
    returned). Where the schema admits them, they are drawn three times out of four. Properties whose values it does not
    constrain are included, too; undeclared properties only if the schema mentions any, or names none.
    Empty (`is_empty`) if no value can be made.
    """
    reading = read(schema)
    return _valid(reading) if not mined else _values(reading, mined) if makeable(reading) else st.nothing()


@lru_cache(512)
def _valid(reading: SchemaReading) -> SearchStrategy[Json]:
    return _values(reading, _NOTHING_MINED) if makeable(reading) else st.nothing()


@st.composite
def _values(draw: DrawFn, reading: SchemaReading, mined: Mined) -> Json:
    return drawn_maker(draw, reading, mined).value()


def near_misses(schema: Parameters) -> SearchStrategy[NearMiss]:
    """Values that the schema refuses: valid ones with one fault at one place, all faults being equally likely.

    Empty if no fault is possible, or no valid value is known.
    """
    reading = read(schema)
    return _misses(reading) if makeable(reading) and faults(reading) else st.nothing()


@st.composite
def _misses(draw: DrawFn, reading: SchemaReading) -> NearMiss:
    found = near_miss(drawn_maker(draw, reading))
    assume(found is not None)
    assert found is not None  # noqa: S101 (for the type checker)
    return found
