"""Of many values the first of each kind."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def first_of_each(kind: Callable[[T], K], values: Iterable[T]) -> dict[K, T]:
    """The first value of each kind, by kind, in the order of the values."""
    found: dict[K, T] = {}
    for value in values:
        found.setdefault(kind(value), value)
    return found
