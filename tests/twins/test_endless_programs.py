"""Programs that verify or a tool runs, and that never end by themselves."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict, worst
from tests.twins.judging import found_by, judge

#: Seconds that a request may take: the answer to a program must come within twice as long, and it sleeps for three times.
_TIMEOUT = 2.0

_TOOL = {
    "type": "function",
    "name": "run_python",
    "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
}


def _rows(text: str, *tools: dict[str, Any]) -> Dataset:
    asked = {"input": [{"role": "user", "content": text}], "tools": [*tools]}
    return Dataset((Row({"responses_create_params": asked}, Source(Path("rows"), 0)),))


_ANSWERED = _rows("Write a Python function f().")
_CALLED = _rows("Find out what 6 * 7 is.", _TOOL)


def _run(program: str, limit: float | None) -> int:
    """The exit status, or 1 for a program that cannot be written.

    Raises:
        subprocess.TimeoutExpired: it is stopped.
    """
    try:
        return subprocess.run([sys.executable, "-ISc", program], timeout=limit, check=False).returncode
    except ValueError:  # NUL, or half of a surrogate pair
        return 1


def _program(body: dict[str, Any]) -> str:
    texts = [
        part["text"] for item in body["response"]["output"] for part in item.get("content") or () if "text" in part
    ]
    return (texts[-1] if texts else "").partition("```python\n")[2].removesuffix("```")


class _Scorer:
    """Runs a program and looks for a function in it; one that is stopped earns what `stopped` says, or crashes."""

    def __init__(self, limit: float | None = 1.0, stopped: float | None = 0.0) -> None:
        self.limit, self.stopped = limit, stopped

    def runs(self, program: str) -> float:
        try:
            ends_well = _run(program, self.limit) == 0
        except subprocess.TimeoutExpired:
            if self.stopped is None:
                raise
            return self.stopped
        return float(ends_well and self.is_right(program))

    def is_right(self, program: str) -> bool:
        return "def f" in program


class _Reader(_Scorer):
    """Runs nothing."""

    def runs(self, program: str) -> float:
        return float(self.is_right(program))


class _ByExitStatus(_Scorer):
    def is_right(self, program: str) -> bool:
        return bool(program)


def _app(scorer: _Scorer, *, on_the_loop: bool = False) -> FastAPI:
    app = FastAPI()

    @app.post("/seed_session")
    def seed() -> dict[str, str]:
        return {}

    def score(body: dict[str, Any]) -> dict[str, Any]:
        program = _program(body)
        return {**body, "reward": scorer.runs(program) if program else 0.0}

    async def score_on_the_loop(body: dict[str, Any]) -> dict[str, Any]:
        return score(body)

    app.post("/verify")(score_on_the_loop if on_the_loop else score)
    return app


def _caller(limit: float | None, *, crashes: bool = False, places: int = 9) -> FastAPI:
    app, free = _app(_Reader()), asyncio.Semaphore(places)

    @app.post("/run_python")
    async def run_python(body: dict[str, str]) -> dict[str, int | str]:
        try:
            async with free:
                return {"exit": await asyncio.to_thread(_run, body["code"], limit)}
        except subprocess.TimeoutExpired as error:
            if crashes:
                raise
            return {"error": str(error)}

    return app


@pytest.mark.parametrize(
    ("app", "rows", "ends", "stopped"),
    [
        (_app(_Scorer()), _ANSWERED, Verdict.PASS, Verdict.PASS),
        (_app(_Scorer(limit=None)), _ANSWERED, Verdict.FAIL, Verdict.NOT_APPLICABLE),
        (_app(_Scorer(stopped=1.0)), _ANSWERED, Verdict.FAIL, Verdict.PASS),
        (_app(_Scorer(stopped=None)), _ANSWERED, Verdict.PASS, Verdict.FAIL),
        (_app(_Reader()), _ANSWERED, Verdict.NOT_APPLICABLE, Verdict.NOT_APPLICABLE),
        (_app(_Scorer(limit=None)), _rows("What is 6 * 7?"), Verdict.NOT_APPLICABLE, Verdict.NOT_APPLICABLE),
        (_caller(1.0), _CALLED, Verdict.PASS, Verdict.PASS),
        (_caller(None), _CALLED, Verdict.FAIL, Verdict.NOT_APPLICABLE),
        (_caller(1.0, crashes=True), _CALLED, Verdict.PASS, Verdict.FAIL),
    ],
    ids=[
        *(
            "verify stops it",
            "verify waits",
            "verify pays it",
            "verify crashes",
            "verify reads it",
            "none is asked for",
        ),
        *("a tool stops it", "a tool waits", "a tool crashes"),
    ],
)
def test_what_becomes_of_a_program_that_never_ends_is_told(
    app: FastAPI, rows: Dataset, ends: Verdict, stopped: Verdict
) -> None:
    for _again in range(3):  # on a busy machine it may not be found out that programs are run
        found = judge(app, rows, _TIMEOUT, ["resources-program-ends", "resources-program-stopped"])
        if worst(found["resources-program-ends"]) is not Verdict.NOT_APPLICABLE:
            break
    assert [worst(findings) for findings in found.values()] == [ends, stopped], found


@pytest.mark.parametrize(("on_the_loop", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_a_program_that_is_run_on_the_event_loop_is_told(*, on_the_loop: bool, verdict: Verdict) -> None:
    """By what it holds up, since one that never ends would hold up all else for good."""
    app = _app(_Scorer(limit=10.0), on_the_loop=on_the_loop)
    assert worst(found_by("resources-loop-free", app, _ANSWERED, timeout=10)) is verdict
    if on_the_loop:
        assert worst(found_by("resources-program-ends", app, _ANSWERED, timeout=10)) is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(("places", "verdict"), [(1, Verdict.FAIL), (2, Verdict.PASS)])
def test_programs_that_wait_for_one_another_are_told(places: int, verdict: Verdict) -> None:
    assert worst(found_by("resources-loop-free", _caller(10.0, places=places), _CALLED, timeout=10)) is verdict


@pytest.mark.parametrize(("scorer", "verdict"), [(_Scorer(), Verdict.PASS), (_ByExitStatus(), Verdict.FAIL)])
def test_a_program_that_is_paid_for_ending_well_is_told(scorer: _Scorer, verdict: Verdict) -> None:
    assert worst(found_by("reward-claim", _app(scorer), _ANSWERED, timeout=10)) is verdict
