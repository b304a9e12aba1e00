"""A set comes in another order from each process; a list that was sorted, and is not any more, has changed."""

from typing import Any

import pytest

from gym_conformance.trajectories.orders import reordered
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences


def objects(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "size": len(name)} for name in names]


@pytest.mark.parametrize(
    ("before", "after", "drawn"),
    [
        ("exits: north, down, east", "exits: east, down, north", True),
        ("exits: north, down, east; it is late", "exits: down, north, east; it is late", True),
        ("exits: north, down, east", "exits: north, east, down", True),
        ("exits: down, east, north", "exits: east, down, north", False),  # was sorted
        ("from the attic to the barn", "from the barn to the attic", False),  # no list
        ("exits: north, down, east", "exits: east, down, west", False),
        ("exits: north, down", "exits: down, north", False),
        (["oslo", "cairo", "lima"], ["lima", "cairo", "oslo"], True),
        (["cairo", "lima", "oslo"], ["lima", "cairo", "oslo"], False),
        (["oslo", "cairo", "lima"], ["lima", "cairo", "lima"], False),
        ([3, 1, 2], [2, 1, 3], True),
        ([3, 1, 2], [2, 1, "3"], False),
        (objects("pear", "fig", "orange"), objects("orange", "fig", "pear"), True),
        (objects("fig", "pear", "orange"), objects("orange", "fig", "pear"), False),  # by size
        (17, 71, False),
    ],
)
def test_only_an_order_that_means_nothing_is_another_one_of_a_set(before: Any, after: Any, drawn: bool) -> None:
    one, two = (Outcome((StepOutcome("/look", 200, {"said": body}),)) for body in (before, after))
    assert all(reordered(one, two, each) for each in differences(one, two)) is drawn
