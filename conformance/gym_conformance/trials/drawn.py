"""Whether sessions on one row see a new random world each, or the same one with other ids and times. Pure."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from gym_conformance.trajectories.clock import without_moments
from gym_conformance.trajectories.outcome import Outcome, Place, differences, masked, tells_time, values_at
from gym_conformance.trials.before_and_after import by_design

_WORD: Final = re.compile(r"[\w-]+")


def minted(place: Place, outcomes: Sequence[Outcome]) -> bool:
    """Whether the place holds an id or a time: no two outcomes have the same one, and nothing else in it differs."""
    values = [value for outcome in outcomes for value in values_at(outcome, place)]
    if by_design(place, *values):
        return True
    if len(values) < len(outcomes):  # the key itself is an id
        return any(map(str.isdigit, str(place[-1]))) and isinstance(place[-1], str)
    if all(isinstance(value, str) for value in values):
        texts = [_WORD.findall(without_moments(value)) for value in values]
        return len(set(map(len, texts))) == 1 and all(
            len(set(words)) in (1, len(values)) for words in zip(*texts, strict=True)
        )
    return all(map(tells_time, values)) or (
        all(type(value) is int for value in values) and len(set(values)) == len(values)
    )


def told_alike(
    outcomes: Sequence[Outcome], chance: frozenset[Place], *, in_order: bool = False
) -> Callable[[Outcome, Outcome, int], bool]:
    """A predicate: did two of the outcomes get the same random data before a step? `chance` has the places that vary.

    Ids and times may differ, and so may the order of lists unless `in_order`.
    """
    is_id = cache(lambda place: minted(place, outcomes))

    def alike(one: Outcome, two: Outcome, step: int) -> bool:
        for difference in differences(one, two):
            at = int(difference.place[0])
            if at >= step:
                break
            by_chance = any(masked(place, chance) for place in difference.places)
            differs = by_chance and not is_id(difference.place)
            if differs and (in_order or not _reordered(one, two, at)):
                return False
        return True

    return alike


def _reordered(one: Outcome, two: Outcome, at: int) -> bool:
    return bool(_ordered(one.steps[at].body) == _ordered(two.steps[at].body))


def _ordered(value: Any) -> Any:
    """The value with all its lists sorted."""
    if isinstance(value, dict):
        return {key: _ordered(inner) for key, inner in value.items()}
    return sorted(map(_ordered, value), key=repr) if isinstance(value, list) else value
