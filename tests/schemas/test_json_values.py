"""Differences and equality, as JSON Schema has them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_schemas import ABSENT, differences, distance, mapped, name_of, same, scalars, without
from gym_schemas.json_values import identity

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 1), st.sampled_from([0.0, 1.0, 0.5]), st.sampled_from("a1")),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (1, 1.0, []),
        (True, 1, ["the whole differs"]),
        ([0], [False], ["/0 differs"]),
        ([1], [1, 2], ["the whole differs"]),
        ({"a": 1, "x/y": 2}, {"a": 2, "b": None}, ["/a differs", "/x~1y is gone", "/b is new"]),
        ({"a": None}, {}, ["/a is gone"]),
        (ABSENT, {}, ["the whole is new"]),
    ],
)
def test_what_differs(before: Any, after: Any, found: list[str]) -> None:
    assert [str(change) for change in differences(before, after)] == found


@given(VALUES, VALUES)
def test_three_words_for_equality_agree(one: Any, two: Any) -> None:
    assert same(one, two) is (identity(one) == identity(two)) is (distance(one, two) == 0)


def test_without() -> None:
    value = {"a": [{"b": 1, "c": 2}], "d": 3}
    assert without(value, ("a", 0, "b")) == {"a": [{"c": 2}], "d": 3}
    assert without(value, ("d",)) == {"a": [{"b": 1, "c": 2}]}


@given(VALUES)
def test_what_has_no_parts_is_found_and_changed_in_its_place(value: Any) -> None:
    assert mapped(value, lambda each, _: each) == value
    found = list(scalars(value))
    assert list(scalars(mapped(value, lambda each, way: f"{name_of(way)}{each}"))) == [
        (f"{name_of(way)}{each}", way) for each, way in found
    ]


def test_leaves_are_changed_whole_and_keys_by_themselves() -> None:
    value = {"a": [{"id": 1}, 2]}
    assert mapped(value, lambda each, _: str(each), leaf=lambda each: each == {"id": 1}, keys=str.upper) == {
        "A": ["{'id': 1}", "2"]
    }
