"""What comes in another order, and in none that could be read: sets, whose order each process draws anew. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from gym_conformance.trajectories.outcome import Difference, Outcome, said_at
from gym_schemas.json_values import text

_WORD: Final = re.compile(r"\w+")

#: Fewer are always sorted.
_FEW: Final = 3


def reordered(before: Outcome, after: Outcome, difference: Difference) -> bool:
    """Whether there are the same words, or the same members of a list, in another order, and neither order means anything.

    An order means something where what moved rises or falls: a list that was sorted, and is not any more, has changed.
    """
    return any(_drawn(one, two) for one, two in _sequences(before, after, difference))


def _sequences(before: Outcome, after: Outcome, difference: Difference) -> Iterator[tuple[list[Any], list[Any]]]:
    """The words of both, and the lists that they lie in."""
    if isinstance(difference.expected, str) and isinstance(difference.actual, str):
        yield _WORD.findall(difference.expected), _WORD.findall(difference.actual)
    for length in range(2, len(difference.place)):
        for one in said_at(before, difference.place[:length]):
            for two in said_at(after, difference.place[:length]):
                if isinstance(one, list) and isinstance(two, list):
                    yield one, two


def _drawn(one: Sequence[Any], two: Sequence[Any]) -> bool:
    if sorted(map(text, one)) != sorted(map(text, two)):
        return False
    moved = [at for at, (was, now) in enumerate(zip(one, two, strict=True)) if text(was) != text(now)]
    spans = [each[moved[0] : moved[-1] + 1] for each in (one, two)] if moved else []
    return any(len(each) >= _FEW for each in spans) and not any(map(_is_sorted, spans))


def _is_sorted(members: Sequence[Any]) -> bool:
    """Whether they rise or fall, by themselves or by one of their fields."""
    if all(isinstance(each, dict) for each in members):
        return any(_is_sorted([each.get(key) for each in members]) for key in members[0])
    try:
        return all(one <= two for one, two in pairwise(members)) or all(one >= two for one, two in pairwise(members))
    except TypeError:
        return False
