"""What differs between two runs alone is not compared in a third: values in their places, and keys that are drawn."""

from typing import Any

import pytest

from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences, moved, volatile


def said(body: Any) -> Outcome:
    return Outcome((StepOutcome("/look", 200, body),))


@pytest.mark.parametrize(
    ("first", "second", "third", "differs"),
    [
        ({"id": "a", "n": 1}, {"id": "b", "n": 1}, {"id": "c", "n": 1}, False),
        ({"id": "a", "n": 1}, {"id": "b", "n": 1}, {"id": "c", "n": 2}, True),
        ({"orders": {"a": 1}}, {"orders": {"b": 1}}, {"orders": {"c": 1}}, False),
        ({"orders": {"a": 1, "n": 1}}, {"orders": {"b": 1, "n": 1}}, {"orders": {"c": 1, "n": 2}}, True),
        ({"orders": {"a": 1}}, {"orders": {"b": 1}}, {"orders": {"c": 1}, "more": 1}, True),
        ({"n": 1}, {"n": 1, "now_and_then": 1}, {"n": 1, "other": 1}, True),
    ],
)
def test_what_varies_is_not_compared(first: Any, second: Any, third: Any, differs: bool) -> None:
    found = list(differences(said(first), said(third), volatile(said(first), said(second))))
    assert bool(found) == differs, found


def test_numbers_have_moved_by_their_difference_unless_a_float_cannot_hold_one() -> None:
    assert moved(said({"n": 1.5}), said({"n": 4})) == said({"n": 2.5})
    assert moved(said({"n": 1.5}), said({"n": 10**400})) == said({"n": 10**400})
