"""Names that nobody has used, in calls and rows, and read back from replies; markers that belong to one session."""

from pathlib import Path
from random import Random

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.markers import marked_sessions, markers, renewed
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trajectories.renaming import (
    days_in,
    names_in,
    new_names,
    phrased,
    read_back,
    renamed,
    shared_names,
    taking,
)
from gym_conformance.trajectories.trajectory import Trajectory

_ARGUMENTS = {
    "name": {"type": "string"},
    "book_id": {"type": "integer"},
    "count": {"type": "integer", "minimum": 1},
    "kind": {"type": "string", "enum": ["fruit", "tool"]},
}
_TOOL = {"type": "function", "name": "lend", "parameters": {"type": "object", "properties": _ARGUMENTS}}
ROW = Row(
    {"responses_create_params": {"input": "x", "tools": [_TOOL]}, "shelf": {"saw": 3}, "books": [{"id": 7}]},
    Source(Path("rows.jsonl"), 1),
)
LENDS = Trajectory(ROW, (Call("lend", {"name": "saw", "book_id": 7, "count": 2, "kind": "tool"}),))
DRAW = Random(1)


def test_names_are_texts_that_take_any_word_and_numbers_of_ids() -> None:
    assert names_in(LENDS) == (frozenset({"saw", 7}), frozenset({"saw"}))


def test_calls_and_row_get_the_new_names_and_replies_are_read_back() -> None:
    names = new_names(frozenset({"saw", 7}), DRAW)
    other = renamed(LENDS, names)
    assert other.calls[0].arguments == {"name": names["saw"], "book_id": names[7], "count": 2, "kind": "tool"}
    assert other.row.data["shelf"] == {names["saw"]: 3}
    assert other.row.data["books"] == [{"id": names[7]}]
    assert other.row.data["responses_create_params"] is ROW.data["responses_create_params"]
    reply = Outcome((StepOutcome("/lend", 200, {"lent": [names[7]], "says": f"You have {names['saw']}."}),))
    assert read_back(reply, names).steps[0].body == {"lent": [7], "says": "You have saw."}


def test_days_get_other_days_in_their_order_and_keep_their_times() -> None:
    said = ("2026-03-02", "2026-03-03T10:00", "2026-03-02 09:30", "10:00", "someday")
    lends = Trajectory(ROW, tuple(Call("lend", {"name": text}) for text in said))
    days = days_in(lends)
    assert days == frozenset(said[:3]) | {"2026-03-03"}
    names = new_names(days, DRAW)
    assert names["2026-03-02"] < names["2026-03-03"]
    assert names["2026-03-03T10:00"] == names["2026-03-03"] + "T10:00"
    assert names["2026-03-02 09:30"] == names["2026-03-02"] + " 09:30"
    reply = Outcome((StepOutcome("/lend", 200, f"free on {names['2026-03-03']}"),))
    assert read_back(reply, names).steps[0].body == "free on 2026-03-03"


def test_a_field_keeps_its_name_whatever_is_called_so() -> None:
    lends = Trajectory(ROW, (Call("lend", {"name": "name", "book_id": 7}), Call("lend", {"name": "shelf"})))
    other = renamed(lends, {"name": "zqa", "shelf": "zqb", "saw": "zqc"})
    assert [call.arguments for call in other.calls] == [{"name": "zqa", "book_id": 7}, {"name": "zqb"}]
    assert other.row.data["shelf"] == {"zqc": 3}


def test_what_is_sorted_stays_sorted() -> None:
    names = new_names(frozenset({"a", "b", "c", 1, 2}), DRAW)
    assert [names[old] for old in "abc"] == sorted(names[old] for old in "abc")
    assert names[1] < names[2]


def test_two_sessions_share_no_marker_and_each_try_has_its_own() -> None:
    for schedule in marked_sessions(Knowledge((ROW,), known_trajectories=(LENDS,)), DRAW):
        words = [markers(str([call.arguments for call in one.calls])) for one in schedule.trajectories]
        assert sum(map(len, words)) == len(frozenset().union(*words)) > 0
        again = renewed(schedule, DRAW)
        told = [markers(str([call.arguments for call in one.calls])) for one in again.trajectories]
        assert [len(each) for each in told] == [len(each) for each in words]
        assert not told[0] & words[0]


def test_a_name_is_new_within_the_texts_of_a_row_too_where_it_stands_as_a_word() -> None:
    row = Row({**ROW.data, "titles": ["The saw and I", "I saw", "seesaw", "saw"]}, ROW.source)
    names = new_names(frozenset({"saw"}), DRAW)
    new = names["saw"]
    titles = renamed(Trajectory(row, LENDS.calls), names).row.data["titles"]
    assert titles == [f"The {new} and I", f"I {new}", "seesaw", new]


def test_a_name_is_new_within_texts_in_any_case_as_a_search_finds_it() -> None:
    row = Row({**ROW.data, "titles": ["A Saw", "SAW and I", "saw"]}, ROW.source)
    titles = renamed(Trajectory(row, LENDS.calls), {"saw": "zqa"}).row.data["titles"]
    assert titles == ["A zqa", "zqa and I", "zqa"]


def test_things_of_another_row_take_the_same_new_names() -> None:
    assert taking(frozenset({"hammer", "nail", 9}), {"saw": "zqa", 7: 100}) == {"hammer": "zqa", 9: 100}


def test_rows_share_texts_and_no_numbers() -> None:
    rows = [
        Row({"seed": 7, "task": {"task_id": "t-1"}, "kind": "sums", "answer": at}, Source(Path("rows.jsonl"), at))
        for at in (1, 2)
    ]
    assert shared_names(rows) == [("t-1", *rows), ("sums", *rows)]
    assert shared_names([rows[0], rows[0]]) == []


def test_a_number_that_says_how_many_stays() -> None:
    row = Row({**ROW.data, "books_in_all": 7}, ROW.source)
    names = {7: 123456}
    assert renamed(Trajectory(row, LENDS.calls), names).row.data["books_in_all"] == 7
    assert renamed(Trajectory(row, LENDS.calls), names).row.data["books"] == [{"id": 123456}]


def test_a_new_word_stands_behind_what_a_read_asks_for_and_is_read_back() -> None:
    tool = {"type": "function", "name": "search", "parameters": {"properties": {"query": {"type": "string"}}}}
    row = Row({"responses_create_params": {"input": "x", "tools": [tool]}, "query": "saws"}, Source(Path("r"), 1))
    asked, names = phrased(Trajectory(row, (Call("search", {"query": "saws"}),)), DRAW)
    assert asked.calls[0].arguments["query"].startswith("saws zq")
    assert asked.row is row
    told = Outcome((StepOutcome("/search", 200, [f"no {names['saws']}"]),))
    assert read_back(told, names).steps[0].body == ["no saws"]
