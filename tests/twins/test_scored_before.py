"""Translations that are scored by likeness, with a memory of what was scored before, and without one."""

import random
import time
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow, last_text
from tests.twins.judging import judge, telling
from tests.twins.twin import rollout_of

TEXTS = [("Die Mühle steht still.", "The mill stands idle."), ("Es schneit im Tal.", "It snows in the valley.")]


class TranslationRow(TaskRow):
    """A row with its text, and what that should become."""

    source: str
    reference: str


def translations(memory: str) -> ResourcesServer:
    """Its memory holds how often each answer came, or the first score of each text; or it has a clock or a die instead."""
    seen, kept, began = Counter[str](), dict[str, float](), time.monotonic()

    def verify(row: TranslationRow, response: dict[str, Any]) -> float:
        text = last_text(response["output"])
        alike: float = round(SequenceMatcher(None, text, row.reference).ratio(), 6)
        seen[text] += 1
        match memory:
            case "of answers":
                return alike / seen[text]
            case "of texts":
                return kept.setdefault(row.source, alike)
            case "clock":
                return alike * float(0.97 ** (10 * (time.monotonic() - began)))
            case "die":
                return alike * random.choice((0.9, 1.0))
        return alike

    return ResourcesServer("translations", verify=verify)


def _data() -> Dataset:
    rows, rollouts = [], []
    for at, (source, reference) in enumerate(TEXTS, 1):
        prompt = [{"role": "user", "content": f"Translate: {source}"}]
        data = {"responses_create_params": {"input": prompt}, "source": source, "reference": reference}
        rows.append(Row(data, Source(Path("translations.jsonl"), at)))
        rollouts.append(rollout_of(rows[-1], said=reference, reward=1.0))
    return Dataset(tuple(rows), tuple(rollouts), len(rows))


@pytest.mark.parametrize("memory", ["none", "clock", "die", "of answers", "of texts"])
def test_a_score_does_not_depend_on_earlier_ones(memory: str) -> None:
    findings = judge(translations(memory), _data(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if memory.startswith("of ") else set())


class ProblemRow(TaskRow):
    """A row with its problem, and what its program must print."""

    problem_id: str
    printed: str


def problems(memory: str) -> ResourcesServer:
    """Its memory holds the first score of each program, or of each problem that any program was given for."""
    kept = dict[str, float]()

    def verify(row: ProblemRow, response: dict[str, Any]) -> float:
        _, fence, program = last_text(response["output"]).partition("```python\n")
        if not fence:
            return 0.0
        score = float(f"print({row.printed})" in program)
        return {
            "of programs": lambda: kept.setdefault(program, score),
            "of problems": lambda: kept.setdefault(row.problem_id, score),
            "none": lambda: score,
        }[memory]()

    return ResourcesServer("problems", verify=verify)


@pytest.mark.parametrize("memory", ["none", "of programs", "of problems"])
def test_a_program_is_scored_anew_each_time(memory: str) -> None:
    rows, rollouts = [], []
    for at in range(3):
        prompt = [{"role": "user", "content": f"Write a Python program for problem {at}."}]
        data = {"responses_create_params": {"input": prompt}, "problem_id": f"problem-{at}", "printed": str(40 + at)}
        rows.append(Row(data, Source(Path("problems.jsonl"), at + 1)))
        rollouts.append(rollout_of(rows[-1], said=f"Here:\n\n```python\nprint({40 + at})\n```", reward=1.0))
    found = judge(problems(memory), Dataset(tuple(rows), tuple(rollouts), 3), checks={"isolation-earlier"})
    assert telling(found) == ({"isolation-earlier"} if memory.startswith("of ") else set())
