"""Other values in a known trajectory's calls: allowed ones, and no ids."""

from dataclasses import replace

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.trajectories.other_values import with_other_members, with_other_numbers, with_other_options
from gym_conformance.trajectories.trajectory import Trajectory
from tests.trajectories.test_renaming import LENDS, ROW


def test_other_numbers_are_allowed_ones_and_no_ids() -> None:
    other = with_other_numbers(LENDS)
    assert other is not None
    assert other.calls[0].arguments == {"name": "saw", "book_id": 7, "count": 1, "kind": "tool"}
    assert with_other_numbers(Trajectory(ROW, (Call("lend", {"name": "saw"}),))) is None


def test_other_members_are_the_next_of_what_is_listed_in_all_calls() -> None:
    (other,) = with_other_members(replace(LENDS, calls=(*LENDS.calls, Call("lend", {"kind": "fruit"}))))
    assert [call.arguments["kind"] for call in other.calls] == ["fruit", "tool"]
    assert other.calls[0].arguments == {**LENDS.calls[0].arguments, "kind": "fruit"}
    assert not [*with_other_members(Trajectory(ROW, (Call("lend", {"name": "saw"}),)))]


def test_members_are_found_in_lists_and_objects_too() -> None:
    days = {"type": "array", "items": {"enum": ["mon", "tue"]}}
    plan = {"type": "object", "properties": {"days": days}}
    tool = {"type": "function", "name": "book", "parameters": {"type": "object", "properties": {"plan": plan}}}
    row = Row({"responses_create_params": {"input": "x", "tools": [tool]}}, ROW.source)
    (other,) = with_other_members(Trajectory(row, (Call("book", {"plan": {"days": ["mon"]}}),)))
    assert other.calls[0].arguments == {"plan": {"days": ["tue"]}}


def test_other_options_are_values_of_all_that_is_no_text_and_what_was_left_out() -> None:
    [call] = with_other_options(Trajectory(ROW, (Call("lend", {"name": "saw", "kind": "tool"}),))).calls
    assert call.arguments["name"] == "saw"
    assert call.arguments["kind"] == "fruit"
    assert {"book_id", "count"} <= call.arguments.keys()
