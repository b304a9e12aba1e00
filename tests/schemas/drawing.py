"""Drawing many values of a strategy, without chance."""

from typing import TypeVar

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int = 40) -> list[T]:
    """The values of a derandomized Hypothesis test of so many examples; no health check is suppressed."""
    values: list[T] = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None)
    @given(strategy)
    def collect(value: T) -> None:
        values.append(value)

    collect()
    return values
