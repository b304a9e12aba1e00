"""A schedule as a finding shows it."""

from pathlib import Path

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.trajectories.trajectory import Reference, Schedule, Trajectory, asks_another

_ROW = Row({"responses_create_params": {"input": "x"}}, Source(Path("rows.jsonl"), 1))


def test_a_value_of_an_earlier_reply_is_told_in_words() -> None:
    own = Reference(0, ("lines", 0, "id"), otherwise=1).as_json()
    another = Reference(0, (), session=0).as_json()
    said = Reference(0, ("text",), otherwise=7, word=("Ticket ", 0)).as_json()
    one = Trajectory(_ROW, (Call("add", {}), Call("drop", {"ids": [own]}), Call("close", {"ticket": said})))
    two = Trajectory(_ROW, (Call("drop", {"id": another}),), answer="7")
    assert Schedule((one, two)).lines() == [
        "A | seed_session(rows.jsonl:1)",
        "A | add({})",
        'A | drop({"ids": ["<lines.0.id of the reply to call 1>"]})',
        'A | close({"ticket": "<what follows \'Ticket\' in text of the reply to call 1>"})',
        "A | verify",
        "B | seed_session(rows.jsonl:1)",
        'B | drop({"id": "<the reply to A\'s call 1>"})',
        'B | verify, after saying "7"',
    ]


def test_a_value_of_a_call_that_was_dropped_is_told_as_what_is_sent_in_its_place() -> None:
    drop = Call("drop", {"id": Reference(0, ("lines", 0, "id"), otherwise=7).as_json()})
    short = Trajectory(_ROW, (Call("add", {}), drop)).without([0])
    assert Schedule((short,)).lines() == ["seed_session(rows.jsonl:1)", 'drop({"id": 7})', "verify"]


def test_a_value_of_another_sessions_call_that_was_dropped_asks_for_none_of_its() -> None:
    asking = Trajectory(_ROW, (Call("drop", {"ids": [Reference(0, ("id",), session=1, otherwise=7).as_json()]}),))
    assert asks_another(asking.calls[0].arguments)
    assert not asks_another(asking.with_renumbered(1, {}).calls[0].arguments)
