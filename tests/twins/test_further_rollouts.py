"""Further recorded rollouts of a row are repeated where they call other tools, whatever they earned."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from gym_conformance.findings import Verdict, worst
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.twin import Turn, rollout_of
from tests.twins.unrecorded import rows_of


@dataclass
class Till:
    """What is in it, and what the last call has put there."""

    total: int = 0
    last: int = 0


def till(*, undoes: bool) -> ResourcesServer:
    """Amounts are added, and undone; unless it `undoes`, that does nothing any more."""

    def add(state: Till, amount: int) -> dict[str, Any]:
        state.total, state.last = state.total + amount, amount
        return {"total": state.total}

    def undo(state: Till) -> dict[str, Any]:
        state.total, state.last = state.total - (state.last if undoes else 0), 0
        return {"total": state.total}

    return ResourcesServer("till", tools=[add, undo], verify=lambda: 1.0, state=Till)


@pytest.mark.parametrize(("undoes", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_rollout_that_calls_another_tool_is_repeated_too(*, undoes: bool, verdict: Verdict) -> None:
    data = rows_of(till(undoes=undoes))
    added: Turn = ("add", {"amount": 5}, {"total": 5})
    played = [
        rollout_of(row, *turns, reward=1.0)
        for row in data.rows
        for turns in ([added], [added, ("undo", {}, {"total": 0})])
    ]
    found = found_by("repeat-recorded", till(undoes=undoes), replace(data, rollouts=tuple(played)))
    assert worst(found) is verdict, [one.actual for one in found]
