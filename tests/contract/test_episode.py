"""Episodes as they are asked for, and how their answers are read."""

import json
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.contract.episode import Ended, Episode
from gym_conformance.contract.identity import Identity
from gym_conformance.dataset import load

PARAMS = {"input": "Hello."}
FLAT = {"responses_create_params": PARAMS, "answer": 1, "agent_ref": {"name": "a"}, "_ng_task_index": 5}
TASK = {
    "task_id": {"taskset": "env:example", "task_id": "t1"},
    "task_input": {"responses_create_params": PARAMS, "task_data": {"answer": 1}},
}


def episode(row: Row, *, typed: bool) -> Episode:
    return Episode(row, typed, Identity(rollout_id="r1"))


def test_a_flat_row_goes_as_it_is_or_materialized() -> None:
    row = Row(FLAT, Source(Path("rows.jsonl"), 3))
    plain = {"_ng_task_index": 0, "_ng_rollout_index": 0, "_ng_rollout_id": "r1"}
    assert episode(row, typed=False).body == FLAT | plain
    assert episode(row, typed=True).body == {
        "episode_id": {"rollout_id": "r1", "attempt": 0},
        "task": {
            "task_id": {"taskset": "gym-conformance", "task_id": "2"},
            "task_input": {"responses_create_params": PARAMS, "answer": 1},
        },
    }


def test_a_materialized_row_is_read_flat_and_goes_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(TASK) + "\n" + json.dumps({**TASK, "task_input": {"answer": 2}}) + "\n")
    first, second = load([path]).rows
    assert first.data == {"responses_create_params": PARAMS, "answer": 1}
    assert second.data == {"responses_create_params": {"input": []}, "answer": 2}
    assert episode(first, typed=True).body["task"] == TASK


@pytest.mark.parametrize(
    ("answer", "typed", "result", "failure"),
    [
        ({"episode_id": {}, "result": 1, "failure": None}, True, 1, None),
        ({"episode_id": {}, "failure": {"failure_reason": "no"}}, True, None, {"failure_reason": "no"}),
        ({"reward": 1.0}, True, {"reward": 1.0}, None),
        ({"episode_id": {}, "result": 1}, False, {"episode_id": {}, "result": 1}, None),
        ({"_ng_failure_class": "c", "_ng_failure_message": "no"}, False, None, {"failure_reason": "no"}),
    ],
)
def test_both_forms_of_an_answer(answer: Any, *, typed: bool, result: Any, failure: Any) -> None:
    row = Row(FLAT, Source(Path(), 0))
    assert episode(row, typed=typed).ended(answer) == Ended(result, failure)


def test_reserved_keys_and_reasons() -> None:
    assert Ended({"reward": 1, "ng_perf": 1, "_ng_x": 1}, None).reserved == ["_ng_x", "ng_perf"]
    assert Ended([], None).reserved == []
    assert Ended(None, {"failure_reason": "no"}).reason == "no"
    assert Ended(None, "gone").reason == "gone"
