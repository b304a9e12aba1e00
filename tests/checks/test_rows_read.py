"""Whether the row that is seeded matters, on a server that keeps nothing of it and scores by it all the same."""

from typing import Any

import pytest

from gym_conformance.findings import Verdict
from gym_conformance.testing import judge
from gym_mocks.resources import ResourcesServer, TaskRow, last_text


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
