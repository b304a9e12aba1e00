"""A hang that does not come again is the machine's; one that does is the server's."""

import asyncio
import time
from typing import Any

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from tests.twins.judging import found_by, running


def test_a_hang_that_does_not_come_again_is_the_machine_s() -> None:
    class Busy(ReferenceServer):
        busy = True

        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            if self.busy:
                self.busy = False
                await asyncio.sleep(60)
            return await super().score(session_id, row, response)

    found = found_by("verify-scores-rows", Busy(), timeout=3.0)
    assert {one.verdict for one in found} == {Verdict.PASS}


def test_a_hang_aside_from_the_trial_s_record_is_sent_again_too() -> None:
    """A light request that is held up while verify computes goes over a channel of its own, and has one finding."""

    class Blocks(ReferenceServer):
        scored = 0

        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            if len(str(response)) > 100_000:
                time.sleep(2.5)  # noqa: ASYNC251 - it computes on the event loop
            return await super().score(session_id, row, response)

    (check,) = (each for each in CHECKS if each.id == "resources-loop-free")
    with running(
        Blocks(), timeout=1.0, sockets=True
    ) as run:  # as beside other checks, which have looked at the server before
        found = run.judge(check)
    assert [one.verdict for one in found] == [Verdict.FAIL]
    assert "no complete answer came in time" in found[0].actual
    assert any("GET" in command or "curl" in command for command in found[0].reproduce)
