"""When two texts may come to the same answer."""

import pytest

from gym_conformance.contract.row_fields import may_be_the_same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("red green", "green red", True),
        ("1 2\n3 4", "3 4\n1 2", True),
        ("1 2\n3 4", "2 1\n4 3", False),
        ("1\n2", "2\n1", True),
        ("red green\nblue", "blue\nred green", True),
        ("12", "17", False),
    ],
)
def test_tables_are_the_same_by_their_rows(one: str, other: str, *, same: bool) -> None:
    assert may_be_the_same(one, other) is same
