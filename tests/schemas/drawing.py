"""Drawing many values of a strategy, without chance."""

from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gym_schemas import Json
from gym_schemas.schema_reading import SchemaReading
from gym_schemas.strategies import drawn_maker

T = TypeVar("T")


@st.composite
def made_at_once(draw: st.DrawFn, reading: SchemaReading) -> Json:
    """Values as they are first made, before they are held to the schema's validator."""
    return drawn_maker(draw, reading).make(reading.root)


def drawn(strategy: SearchStrategy[T], count: int = 40) -> list[T]:
    """The values of a derandomized Hypothesis test of so many examples; no health check is suppressed."""
    values: list[T] = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None)
    @given(strategy)
    def collect(value: T) -> None:
        values.append(value)

    collect()
    return values
