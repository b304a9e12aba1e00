"""A verify that answers only whole groups of rollouts is named as such; one that hangs alone and together is not."""

import asyncio
from typing import Any

import pytest

from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge
from tests.twins.twin import dataset


class _Group(ReferenceServer):
    """Scores four rollouts of a prompt together."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        waiting: list[asyncio.Future[None]] = vars(self).setdefault("waiting", [])
        waiting.append(asyncio.get_running_loop().create_future())
        mine = waiting[-1]
        if len(waiting) == 4:
            for one in waiting:
                one.set_result(None)
            waiting.clear()
        await mine
        return await super().score(session_id, row, response)


class _Hangs(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        await asyncio.sleep(60)
        return await super().score(session_id, row, response)


class _NumberedGroup(_Group):
    """Counts a rollout once, and refuses one that does not say which it is, as 0.7.0's genrm_compare does."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        number = row.model_dump().get("_ng_rollout_index")
        if number is None:
            raise HttpRefusal(422, "_ng_rollout_index is required for cohort comparison")
        seen: set[int] = vars(self).setdefault("seen", set())
        if number in seen:
            await asyncio.sleep(60)
        seen.add(number)
        return await super().score(session_id, row, response)


@pytest.mark.parametrize(
    ("server", "verdict"),
    [(_Group, Verdict.UNTESTABLE), (_NumberedGroup, Verdict.UNTESTABLE), (_Hangs, Verdict.FAIL)],
)
def test_a_verify_that_waits_for_the_rest_of_its_group_is_no_violation(
    server: type[ReferenceServer], verdict: Verdict
) -> None:
    with serve(server()) as url:
        found = judge(url, dataset(), timeout=2.5, checks=["seed-accepts-rollout-keys", "verify-without-session"])
    assert [one.verdict for one in found["seed-accepts-rollout-keys"]] == [verdict]
    if verdict is Verdict.UNTESTABLE:
        reasons = {finding.reason for findings in found.values() for finding in findings}
        assert len(reasons) == 1
        assert reasons.pop().startswith(
            "all rollouts of a prompt at the same time: /verify does not answer one alone, but "
        )
