"""What differs between two runs alone is not compared in a third: values in their places, and keys that are drawn."""

from typing import Any

import pytest

from gym_conformance.session.exchange import Reply
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, moved, volatile


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
        ("Ticket 10 is open.", "Ticket 11 is open.", "Ticket 12 is open.", False),
        ("Ticket 10 is open.", "Ticket 11 is open.", "Ticket 12 is closed.", True),
        ("Ticket 10 is open.", "Ticket 11 is open.", "None is open.", True),
        ("Ticket 10 is open.", "None is open.", "Ticket 12 is closed.", False),
        ("X1-a/b", "X2 -c", "X3", False),
        ("X1-a/b", "X2", "X3 -c", False),
    ],
)
def test_what_varies_is_not_compared(first: Any, second: Any, third: Any, differs: bool) -> None:
    found = list(differences(said(first), said(third), volatile(said(first), said(second))))
    assert bool(found) == differs, found


def test_the_last_digits_of_a_reward_are_not_compared() -> None:
    rewards = (0.1 + 0.2 + 0.7, 0.7 + 0.2 + 0.1, 0.9999)
    one, reordered, other = (
        StepOutcome.of_verify(Reply(200, (), f'{{"reward": {reward!r}}}'.encode(), 0.0)) for reward in rewards
    )
    assert one == reordered != other


def test_numbers_have_moved_by_their_difference_unless_a_float_cannot_hold_one() -> None:
    assert moved(said({"n": 1.5}), said({"n": 4})) == said({"n": 2.5})
    assert moved(said({"n": 1.5}), said({"n": 10**400})) == said({"n": 10**400})


@pytest.mark.parametrize(
    ("key", "values", "differs"),
    [
        ("elapsed_ms", (2, 31), False),
        ("tookMs", (2, 31), False),
        ("seconds", (0.0001, 0.0003), False),
        ("execution_time", (0, 0.01), False),
        ("micros", (90, 1100), False),
        ("duration", (30, 45), True),
        ("elapsed_ms", (2, 10**400), True),
        ("time_left", (2, 3), True),
        ("waited", (0.0, 0.008), False),
        ("waited", (0, 0.008), False),
        ("pieces", (0, 1), True),
        ("share", (0.05, 0.08), True),
    ],
)
def test_how_long_a_reply_took_is_of_time(key: str, values: tuple[float, float], differs: bool) -> None:
    first, second = (Outcome((StepOutcome("/look", 200, {key: value}, Reply(200, (), b"", 0.04)),)) for value in values)
    [found] = differences(first, second)
    assert found.of_time != differs
    assert volatile(first, second) == {found.place}  # not compared with what is recorded either


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (("body", "lines", 0, "count"), "lines.0.count of /list_stock is 3"),
        (("status",), "status of /list_stock is 3"),
        (("body",), "/list_stock answers 3"),
    ],
)
def test_a_difference_says_where_it_is(place: tuple[str | int, ...], shown: str) -> None:
    assert Difference((1, *place), "/list_stock", 3, 4).answer == shown
