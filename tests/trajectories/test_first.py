"""The examples that each property begins with, where rollouts are recorded, and where none is."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.trajectories.bounds import with_bounds
from gym_conformance.trajectories.disturbed import known_disturbed, with_each_tool_invalid
from gym_conformance.trajectories.execute import FEW
from gym_conformance.trajectories.first import around, at_once, known_in_part, side_by_side
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import Knowledge, disturbed, is_read
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.reading_back import ReadBack, reading_back
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Reference, Trajectory, asks_another, is_reference
from tests.twins.twin import Turn, rollout_of

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def row(number: int) -> Row:
    """A row with a write and a read."""
    tools = [{"type": "function", "name": name, "parameters": _TEXT} for name in ("get_note", "put_note")]
    return Row({"responses_create_params": {"input": "x", "tools": tools}}, Source(Path("rows.jsonl"), number))


ROWS = row(1), row(2), row(3)


def test_recorded_ones_of_different_rows_come_first_and_made_up_ones_after_them() -> None:
    long, short = Trajectory(ROWS[0], (Call("get_note", {}),) * 3), Trajectory(ROWS[0], (Call("get_note", {}),))
    other = Trajectory(ROWS[1], (Call("put_note", {}),))
    found = known(Knowledge(ROWS, known_trajectories=(long, short, other)))
    assert found[:2] == [long, other]
    assert found[3] is short
    assert [call.name for call in found[2].calls] == ["put_note", "get_note"], "a write, and then a read"


def test_those_come_first_that_call_the_most_tools_between_them() -> None:
    long = Trajectory(ROWS[0], (Call("get_note", {}),) * 3)
    alike, other = Trajectory(ROWS[1], (Call("get_note", {}),) * 2), Trajectory(ROWS[2], (Call("put_note", {}),))
    assert known(Knowledge(ROWS, known_trajectories=(long, alike, other))) == [long, other, alike]


def test_a_shorter_one_of_a_row_comes_first_if_it_alone_calls_a_tool() -> None:
    one, two = [Trajectory(each, (Call("get_note", {}),) * 2) for each in ROWS[:2]]
    puts = Trajectory(ROWS[1], (Call("put_note", {}),))
    assert known(Knowledge(ROWS[:2], known_trajectories=(one, two, puts))) == [one, puts, two]


def test_one_that_writes_with_other_tools_meets_itself_however_many_the_first_one_writes_with() -> None:
    many = Trajectory(ROWS[0], tuple(Call(f"put_{word}", {}) for word in ("note", "mark", "stamp", "seal")))
    other = Trajectory(ROWS[1], (Call("draw_card", {}),))
    met = [schedule.trajectories for schedule in side_by_side(Knowledge(ROWS, known_trajectories=(many, other)))]
    assert (other, other) in met


def test_what_the_first_two_do_not_call_runs_at_once_too() -> None:
    put, get, seal, more = [
        Trajectory(each, (Call(name, {}), Call(name, {})))
        for each, name in zip((*ROWS, row(4)), ("put_note", "get_note", "seal_note", "get_note"), strict=True)
    ]
    found = at_once(Knowledge((*ROWS, row(4)), known_trajectories=(put, get, seal, more)))
    assert [{*schedule.trajectories} for schedule in found if seal in schedule.trajectories] == [{seal}]


def test_what_the_policy_had_said_before_is_no_id_of_the_server() -> None:
    """A reply that echoes it is not where it came from."""
    read = ("get_note", {"text": "shelf"}, {"text": "shelf", "next": "N-4711"})
    writes: list[Turn] = [("put_note", {"text": text}, {}) for text in ("shelf", "N-4711")]
    found = followed(ROWS[0], rollout_of(ROWS[0], read, *writes)).calls
    assert found[1].arguments == {"text": "shelf"}
    assert is_reference(found[2].arguments["text"])


@pytest.mark.parametrize(
    "name", ["get_quote", "hutInfo", "kiln_status", "list_open_orders", "email_search", "lookup", "getquote"]
)
def test_a_read_is_known_by_its_name(name: str) -> None:
    assert is_read(name)


@pytest.mark.parametrize("name", ["set_status", "check_in_guest", "book_hut", "update_order_status", "now", "checkout"])
def test_what_does_something_is_no_read(name: str) -> None:
    assert not is_read(name)


def test_without_rollouts_they_are_made_up() -> None:
    knowledge = Knowledge(ROWS)
    assert [trajectory.row for trajectory in known(knowledge)] == list(ROWS)
    assert [len(schedule.trajectories) for schedule in side_by_side(knowledge)] == [2] * 5
    assert all(schedule.concurrent for schedule in at_once(knowledge))
    assert any(schedule.meeting for schedule in at_once(knowledge))
    assert len({len(one.calls) for one in at_once(knowledge)[0].trajectories}) > 1, "one of them does nothing"
    assert [len(schedule.trajectories) for schedule in around(knowledge, 120)] == [121]
    assert all(schedule.trajectories[0].noise for schedule in known_disturbed(knowledge))


def test_a_known_call_is_made_again_with_a_name_that_is_not_there() -> None:
    written = Trajectory(ROWS[0], (Call("put_note", {"text": "shelf"}), Call("get_note", {"text": "shelf"})))
    found = [each.trajectories[0] for each in known_disturbed(Knowledge(ROWS[:1], known_trajectories=(written,)))]
    strange = next(each for each in found if each.noise == {1} and isinstance(each.calls[1].arguments.get("text"), str))
    assert [call.name for call in strange.calls] == ["put_note", "put_note", "get_note", "get_note"]
    assert [call.arguments for call in strange.without_noise().calls] == [{"text": "shelf"}] * 3


def test_a_path_leads_to_a_folder_that_is_not_there_and_keeps_its_last_name() -> None:
    calls = tuple(Call("put_note", {"text": text}) for text in ("old/saw.txt", "saw.txt"))
    found = [
        each.trajectories[0]
        for each in known_disturbed(Knowledge(ROWS[:1], known_trajectories=(Trajectory(ROWS[0], calls),)))
    ]
    said = [
        str(call.arguments["text"])
        for each in found
        for call in each.calls
        if isinstance(call.arguments.get("text"), str)
    ]
    strange = {text for text in said if text not in ("old/saw.txt", "saw.txt")}
    assert [text for text in strange if text.endswith("/saw.txt")]
    assert [text for text in strange if "saw" not in text]


def test_what_others_of_a_tool_were_given_is_said_before_a_later_call_ends_the_episode_too() -> None:
    calls = (Call("put_note", {"text": "milk"}), Call("get_note", {"text": "jam"}), Call("hand_in", {}))
    found = [
        each.trajectories[0]
        for each in known_disturbed(Knowledge(ROWS[:1], known_trajectories=(Trajectory(ROWS[0], calls),)))
    ]
    jam = Call("put_note", {"text": "jam"})
    assert {one.calls.index(jam) for one in found if jam in one.calls} == {1, 3}


def test_a_name_that_is_not_there_comes_in_the_place_of_a_known_call_too() -> None:
    """What a refused call did all the same, the known call would do once more."""
    read, write = Call("get_note", {}), Call("put_note", {"text": "shelf"})
    written = Trajectory(ROWS[0], (write, Call("add_stock", {"item": "saw"}), write, read))
    found = [each.trajectories[0] for each in known_disturbed(Knowledge(ROWS[:1], known_trajectories=(written,)))]
    instead = [
        one
        for one in found
        if [call.name for call in one.without_noise().calls] == ["put_note", "add_stock", "get_note"]
    ]
    assert [(one.noise, one.calls[2].arguments["text"] != "shelf") for one in instead] == [(frozenset({2}), True)]


def test_a_name_that_is_not_there_comes_in_the_place_of_one_that_a_reply_told() -> None:
    told = Reference(0, ("text",), "shelf").as_json()
    written = Trajectory(ROWS[0], (Call("get_note", {}), Call("put_note", {"text": told}), Call("get_note", {})))
    found = [each.trajectories[0] for each in known_disturbed(Knowledge(ROWS[:1], known_trajectories=(written,)))]
    said = [one.calls[at].arguments.get("text") for one in found for at in one.noise]
    assert [text for text in said if isinstance(text, str) and "shelf" not in text and len(text) > 1]


def test_a_number_comes_far_out_of_its_bounds_where_it_has_some_as_another_type_and_between_two() -> None:
    """Where it has none the tool may count on to it."""
    schema = {
        "type": "object",
        "properties": {"pieces": {"type": "integer", "minimum": 1, "maximum": 9}, "dice": {"type": "integer"}},
    }
    tools = [{"type": "function", "name": "put_dice", "parameters": schema}]
    bounded = Row({"responses_create_params": {"input": "x", "tools": tools}}, Source(Path("rows.jsonl"), 1))
    written = Trajectory(bounded, (Call("put_dice", {"pieces": 3, "dice": 2}),))
    *_, pieces, dice = with_each_tool_invalid(Knowledge((bounded,), known_trajectories=(written,)))
    wrong = [
        [one.calls[at].arguments for at in sorted(one.noise)] for [one] in (pieces.trajectories, dice.trajectories)
    ]
    assert wrong == [
        [{"pieces": each, "dice": 2} for each in (0, 10**27, -(10**27), 1e308, "many", None, 3.5)],
        [{"pieces": 3, "dice": each} for each in ("many", None, 2.5)],
    ]


def test_texts_that_mean_nothing_to_a_tool_are_tried_whatever_the_clock_says() -> None:
    """A tool that takes a query of its own language crashes on most texts, but not on an empty one."""
    found = with_bounds(Knowledge(ROWS))
    said = {call.arguments["text"] for one in found for call in one.trajectories[0].calls if call.name == "put_note"}
    assert {"", "a"} <= said
    assert len(found) <= 10


def test_whole_numbers_are_tried_as_clients_write_them() -> None:
    """JSON Schema takes 1000.0 for an integer; many servers do not, and no client writes it."""
    tool = {
        "type": "function",
        "name": "turn",
        "parameters": {"type": "object", "properties": {"page": {"type": "integer", "minimum": 1.0}}},
    }
    one = Row({"responses_create_params": {"input": "x", "tools": [tool]}}, Source(Path("rows.jsonl"), 1))
    pages = [
        call.arguments.get("page", 1) for each in with_bounds(Knowledge((one,))) for call in each.trajectories[0].calls
    ]
    assert len(pages) > 3
    assert {type(page) for page in pages} == {int}


def test_without_tools_there_are_none() -> None:
    bare = Row({"responses_create_params": {"input": "x"}}, Source(Path("rows.jsonl"), 1))
    assert not known(Knowledge((bare,)))
    assert not side_by_side(Knowledge((bare,)))


def _seated(*places: tuple[str, str]) -> Trajectory:
    """A rollout that seats people."""
    tool = {"type": "object", "properties": {"person": {"type": "string"}, "table": {"type": "string"}}}
    tools = [{"type": "function", "name": name, "parameters": tool} for name in ("seat_person", "move_person")]
    where = Row({"responses_create_params": {"input": "x", "tools": tools}}, Source(Path("rows.jsonl"), 1))
    return Trajectory(where, tuple(Call("seat_person", {"person": who, "table": table}) for who, table in places))


def test_what_a_rollout_never_put_together_is_combined() -> None:
    """So that somebody is seated where all seats are taken."""
    seated = _seated(("Ann", "one"), ("Bob", "two"), ("Cem", "two"))
    tried = [
        schedule.trajectories[0] for schedule in with_bounds(Knowledge((seated.row,), known_trajectories=(seated,)))
    ]
    said = [[tuple(call.arguments.values()) for call in one.calls] for one in tried]
    assert [("Ann", "one"), ("Bob", "one"), ("Cem", "one"), ("Ann", "two")] in said


def test_calls_without_arguments_are_made_until_nothing_is_left() -> None:
    """So that something is taken back where there is nothing left to take back."""
    put, undo = Call("put_note", {"text": "a"}), Call("undo", {})
    whole = Trajectory(ROWS[0], (put, put, undo, Call("list_notes", {}), undo))
    tried = [
        schedule.trajectories[0].calls for schedule in with_bounds(Knowledge(ROWS[:1], known_trajectories=(whole,)))
    ]
    assert (put, put, *(undo,) * 4) in tried


def test_reads_are_made_around_each_write() -> None:
    write, read = Call("put_note", {"text": "a"}), Call("get_note", {"text": "a"})
    [found] = reading_back(Knowledge(ROWS[:1], known_trajectories=(Trajectory(ROWS[0], (write, read)),)))
    assert found.calls == (*(read,) * 4, write, *(read,) * 6)
    read_back = ReadBack.of(found)
    assert read_back is not None
    assert (read_back.first, read_back.write) == (0, 4)
    assert ReadBack.of(Trajectory(ROWS[0], (write, read))) is None


@pytest.mark.parametrize(
    ("after", "torn"),
    [("a a a", ""), ("b b b", ""), ("b a b", "b"), ("b a a", ""), ("c a c", "")],
    ids=["old", "new", "both", "told once", "another"],
)
def test_replies_are_torn_where_they_are_old_and_new(after: str, torn: str) -> None:
    read, write = Call("get_note", {}), Call("put_note", {})
    said = [{"text": text, "clock": at} for at, text in enumerate(["a", "a", *after.split()])]
    answers = [StepOutcome("get_note", 200, each) for each in said]
    found = ReadBack(Trajectory(ROWS[0], (read, read, write, read, read, read)), 0, 2).torn(
        {"text": "b"}, answers[:2], answers[2:]
    )
    assert (found.actual if found else "") == torn


def test_a_text_that_cannot_be_read_comes_after_each_of_the_last_calls() -> None:
    said = [Call("put_note", {"text": text}) for text in ("(a)", "[b]", "{c}")]
    found = known_disturbed(Knowledge(ROWS[:1], known_trajectories=(Trajectory(ROWS[0], tuple(said)),)))
    unread = [
        schedule.trajectories[0]
        for schedule in found
        if any("=(" in str(call) for call in schedule.trajectories[0].calls)
    ]
    assert [min(one.noise) for one in unread] == [3, 2, 1]


def test_last_words_come_without_what_they_follow() -> None:
    done = Trajectory(ROWS[0], tuple(Call("put_note", {"text": str(at)}) for at in range(4)), answer="All is noted.")
    found = [schedule.trajectories[0] for schedule in known_in_part(Knowledge(ROWS[:1], known_trajectories=(done,)))]
    assert [(len(one.calls), one.answer) for one in found[:3]] == [(many, "All is noted.") for many in (4, 0, 2)]


def test_on_each_of_many_rows_nothing_is_done_once() -> None:
    found = [schedule.trajectories[0] for schedule in known_in_part(Knowledge(ROWS))]
    assert [each.row for each in found if not each.calls and each.answer == PLAIN_ANSWER][-3:] == list(ROWS)


def test_the_same_stands_beside_itself_in_other_words() -> None:
    one = Trajectory(ROWS[0], (Call("put_note", {"text": "milk"}), Call("get_note", {"text": "milk"})))
    pairs = [schedule.trajectories for schedule in side_by_side(Knowledge(ROWS[:1], known_trajectories=(one,)))]
    said = {
        tuple(call.arguments["text"] for call in other.calls)
        for mine, *others in pairs
        for other in others
        if mine is one
    }
    [other] = {words for words in said if words != ("milk", "milk")}
    assert len(set(other)) == 1, "a read asks for what was written"


@pytest.mark.parametrize(
    ("pace", "size"),
    [
        ({}, 16),
        ({"session_seconds": 0.002, "call_seconds": 0.01}, 16),
        ({"session_seconds": 0.002, "call_seconds": 0.3, "at_once": 64}, 16),
        ({"session_seconds": 0.002, "call_seconds": 3.5}, 1),
    ],
    ids=["unknown", "quick", "waits", "computes"],
)
def test_as_many_sessions_run_at_once_as_are_done_in_time(pace: dict[str, Any], size: int) -> None:
    assert Knowledge((), **pace).beside(16) == size


def test_more_than_a_few_run_at_once_only_where_the_server_waits() -> None:
    waits = partial(Knowledge, (), session_seconds=0.002, call_seconds=0.3)
    assert [waits(at_once=number).several for number in (1, 16)] == [3, 16]
    assert Knowledge(()).several == FEW


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_to_be_refused_is_drawn_of_rows_whose_tools_can_be_called(data: st.DataObject) -> None:
    tools = [{"type": "function", "name": "get_note", "parameters": {"not": {}}}]
    uncallable = Row({"responses_create_params": {"input": "x", "tools": tools}}, Source(Path("rows.jsonl"), 2))
    assert data.draw(disturbed(Knowledge((ROWS[0], uncallable)))).row is ROWS[0]


def test_another_session_reads_by_a_returned_value_before_the_trajectory_does() -> None:
    told = Reference(0, ("id",), "n-1").as_json()
    one = Trajectory(ROWS[0], (Call("put_note", {"text": "a"}), Call("get_note", {"text": told})))
    schedules = side_by_side(Knowledge(ROWS, known_trajectories=(one,)))
    asked = [
        each.order for each in schedules if any(map(asks_another, (c.arguments for c in each.trajectories[-1].calls)))
    ]
    assert asked == [(0, 0, 1, 1, 1)]
