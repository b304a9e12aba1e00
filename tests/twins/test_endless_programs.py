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
from tests.twins.judging import found_by

#: Seconds that a request may take: the answer to a program must come within twice as long, and it sleeps for three times.
_TIMEOUT = 1.0

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
    """The exit status, or 1 for a program that is stopped or cannot be written."""
    try:
        return subprocess.run([sys.executable, "-ISc", program], timeout=limit, check=False).returncode
    except (ValueError, subprocess.TimeoutExpired):  # ValueError: NUL, or half of a surrogate pair
        return 1


def _program(body: dict[str, Any]) -> str:
    texts = [
        part["text"] for item in body["response"]["output"] for part in item.get("content") or () if "text" in part
    ]
    return (texts[-1] if texts else "").partition("```python\n")[2].removesuffix("```")


def _scorer(limit: float | None, *, runs: bool = True, on_the_loop: bool = False) -> FastAPI:
    """Runs a program to score it; or only reads it, where it `runs` none."""
    app = FastAPI()

    @app.post("/seed_session")
    def seed() -> dict[str, str]:
        return {}

    def score(body: dict[str, Any]) -> dict[str, Any]:
        program = _program(body)
        passed = _run(program, limit) == 0 if program and runs else "def f" in program
        return {**body, "reward": float(passed)}

    async def score_on_the_loop(body: dict[str, Any]) -> dict[str, Any]:
        return score(body)

    app.post("/verify")(score_on_the_loop if on_the_loop else score)
    return app


def _caller(limit: float | None) -> FastAPI:
    app = _scorer(limit, runs=False)

    @app.post("/run_python")
    async def run_python(body: dict[str, str]) -> dict[str, int]:
        return {"exit": await asyncio.to_thread(_run, body["code"], limit)}

    return app


@pytest.mark.parametrize(
    ("app", "rows", "verdict"),
    [
        (_scorer(None), _ANSWERED, Verdict.FAIL),
        (_scorer(1.0), _ANSWERED, Verdict.PASS),
        (_scorer(None, runs=False), _ANSWERED, Verdict.NOT_APPLICABLE),
        (_scorer(None), _rows("What is 6 * 7?"), Verdict.NOT_APPLICABLE),
        (_caller(None), _CALLED, Verdict.FAIL),
        (_caller(1.0), _CALLED, Verdict.PASS),
    ],
    ids=["verify waits", "verify stops it", "verify reads it", "none is asked for", "a tool waits", "a tool stops it"],
)
def test_what_waits_for_a_program_that_never_ends_is_told(app: FastAPI, rows: Dataset, verdict: Verdict) -> None:
    found = found_by("resources-program-ends", app, rows, timeout=_TIMEOUT)
    assert worst(found) is verdict, [finding.reason or finding.actual for finding in found]


@pytest.mark.parametrize(("on_the_loop", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_a_program_that_is_run_on_the_event_loop_is_told(*, on_the_loop: bool, verdict: Verdict) -> None:
    """By what it holds up, since one that never ends would hold up all else for good."""
    app = _scorer(None, on_the_loop=on_the_loop)
    assert worst(found_by("resources-loop-free", app, _ANSWERED, timeout=10)) is verdict
    if on_the_loop:
        assert worst(found_by("resources-program-ends", app, _ANSWERED, timeout=10)) is Verdict.NOT_APPLICABLE
