"""Values that are reordered arbitrarily, such as sets, whose order each process draws anew. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from gym_conformance.trajectories.outcome import Difference, Outcome, values_at
from gym_schemas.json_values import text

_WORD: Final = re.compile(r"\w+")

#: Fewer members are always sorted.
_FEW: Final = 3


def reordered(before: Outcome, after: Outcome, difference: Difference) -> bool:
    """Whether the same words, or members of a list, come in another order, and the first order means nothing.

    It means something if the moved members rise or fall: a list that was sorted and no longer is has changed. A few
    members are sorted by chance now and then, so the later order decides nothing.
    """
    return any(_drawn(one, two) for one, two in _sequences(before, after, difference))


def _sequences(before: Outcome, after: Outcome, difference: Difference) -> Iterator[tuple[list[Any], list[Any]]]:
    """The sequences in both outcomes around the difference: the words of texts, and the lists that contain them."""
    if isinstance(difference.expected, str) and isinstance(difference.actual, str):
        yield from _told(difference.expected, difference.actual)
    for length in range(2, len(difference.place)):
        for one in values_at(before, difference.place[:length]):
            for two in values_at(after, difference.place[:length]):
                if isinstance(one, list) and isinstance(two, list):
                    yield one, two


def _told(one: str, two: str) -> Iterator[tuple[list[Any], list[Any]]]:
    """The words that moved, and their neighbors with the same separator: `north, south, west`."""
    words, others = (_WORD.findall(each) for each in (one, two))
    between = _WORD.split(one)
    if sorted(words) != sorted(others) or between != _WORD.split(two):
        return
    moved = [at for at, (was, now) in enumerate(zip(words, others, strict=True)) if was != now]
    first, last = moved[0], moved[-1]
    sign = between[first + 1]
    if not sign.strip() or set(between[first + 1 : last + 1]) != {sign}:
        return  # prose
    while first and between[first] == sign:
        first -= 1
    while last + 1 < len(words) and between[last + 1] == sign:
        last += 1
    yield words[first : last + 1], others[first : last + 1]


def _drawn(one: Sequence[Any], two: Sequence[Any]) -> bool:
    alike = sorted(map(text, one)) == sorted(map(text, two))
    return alike and len(one) >= _FEW and not _is_sorted(one)


def _is_sorted(members: Sequence[Any]) -> bool:
    """Whether the members rise or fall, by themselves or by one of their fields."""
    if all(isinstance(each, dict) for each in members):
        return any(_is_sorted([each.get(key) for each in members]) for key in members[0])
    try:
        return all(one <= two for one, two in pairwise(members)) or all(one >= two for one, two in pairwise(members))
    except TypeError:
        return False
