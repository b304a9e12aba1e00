"""Whether the row that is seeded matters, on a server that keeps nothing of it and scores by it all the same."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field

from gym_conformance.findings import Verdict
from gym_conformance.testing import judge
from gym_mocks.resources import ResourcesServer, Score, TaskRow, last_text
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest


class Question(TaskRow):
    answer: str


def get_hint(state: list[str]) -> str:
    """What the session knows."""
    return "".join(state)


def verify(row: Question, response: dict[str, Any]) -> float:
    return float(last_text(response["output"]) == row.answer)


SERVER = ResourcesServer("questions", tools=[get_hint], verify=verify, state=list)


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        ({"id": 2, "answer": "four"}, Verdict.NOT_APPLICABLE),
        ({"id": 2, "answer": "five"}, Verdict.PASS),
    ],
)
def test_rows_that_differ_only_by_id_are_one_task(second: dict[str, Any], verdict: Verdict) -> None:
    rows = [
        {"responses_create_params": {"input": "How many?", "tools": SERVER.declarations}, **fields}
        for fields in ({"id": 1, "answer": "four"}, second)
    ]
    [finding] = judge(SERVER, "seed-reads-row", rows)
    assert finding.verdict is verdict, finding


class Journey(TaskRow):
    """Where to travel, in this order, and the places of the row's map."""

    route: list[str]
    way: list[str] = Field(default_factory=list)


def town(*, kept: bool = False) -> ResourcesServer:
    """Its map is the same for all rows, and only verify reads a route; where it is `kept`, its places are the first row's."""
    places: list[str] = [] if kept else ["market", "castle", "garden", "harbour", "library", "station"]

    def list_places() -> dict[str, list[str]]:
        return {"places": places}

    def travel(state: Journey, to: str) -> dict[str, str]:
        if to not in places:
            raise HttpRefusal(404, "no such place")
        state.way.append(to)
        return {"at": to}

    def opened(row: Journey) -> Journey:
        if not places:
            places.extend(row.route)
        return row.model_copy(deep=True)

    def verify(state: Journey, row: Journey) -> float:
        return float(state.way == row.route)

    return ResourcesServer("town", tools=[list_places, travel], verify=verify, state=opened)


@pytest.mark.parametrize("kept", [False, True])
def test_a_map_that_all_rows_share_is_no_row_of_another(kept: bool) -> None:
    """It names what several rows name, and one that is kept from the first session what only that row does."""
    routes = ["market", "castle", "garden"], ["harbour", "library", "market"], ["station", "castle", "harbour"]
    server = town(kept=kept)
    rows = [
        {"responses_create_params": {"input": "Visit them.", "tools": server.declarations}, "route": route}
        for route in routes
    ]
    [finding] = judge(server, "seed-reads-row", rows)
    assert finding.verdict is (Verdict.FAIL if kept else Verdict.NOT_APPLICABLE), finding


@pytest.mark.parametrize("status", [{"branch": "main"}, "on main"])
@pytest.mark.parametrize("prompt", ["Leave main alone.", "Leave all else alone."])
def test_a_word_of_the_servers_own_is_no_rows(prompt: str, status: Any) -> None:
    """Whatever the row, a session begins on the branch main, which the second row's goal alone names."""

    def get_status() -> Any:
        return status

    def commit(state: list[str], branch: str) -> str:
        state.append(branch)
        return "done"

    def verify(state: list[str], row: Question) -> float:
        return float(state == [f"{row.answer} 2"])

    server = ResourcesServer("branches", tools=[get_status, commit], verify=verify, state=list)
    rows = [
        {"responses_create_params": {"input": prompt, "tools": server.declarations}, "answer": branch}
        for branch in ("fix-7", "main", "release")
    ]
    [finding] = judge(server, "seed-reads-row", rows)
    assert finding.verdict is Verdict.NOT_APPLICABLE, finding


@pytest.mark.parametrize("prompt", ["It stands in the square old town.", "Where is it?"])
def test_words_that_prompts_share_are_no_rows(prompt: str) -> None:
    """All sessions are told of the old town, of which the first row's answer alone and all prompts may speak."""

    def get_place() -> str:
        return "the square old town"

    def verify(state: list[str], row: Question) -> float:
        return float(state == [row.answer])

    server = ResourcesServer("places", tools=[get_place], verify=verify, state=list)
    rows = [
        {"responses_create_params": {"input": prompt, "tools": server.declarations}, "answer": answer}
        for answer in ("square old town", "mill", "far away")
    ]
    [finding] = judge(server, "seed-reads-row", rows)
    assert finding.verdict is (Verdict.NOT_APPLICABLE if "square" in prompt else Verdict.FAIL), finding


class Failing(ResourcesServer):
    """A verify that fails says so, without a reward."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if request.path != "/verify" or not isinstance(reply.body, bytes):
            return reply
        verdict = json.loads(reply.body)
        scored = {key: value for key, value in verdict.items() if key != "reward" or "_ng_failure_class" not in verdict}
        return replace(reply, body=json.dumps(scored).encode())


def test_what_is_not_scored_is_no_other_reward_than_0() -> None:
    """Who walks is nowhere that can be scored, but in the right place, which nobody can guess."""

    def walk(state: list[str], to: str) -> dict[str, str]:
        state.append(to)
        return {"at": to}

    def get_map() -> str:
        return "there are many ways"

    def verify(state: list[str], row: Question) -> Score:
        there = state[-1:] == [row.answer[::-1]]
        return Score(float(there), fields={"_ng_failure_class": "nowhere"} if state and not there else {})

    server = Failing("walk", tools=[walk, get_map], verify=verify, state=list)
    rows = [
        {"responses_create_params": {"input": "Go there.", "tools": server.declarations}, "answer": answer}
        for answer in ("the far castle", "the old harbour")
    ]
    [finding] = judge(server, "seed-reads-row", rows)
    assert finding.verdict is Verdict.NOT_APPLICABLE, finding
