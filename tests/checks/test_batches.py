"""Several trajectories at once, on a server that answers only a few at a time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from gym_conformance.session.channel import Endpoint, PathHangs
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.attempts import Attempts, Broken


class Crowd(Attempts):
    """Attempts of which the third at once hangs, and the fourth finds that the path has hung too often."""

    under_way = 0

    async def _try_one(self, schedule: Schedule, *, last: bool = False) -> Broken | None:
        del last
        hangs = self.trial.gym.endpoint.hangs
        self.under_way += 1
        try:
            if hangs["/verify"] >= 2:
                raise PathHangs("POST /verify hung 2 times before in this run")
            if self.under_way > 2:
                hangs["/verify"] += 1
                return Broken(ServerFault(Fault.HANG, "nothing in 1 s"), self.trial, schedule)
            await asyncio.sleep(0)
        finally:
            self.under_way -= 1
        return None


def test_what_hangs_only_beside_others_is_asked_one_at_a_time() -> None:
    """Two requests hung, so that the path would not be asked again in this run: but the crowd was to blame for that."""
    endpoint = Endpoint("http://localhost", cast("Any", None), 1.0)
    trial: Any = SimpleNamespace(gym=SimpleNamespace(endpoint=endpoint))
    attempts = Crowd(cast("Any", None), trial)
    asyncio.run(attempts.try_batch([Schedule(())] * 8))
    assert attempts.jammed
    assert "one at a time, since several at once got no answer in time" in attempts.note(1.0)
    assert not endpoint.hangs
