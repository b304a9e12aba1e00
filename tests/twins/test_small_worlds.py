"""Small worlds of which no rollout is recorded: a tool or two, a few numbers, and faults that the smallest call would not show."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer, TaskRow
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from gym_mocks.wire.bodies import json_body
from tests.twins.judging import found_by
from tests.twins.unrecorded import rows_of


def _with(data: Dataset, *fields: dict[str, Any]) -> Dataset:
    """The same rows, each with more fields of its own."""
    rows = [Row({**row.data, **more}, row.source) for row, more in zip(data.rows, fields, strict=True)]
    return Dataset(tuple(rows), (), len(rows))


class Total(ResourcesServer):
    """Amounts are added up, for all sessions together unless it is `careful`; no tool only reads."""

    def __init__(self, *, careful: bool) -> None:
        every: list[int] = []

        def add(state: list[int], amount: int) -> dict[str, int]:
            amounts = state if careful else every
            amounts.append(amount)
            return {"total": sum(amounts)}

        super().__init__("total", tools=[add], verify=lambda: 0.0, state=list)


class Copies(ResourcesServer):
    """One number of a list is copied to another place; the list is one for all sessions unless it is `careful`."""

    def __init__(self, *, careful: bool) -> None:
        every = [3, 1, 2]

        def copy(state: list[int], source: int, target: int) -> str:
            numbers = state if careful else every
            if not (0 <= source < len(numbers) and 0 <= target < len(numbers)):
                raise HttpRefusal(400, "there is no such place")
            numbers[target] = numbers[source]
            return "copied"

        def show(state: list[int]) -> list[int]:
            return state if careful else every

        super().__init__("copies", tools=[copy, show], verify=lambda: 0.0, state=lambda: [3, 1, 2])


class HintRow(TaskRow):
    """A row with hints, which are given one after the other."""

    hints: list[str]


class Hints(ResourcesServer):
    """Hints are given in turn; how many were is kept for a row, or, where it is `careful`, for a session."""

    def __init__(self, *, careful: bool) -> None:
        given: dict[str, list[int]] = {}

        def hint(row: HintRow, state: list[int]) -> str:
            times = state if careful else given.setdefault(repr(row.hints), [])
            times.append(1)
            return row.hints[len(times) - 1] if len(times) <= len(row.hints) else "no more hints"

        super().__init__("hints", tools=[hint], verify=lambda: 0.0, state=list)


class WishRow(TaskRow):
    """A row with what is to be said."""

    wish: str


@dataclass
class Talk:
    """What was said, of which no reply tells."""

    said: list[str] = field(default_factory=list)


class Talks(ResourcesServer):
    """Whoever says the row's wish has earned the reward, or whoever comes after that unless it is `careful`."""

    def __init__(self, *, careful: bool) -> None:
        every = Talk()

        def say(state: Talk, text: str) -> str:
            (state if careful else every).said.append(text)
            return "I see."

        def verify(row: WishRow, state: Talk) -> float:
            return float(row.wish in (state if careful else every).said)

        super().__init__("talks", tools=[say], verify=verify, state=Talk)


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize(
    ("world", "fields"),
    [
        pytest.param(Total, ({}, {}), id="a sum where no rollout says an amount"),
        pytest.param(Copies, ({}, {}), id="two places that are not the same one"),
        pytest.param(
            Hints,
            ({"hints": ["it is red", "it is round", "it grows"]}, {"hints": ["it barks", "it runs"]}),
            id="what a row's sessions use up one by one",
        ),
        pytest.param(Talks, ({"wish": "refund"}, {"wish": "upgrade"}), id="a reward, though no reply changes"),
    ],
)
def test_what_earlier_sessions_left_is_told(
    world: Callable[..., ResourcesServer], fields: tuple[dict[str, Any], ...], *, careful: bool
) -> None:
    server = world(careful=careful)
    [finding] = found_by("isolation-earlier", server, _with(rows_of(server), *fields))
    assert (finding.verdict is Verdict.FAIL) is not careful, finding


class Walks(ResourcesServer):
    """Steps are counted up to a number; it has no OpenAPI document, and says in other words what is no number."""

    def __init__(self, *most: int) -> None:
        def walk(steps: int) -> int:
            return steps

        super().__init__("walks", tools=[walk], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.most = {f"of {at}": each for at, each in enumerate(most)}
        self.left: dict[str, int] = {}

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        self.left[session_id] = self.most[row["walk"]]
        return await super().seed(session_id, row)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        steps = json_body(request).get("steps")
        if not isinstance(steps, int) or isinstance(steps, bool):
            raise HttpRefusal(422, "steps must be an integer")
        if not 1 <= steps <= self.left.get(request.session_id, 9):
            raise HttpRefusal(422, "steps out of range")
        return await super()._call_tool(request)


@pytest.mark.parametrize(
    ("most", "fails"),
    [
        pytest.param((9, 9), False, id="as declared"),
        pytest.param((8, 8), True, id="off by one"),
        pytest.param((5, 5), False, id="as many as are left"),
        pytest.param((8, 9), False, id="as the row has it"),
    ],
)
def test_a_bound_that_is_off_by_one_is_told_where_no_schema_is_served(most: tuple[int, int], *, fails: bool) -> None:
    server = Walks(*most)
    data = _with(rows_of(server), {"walk": "of 0"}, {"walk": "of 1"})
    for row in data.rows:
        [tool] = row.data["responses_create_params"]["tools"]
        tool["parameters"]["properties"]["steps"] |= {"minimum": 1, "maximum": 9}
    found = found_by("drift-argument-refused", server, data)
    assert any(each.verdict is Verdict.FAIL for each in found) is fails, found
