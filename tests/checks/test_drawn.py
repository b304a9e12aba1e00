"""A world that is drawn anew in each session: neither a row nor a record says what its replies are."""

import json
import random
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from gym_conformance.contract.policy_output import function_call, function_call_output, message, response
from gym_conformance.findings import Verdict
from gym_conformance.testing import judge
from gym_mocks.resources import ResourcesServer, TaskRow

Json = dict[str, Any]

#: What a detector says, and what it said when the rollout was recorded.
Detector = tuple[Callable[[], Json], Json]

NOTHING: Detector = (dict, {})
DISTANCE: Detector = (lambda: {"distance": round(random.random(), 3)}, {"distance": 7.012})
READING: Detector = (lambda: {"reading": uuid4().hex}, {"reading": "0c9d5d4ae3f84b8f8f04fd43a8cbe0a5"})
LOGGED: Detector = (lambda: {"said": f"Reading {uuid4().hex} is kept."}, {"said": "Reading 0c9d5d4ae3f8 is kept."})
MOOD: Detector = (lambda: {"good": random.random() < 0.5}, {"good": True})
WALLS: Detector = (lambda: {"walls": random.sample("abcdefgh", 8)}, {"walls": list("hgfedcba")})


class Cave(TaskRow):
    size: int


def cave(detector: Detector, charge: Json) -> tuple[ResourcesServer, list[Json]]:
    """A server whose rows do not matter, and the rows; the first one's recorded rollout found what is found no more."""
    says, said = detector

    def get_distance(state: list[str]) -> Json:
        """What the detector says."""
        del state
        return charge | says()

    def dig(state: list[str]) -> str:
        """Dig here."""
        state.append("dug")
        return "Nothing but sand."

    def verify(row: Cave, state: list[str]) -> float:
        del row
        return float(len(state))

    server = ResourcesServer("cave", tools=[get_distance, dig], verify=verify, state=list)
    asked = {"input": "Find it.", "tools": server.declarations}
    rows: list[Json] = [{"responses_create_params": asked, "size": size} for size in (5, 6)]
    output = [
        function_call("get_distance", "{}", "c1"),
        function_call_output(json.dumps(charge | said), "c1"),
        function_call("dig", "{}", "c2"),
        function_call_output("A chest!", "c2"),
        message("Here it is."),
    ]
    return server, [*rows, {**rows[0], "response": response(output), "reward": 1.0}]


@pytest.mark.parametrize(
    ("detector", "verdict"),
    [
        (NOTHING, Verdict.FAIL),
        (DISTANCE, Verdict.NOT_APPLICABLE),
        (READING, Verdict.FAIL),
        (LOGGED, Verdict.FAIL),
        (MOOD, Verdict.FAIL),
        (WALLS, Verdict.FAIL),
    ],
    ids=["nothing", "another distance", "an id", "an id in a text", "what was told now and then", "another order"],
)
def test_a_record_holds_where_a_session_is_told_the_same(detector: Detector, verdict: Verdict) -> None:
    server, rows = cave(detector, {"charge": 60})
    [finding] = judge(server, "repeat-recorded", rows)
    assert finding.verdict is verdict, finding


@pytest.mark.parametrize(
    ("detector", "charge", "verdict"),
    [
        (NOTHING, {"charge": 60}, Verdict.FAIL),
        (READING, {"charge": 60}, Verdict.FAIL),
        (LOGGED, {"charge": 60}, Verdict.FAIL),
        (READING, {}, Verdict.NOT_APPLICABLE),
        (DISTANCE, {}, Verdict.NOT_APPLICABLE),
        (DISTANCE, {"charge": 60}, Verdict.NOT_APPLICABLE),
    ],
    ids=["nothing", "an id", "an id in a text", "an id alone", "a distance alone", "a distance"],
)
def test_replies_are_the_same_for_all_rows_where_anything_can_be_compared(
    detector: Detector, charge: Json, verdict: Verdict
) -> None:
    server, rows = cave(detector, charge)
    [finding] = judge(server, "seed-reads-row", rows)
    assert finding.verdict is verdict, finding


@pytest.mark.parametrize(
    ("told", "by_chance", "verdict"),
    [(True, False, Verdict.PASS), (True, True, Verdict.FAIL), (False, False, Verdict.FAIL)],
    ids=["told which door pays", "told, and paid by chance", "not told"],
)
@pytest.mark.parametrize("skipped", [0, 1], ids=["looks", "does not look"])
def test_rewards_are_compared_where_sessions_are_told_the_same(
    told: bool, by_chance: bool, verdict: Verdict, skipped: int
) -> None:
    def look(state: list[list[str]]) -> Json:
        """What stands on the doors."""
        return {"doors": state[0] if told else []}

    def first(state: list[list[str]]) -> str:
        """Open the first door."""
        state.append([])
        return "Opened."

    def verify(row: Cave, state: list[list[str]]) -> float:
        del row
        return float(len(state) > 1 and (random.random() < 0.5 if by_chance else state[0][0] == "gold"))

    server = ResourcesServer(
        "doors", tools=[look, first], verify=verify, state=lambda: [random.sample(["gold", "sand"], 2)]
    )
    asked = {"input": "Find it.", "tools": server.declarations}
    calls = [function_call("look", "{}", "c1"), function_call("first", "{}", "c2")]
    output = [each for call in calls[skipped:] for each in (call, function_call_output("...", call["call_id"]))]
    row: Json = {"responses_create_params": asked, "size": 5}
    rows = [row, {**row, "response": response([*output, message("Done.")]), "reward": 1.0}]
    [finding] = judge(server, "repeat-deterministic", rows)
    assert finding.verdict is verdict, finding
