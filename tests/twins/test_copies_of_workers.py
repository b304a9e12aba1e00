"""A worker that keeps its first read answers with an old one later, where another worker had read nothing before."""

import random
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from gym_conformance.checks.isolation import read_backs
from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Cause, Verdict
from gym_conformance.trajectories.profiles import Profile
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire.app import Receive, Scope, Send
from tests.twins.judging import running
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import rows_of

Json = dict[str, Any]
Few = Annotated[int, Field(ge=1, le=3)]

#: The worker that answers.
_worker: ContextVar[str] = ContextVar("_worker")


@dataclass
class Tour:
    """How many places are left, and what each worker read of them first."""

    left: int = 12
    read: dict[str, int] = field(default_factory=dict)


class TwoWorkers(ResourcesServer):
    """Each connection is one of two workers', which answers what it has read first: until a write, unless it is `stale`."""

    def __init__(self, *, stale: bool) -> None:
        def book(state: Tour, places: Few) -> Json:
            state.left -= places
            if not stale:
                state.read.clear()
            return {"booked": True}

        def list_places(state: Tour) -> Json:
            return {"left": state.read.setdefault(_worker.get(), state.left)}

        super().__init__("tours", tools=[book, list_places], state=Tour, verify=lambda: 1.0)
        del self.handlers["GET", "/openapi.json"]
        self.workers = defaultdict[Any, str](lambda: random.choice("ab"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _worker.set(self.workers[scope.get("client")])
        await super().__call__(scope, receive, send)


@pytest.mark.parametrize("stale", [False, True])
def test_a_copy_that_no_write_replaces_is_told(*, stale: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_backs, "COPIED", 0.1)
    [check] = [each for each in CHECKS if each.id == "isolation-two-clients"]
    few = Profile("tests", 1, 0.0)  # what is drawn would find it only now and then
    data = rows_of(TwoWorkers(stale=stale))
    played = [rollout_of(row, ("book", {"places": 3}, {"booked": True}), reward=1.0) for row in data.rows]
    data = replace(data, rollouts=tuple(played))
    with running(TwoWorkers(stale=stale), data, timeout=5.0, profile=few) as run:
        [finding] = run.judge(check)
    assert (finding.verdict is Verdict.FAIL) is stale, finding
    assert finding.cause is (Cause.SEPARATE_PROCESSES if stale else None)
