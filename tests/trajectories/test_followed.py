"""What a policy was given in a recorded rollout is what it is given again, and no other thing in its place."""

import json
import random
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.findings import Verdict
from gym_conformance.testing import judge
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.trajectory import Reference, Schedule, dump, parse, resolve
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.twin import rollout_of

Json = dict[str, Any]
ROW = Row({"responses_create_params": {"input": "Go on."}, "ward": "ward-12"}, Source(Path("rows.jsonl"), 1))


def second_call(said: str, arguments: Json, now: Any) -> Any:
    """The arguments of a call that came after that output, where the server says something else now."""
    rollout = rollout_of(ROW, ("first", {"to": "A-000111"}, said), ("second", arguments, "ok"))
    return resolve(followed(ROW, rollout).calls[1].arguments, [now])


@pytest.mark.parametrize(
    ("said", "word", "now", "expected"),
    [
        (
            '<ticket id="X1-77aa"><to>X-ray</to></ticket>',
            "X1-77aa",
            '<ticket id="X9-beef"><to>Lab</to></ticket>',
            "X9-beef",
        ),
        ("Room 4. Your ticket: X1-77aa.", "X1-77aa", "Room 12. Your ticket: X9-beef.", "X9-beef"),
        ("id,of\r\nX1-77aa,me\r\nX2-88bb,you\r\n", "X2-88bb", "id,of\r\nX8-dead,me\r\nX9-beef,you\r\n", "X9-beef"),
        ("X1-77aa is it.", "X1-77aa", "X9-beef is it.", "X9-beef"),
        ("X1-77aa", "X1-77aa", "X9-beef", "X9-beef"),
        ("Take X1-77aa or X2-88bb.", "X2-88bb", "Take X2-88bb or X1-77aa.", "X2-88bb"),
        ("Your ticket: X1-77aa.", "X1-77aa", "None is left.", "X1-77aa"),
        ("From ward-12: X1-77aa.", "ward-12", "From ward-13: X9-beef.", "ward-12"),
        ("For A-000111: X1-77aa.", "A-000111", "For A-000222: X9-beef.", "A-000111"),
        ("Go to the harbour.", "harbour", "Go to the opera.", "harbour"),
    ],
    ids=[
        "XML",
        "a sentence",
        "CSV",
        "the first word",
        "the whole",
        "in another order",
        "gone",
        "the row's",
        "the policy's",
        "no digit",
    ],
)
def test_an_id_is_found_again_in_a_text(said: str, word: str, now: str, expected: str) -> None:
    assert second_call(said, {"ticket": word}, now) == {"ticket": expected}


def test_an_id_is_found_again_in_a_text_within_json() -> None:
    said, now = {"said": "Ticket X1-77aa"}, {"said": "Ticket X9-beef"}
    assert second_call(json.dumps(said), {"ticket": "X1-77aa"}, now) == {"ticket": "X9-beef"}


def test_what_is_still_said_is_no_new_id() -> None:
    """It stands elsewhere in a list whose order is another one; a short number may mean another thing by now."""
    said = {"hits": [{"id": "GZ-1"}, {"id": "GZ-2"}]}
    turned = {"hits": said["hits"][::-1]}
    assert second_call(json.dumps(said), {"id": "GZ-1"}, turned) == {"id": "GZ-1"}
    assert second_call(json.dumps(said), {"id": "GZ-1"}, {"hits": [{"id": "GZ-8"}, {"id": "GZ-9"}]}) == {"id": "GZ-8"}
    assert second_call('[{"id": 1}, {"id": 2}]', {"id": 1}, [{"id": 2}, {"id": 1}]) == {"id": 2}


@pytest.mark.parametrize(
    ("said", "arguments", "now", "expected"),
    [
        ("Opened ticket 1042 (high).", {"number": 1042}, "Opened ticket 9 (high).", {"number": 9}),
        ("Opened ticket 7.", {"ticket_id": 7}, "Opened Ticket 12.", {"ticket_id": 12}),
        ("Opened ticket 7.", {"ticket": "7"}, "Opened ticket 12.", {"ticket": "12"}),
        ("Ticket 7, of 3 days.", {"days": 3, "ticket": 7}, "Ticket 8, of 5 days.", {"days": 3, "ticket": 8}),
        ("You have 7 rooms.", {"nights": 7}, "You have 9 rooms.", {"nights": 7}),
        ("Opened ticket 7.", {"ticket": 7}, "Opened ticket X9.", {"ticket": 7}),
        ("Opened ticket 7.", {"ticket": 7}, "Opened ticket " + "9" * 5_000, {"ticket": 7}),
    ],
    ids=["long", "named", "a text", "one of two", "no name", "no number now", "too large"],
)
def test_a_number_is_found_again_in_a_text(said: str, arguments: Json, now: str, expected: Json) -> None:
    assert second_call(said, arguments, now) == expected


def test_a_word_of_a_text_is_kept_in_a_file() -> None:
    found = followed(ROW, rollout_of(ROW, ("a", {}, "It is X1-77aa."), ("b", {"it": "X1-77aa"}, "ok")))
    assert found.calls[1].arguments == {"it": Reference(0, (), "X1-77aa", word=("is ", 0)).as_json()}
    _, again = parse(dump(Schedule((found,)), "a-check"), Path("schedule.json"))
    assert resolve(again.trajectories[0].calls[1].arguments, ["It is X9-beef."]) == {"it": "X9-beef"}


class Patient(TaskRow):
    wants: str


def take_ticket(state: set[str]) -> str:
    """A ticket."""
    ticket = f"X1-{uuid4().hex}"
    state.add(ticket)
    return f'<ticket id="{ticket}"/>'


def search() -> Json:
    """Articles, in any order."""
    return {"hits": random.sample([{"place": f"GZ-{at}"} for at in range(8)], 8)}


def enter(state: set[str], place: str) -> str:
    """Go in."""
    if place not in state and not place.startswith("GZ-"):
        raise ValueError("no such ticket")
    state.add(f"entered {place}")
    return f"You went to {place}" if place.startswith("GZ-") else "clear"


def verify(row: Patient, state: set[str]) -> float:
    return float(f"entered {row.wants}" in state) if row.wants else float(len(state) == 2)


@pytest.mark.parametrize(
    ("wants", "steps"),
    [
        ("", [("take_ticket", {}, '<ticket id="X1-0c9d5d4a"/>'), ("enter", {"place": "X1-0c9d5d4a"}, "clear")]),
        (
            "GZ-2",
            [
                ("search", {}, json.dumps({"hits": [{"place": f"GZ-{at}"} for at in (2, 1, 0, 7, 6, 5, 4, 3)]})),
                ("enter", {"place": "GZ-2"}, "You went to GZ-2"),
            ],
        ),
    ],
    ids=["an id in XML", "ids that live on"],
)
def test_a_record_holds_whose_ids_are_found_again(wants: str, steps: list[tuple[str, Json, str]]) -> None:
    server = ResourcesServer("clinic", tools=[take_ticket, search, enter], verify=verify, state=set)
    row: Json = {"responses_create_params": {"input": "Go on.", "tools": server.declarations}, "wants": wants}
    rollout = rollout_of(Row(row, ROW.source), *steps, said="Done.", reward=1.0)
    for check in ("repeat-recorded", "repeat-deterministic"):
        [finding] = judge(server, check, [row, rollout.data])
        assert finding.verdict is Verdict.PASS, finding
