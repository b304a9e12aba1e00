"""Groups values by a key: all values of each key, the distinct ones, or the first; or orders them, the first of each kind before the rest."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def grouped(kind: Callable[[T], K], values: Iterable[T]) -> dict[K, list[T]]:
    """The values by key, in their order."""
    found: dict[K, list[T]] = {}
    for value in values:
        found.setdefault(kind(value), []).append(value)
    return found


def distinct(pairs: Iterable[tuple[K, T]], identity: Callable[[T], Hashable] | None = None) -> dict[K, tuple[T, ...]]:
    """The values of each key without duplicates, in their order; `identity` is for values that are not hashable."""
    found: dict[K, dict[Hashable, T]] = {}
    for key, value in pairs:
        found.setdefault(key, {}).setdefault(identity(value) if identity else value, value)
    return {key: tuple(values.values()) for key, values in found.items()}


def first_of_each(kind: Callable[[T], K], values: Iterable[T]) -> dict[K, T]:
    """The first value by key, in the order of the values."""
    return {key: several[0] for key, several in grouped(kind, values).items()}


def each_kind_first(kind: Callable[[T], Hashable], values: Iterable[T]) -> list[T]:
    """The first value of each key, in their order, and then the others, key by key."""
    kinds = grouped(kind, values).values()
    return [*(several[0] for several in kinds), *(value for several in kinds for value in several[1:])]


def round_robin(several: Iterable[Iterable[T]]) -> Iterator[T]:
    """The first value of each, then the second of each, and so on, as far as there are any."""
    none_left: Any = object()
    for turn in zip_longest(*several, fillvalue=none_left):
        yield from (value for value in turn if value is not none_left)
