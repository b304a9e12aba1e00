"""Servers that only grade, with nothing recorded: what they pay is found by how their prompts ask, and what is amiss by that."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict, worst
from gym_conformance.scouting.answers import paid_answers
from tests.twins.judging import found_by, on_gym

Scorer = Callable[[dict[str, Any], str], float]


def _rows(*asked: tuple[str, dict[str, Any]]) -> Dataset:
    return Dataset(
        tuple(
            Row(
                {"responses_create_params": {"input": [{"role": "user", "content": text}]}, **own},
                Source(Path("rows"), at),
            )
            for at, (text, own) in enumerate(asked)
        )
    )


def _app(score: Scorer, seeded: Callable[[dict[str, Any]], None] | None = None) -> FastAPI:
    app = FastAPI()

    @app.post("/seed_session")
    def seed(body: dict[str, Any]) -> dict[str, str]:
        if seeded:
            seeded(body)
        return {}

    @app.post("/verify")
    def verify(body: dict[str, Any]) -> dict[str, Any]:
        said = [
            part["text"] for item in body["response"]["output"] for part in item.get("content") or () if "text" in part
        ]
        return {**body, "reward": score(body, said[-1] if said else "")}

    return app


#: The first two have the same answer.
_LETTERS = _rows(
    *(
        (f"Question {at}? End with 'The answer is X'.", {"gold": letter, "task": f"q-{at}"})
        for at, letter in enumerate("BBCADA")
    )
)
_NUMBERED = _rows(
    *(
        (f"Question {at}? Finish: **Choice: X**", {"correct": at % 4, "options": ["a", "b", "c", "d"]})
        for at in range(4)
    )
)
_TABLES = _rows(*(("Fill the square.", {"solution": [[at, 2], [2, at]]}) for at in range(4)))
_LISTS = _rows(*(("Put them in order, with commas.", {"order": ["a", "b", f"c{at}"]}) for at in range(4)))
_OBJECTS = _rows(*(("Give it as JSON.", {"wanted": {"name": "x", "total": at}}) for at in range(4)))
#: The scorer cannot read what the second row holds.
_READ_IN_PART = _rows(*(("How much?", {"answer": one}) for one in ("4", "1/2", "7", "9")))


@pytest.mark.parametrize(
    ("data", "paid"),
    [
        (_LETTERS, lambda row: f"The answer is {row['gold']}"),
        (_NUMBERED, lambda row: f"Choice: {'ABCD'[row['correct']]}"),
        (_TABLES, lambda row: "\n".join(" ".join(map(str, each)) for each in row["solution"])),
        (_LISTS, lambda row: ", ".join(row["order"])),
        (_OBJECTS, lambda row: f'{{"name": "x", "total": {row["wanted"]["total"]}}}'),
        (_READ_IN_PART, lambda row: row["answer"] if row["answer"] != "1/2" else "0.5"),
    ],
    ids=["letters", "numbers of options", "tables", "lists", "objects", "another row is not read"],
)
def test_what_is_paid_is_found(data: Dataset, paid: Callable[[dict[str, Any]], str]) -> None:
    app = _app(lambda row, said: float(said == paid(row)))
    found = on_gym(app, lambda gym: paid_answers(gym, 56), data)
    assert {row: one.answer == paid(dict(row.data)) for row, one in found.by_row.items()} == {
        row: row.data.get("answer") != "1/2" for row in data.rows
    }


@pytest.mark.parametrize(("lasting", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_a_row_that_all_sessions_share_is_told(*, lasting: bool, verdict: Verdict) -> None:
    last: dict[str, Any] = {}
    app = _app(
        lambda row, said: float(said == f"The answer is {(last if lasting else row)['gold']}"),
        lambda row: last.update(row) if "gold" in row else None,
    )
    assert worst(found_by("isolation-interleaved", app, _LETTERS)) is verdict


@pytest.mark.parametrize(("once", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_an_answer_that_is_paid_but_once_is_told(*, once: bool, verdict: Verdict) -> None:
    seen = set[str]()

    def score(row: dict[str, Any], said: str) -> float:
        right = said == f"The answer is {row['gold']}"
        repeated = row["task"] in seen
        if right and once:
            seen.add(row["task"])
        return float(right and not repeated)

    assert worst(found_by("isolation-earlier", _app(score), _LETTERS)) is verdict


@pytest.mark.parametrize(("crashes", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_each_row_gets_an_empty_answer(*, crashes: bool, verdict: Verdict) -> None:
    """The last row alone is scored by what the text ends with."""

    def score(row: dict[str, Any], said: str) -> float:
        ends = said[-1] if crashes else said[-1:]
        return float(ends == "!") if row["gold"] == "D" else float(row["gold"] in said)

    assert worst(found_by("verify-degenerate", _app(score), _LETTERS)) is verdict


_PROGRAMS = _rows(*((f"Write a Python function f{at}().", {"tests": f"assert f{at}() == {at}"}) for at in range(2)))


def _tests(*, at_exit: bool = False, strict: bool = False) -> Scorer:
    """Runs a block of code and then its tests; by its exit status, or by what only the tests' end says."""

    def score(row: dict[str, Any], said: str) -> float:
        _, fence, code = said.partition("```python\n")
        program = f"{code.removesuffix('```')}\n{row['tests']}\nprint('all is well')\n"
        command = [sys.executable, "-IS", "-c", program]
        try:
            run = subprocess.run(command, capture_output=True, timeout=5, check=False) if fence else None
        except ValueError:  # NUL, or half of a surrogate pair
            return 0.0
        out = run.stdout.decode(errors="strict" if strict else "replace") if run else ""
        return float(run is not None and run.returncode == 0 and (at_exit or out.endswith("all is well\n")))

    return score


