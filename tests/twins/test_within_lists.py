"""What calls lead to with other values within a list's objects."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import rows_of


class Edit(BaseModel):
    """A text that stands there once, and what replaces it."""

    old: str
    new: str


@dataclass
class Note:
    text: str = "tea and salt"


def editor(*, careful: bool) -> ResourcesServer:
    """A note to change; unless it is `careful`, verify reads its last line whatever is left of it."""

    def edit(state: Note, edits: list[Edit]) -> dict[str, Any]:
        """Replace texts."""
        for each in edits:
            if state.text.count(each.old) != 1:
                return {"error": "each old text must stand there once"}
            state.text = state.text.replace(each.old, each.new)
        return {"text": state.text}

    def verify(state: Note) -> float:
        return float((state.text.split("\n") if careful else state.text.splitlines())[-1] == "milk")

    return ResourcesServer("editor", tools=[edit], verify=verify, state=Note)


@pytest.mark.parametrize(("careful", "verdict"), [(False, Verdict.FAIL), (True, Verdict.PASS)])
def test_a_verify_that_fails_once_a_value_within_a_list_is_empty_is_told(*, careful: bool, verdict: Verdict) -> None:
    rows = rows_of(editor(careful=True)).rows
    call = ("edit", {"edits": [{"old": "tea and salt", "new": "milk"}]}, {"text": "milk"})
    rollouts = tuple(rollout_of(row, call, reward=1.0) for row in rows)
    [finding] = found_by("calls-valid", editor(careful=careful), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is verdict, finding.actual
