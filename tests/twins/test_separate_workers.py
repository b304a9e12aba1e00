"""A state that each worker keeps to itself is told from one that sessions share, though both show among other sessions."""

import random
from contextvars import ContextVar
from typing import Any

import pytest

from gym_conformance.findings import Cause, Verdict
from gym_mocks.reference import FunctionTool, ReferenceServer
from gym_mocks.resources import Score
from tests.twins.judging import found_by, judge
from tests.twins.twin import Json

_worker = ContextVar("worker", default="")


class ManyWorkers(ReferenceServer):
    """Each connection comes to one of two workers, which have sessions of their own, as uvicorn's have."""

    def __init__(self) -> None:
        super().__init__()
        self.workers: dict[Any, str] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        _worker.set(self.workers.setdefault(scope.get("client"), random.choice("ab")))
        await super().__call__(scope, receive, send)

    async def seed(self, session_id: str, row: Json) -> Json:
        await super().seed(f"{session_id} a", row)
        return await super().seed(f"{session_id} b", row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return await super().call(f"{session_id} {_worker.get()}", tool, arguments)

    async def score(self, session_id: str, row: Any, response: Json) -> Score:
        return await super().score(f"{session_id} {_worker.get()}", row, response)


class LastSession(ReferenceServer):
    """All calls are for the session that was seeded last."""

    last = ""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return await super().call(self.last or session_id, tool, arguments)

    async def seed(self, session_id: str, row: Json) -> Json:
        self.last = session_id
        return await super().seed(session_id, row)


@pytest.mark.parametrize(
    ("server", "cause"),
    [
        (ManyWorkers, Cause.SEPARATE_PROCESSES),
        pytest.param(LastSession, Cause.SHARED_STATE, marks=pytest.mark.twins),
    ],
)
def test_its_cause_is_named(server: type[ReferenceServer], cause: Cause) -> None:
    [finding] = found_by("isolation-concurrent", server())
    assert finding.verdict is Verdict.FAIL, finding
    assert finding.cause is cause, finding


def test_no_crowd_is_made_where_sessions_are_known_to_share_state() -> None:
    found = judge(LastSession(), checks=["isolation-interleaved", "isolation-crowded"])
    [shared], [crowded] = found.values()
    assert shared.cause is Cause.SHARED_STATE, shared
    assert crowded.verdict is Verdict.NOT_APPLICABLE, crowded
    assert "another finding says so" in crowded.reason