@pytest.mark.parametrize(("at_exit", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_an_exit_status_that_decides_is_told(*, at_exit: bool, verdict: Verdict) -> None:
    found = found_by("reward-claim", _app(_tests(at_exit=at_exit)), _PROGRAMS, timeout=10)
    assert worst(found) is verdict
    assert all("exit" in finding.hint for finding in found if verdict is Verdict.FAIL)


@pytest.mark.parametrize(("strict", "verdict"), [(False, Verdict.PASS), (True, Verdict.FAIL)])
def test_output_that_is_no_text_is_told(*, strict: bool, verdict: Verdict) -> None:
    assert worst(found_by("verify-unfinished", _app(_tests(strict=strict)), _PROGRAMS, timeout=10)) is verdict


_LOOKUP = {
    "type": "function",
    "name": "get_record",
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


def test_a_call_that_is_paid_although_it_was_refused_is_refused_to_later_sessions_too() -> None:
    asked = [{"input": f"Look it up, {at}.", "tools": [_LOOKUP]} for at in range(4)]
    rows = (
        Row({"responses_create_params": each, "target": f"some_thing_{at}"}, Source(Path("rows"), at))
        for at, each in enumerate(asked)
    )
    app = FastAPI()

    @app.post("/seed_session")
    def seed() -> dict[str, str]:
        return {}

    @app.post("/get_record")
    def get_record(body: dict[str, str]) -> dict[str, str]:
        return {"output": json.dumps({"error": f"Record {body['name']} not found."})}

    @app.post("/verify")
    def verify(body: dict[str, Any]) -> dict[str, Any]:
        calls = [item["arguments"] for item in body["response"]["output"] if item["type"] == "function_call"]
        return {**body, "reward": float(any(body["target"] in call for call in calls))}

    data = Dataset(tuple(rows))
    assert on_gym(app, lambda gym: paid_answers(gym, 56), data).sessions, "what is paid is found"
    assert worst(found_by("isolation-earlier", app, data)) is Verdict.PASS


@pytest.mark.parametrize(
    ("score", "rows", "verdict"),
    [
        (lambda _, said: float(bool(said.strip())), _LETTERS, Verdict.FAIL),
        (lambda row, said: float(said.endswith(row["gold"])), _LETTERS, Verdict.PASS),
        (lambda _, said: 0.5 * bool(said.strip()), _LETTERS, Verdict.PASS),
        (lambda _, said: float("," not in said), _PROGRAMS, Verdict.NOT_APPLICABLE),
    ],
    ids=["any text", "the answer", "half for its form", "no answers in the rows"],
)
def test_a_scorer_that_pays_any_text_is_told(score: Scorer, rows: Dataset, verdict: Verdict) -> None:
    assert worst(found_by("reward-any-text", _app(score), rows)) is verdict
