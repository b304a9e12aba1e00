"""What a server that only grades pays for is found in rows, though it be a long program or be paid for alone only."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.scouting.learn import learn
from tests.twins.judging import on_gym

_ASIDE = {f"tag_{number}": f"tag {number}" for number in range(8)}


def _row(number: int) -> Row:
    asked = [{"role": "system", "content": "Write Python."}, {"role": "user", "content": f"Write task {number}."}]
    solution = f"def task_{number}():\n    return [{'1, ' * 100}{number}]"
    return Row(
        {"responses_create_params": {"input": asked}, **_ASIDE, "reference_solution": solution},
        Source(Path("rows.jsonl"), number),
    )


ROWS = tuple(map(_row, (1, 2, 3)))


def _grader(form: str, *, mixes_up: bool) -> FastAPI:
    """Pays for the solution in this form; where it `mixes_up`, only if no other verify comes meanwhile."""
    app = FastAPI()
    came = 0

    @app.post("/seed_session")
    def seed() -> dict[str, str]:
        return {}

    @app.post("/verify")
    async def verify(body: dict[str, Any]) -> dict[str, Any]:
        nonlocal came
        came += 1
        mine = came
        await asyncio.sleep(0.02)
        said = [part["text"] for item in body["response"]["output"] for part in item.get("content") or ()]
        right = said[-1:] == [form % body["reference_solution"]] and not (mixes_up and came != mine)
        return {**body, "reward": float(right)}

    return app


@pytest.mark.parametrize("mixes_up", [False, True], ids=["at once", "alone only"])
@pytest.mark.parametrize("form", ["%s", "```\n%s\n```", "```python\n%s\n```"])
def test_long_solutions_are_found_and_come_first(form: str, mixes_up: bool) -> None:
    answers = on_gym(_grader(form, mixes_up=mixes_up), learn, Dataset(tuple(ROWS))).answers
    found = [answers[row] for row in ROWS]
    solutions = [row.data["reference_solution"] for row in ROWS]
    assert [first for first, *_ in found] == [form % solution for solution in solutions]
    assert all(solution in each for solution, each in zip(solutions, found, strict=True))
