"""A first request that hangs, as on a machine that was busy just then, does not leave the whole run without a verdict."""

import asyncio

from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.judging import judge


class _SlowAtFirst(ReferenceServer):
    """Its first OpenAPI document does not come in time."""

    asked = 0

    async def _openapi(self, request: HttpRequest) -> HttpReply:
        self.asked += 1
        if self.asked == 1:
            await asyncio.sleep(60)
        return await super()._openapi(request)


def test_a_first_look_that_hangs_is_repeated() -> None:
    found = judge(_SlowAtFirst(), timeout=2.5, checks=["seed-accepts-rollout-keys"])
    assert [one.verdict for one in found["seed-accepts-rollout-keys"]] == [Verdict.PASS]
