"""Several trajectories at once, on a server that answers only a few at a time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Endpoint, PathHangs
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.attempts import Attempts, Broken
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial
from gym_mocks.reference import ReferenceServer
from tests.twins.judging import on_gym


class Crowd(Attempts):
    """Attempts of which the third at once hangs, and the fourth finds that the path has hung too often."""

    under_way = 0

    async def _try(self, schedule: Schedule, *, once: bool = False, shrinking: bool = False) -> Broken | None:
        del once, shrinking
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


def test_a_crowd_is_made_small_before_chance_is_excluded() -> None:
    """Each trial of a large one takes seconds."""
    sure = list[int]()

    async def evicts(trial: Trial, schedule: Schedule) -> None:
        sessions = len(schedule.trajectories)
        if not trial.once:
            sure.append(sessions)
        if sessions > 5:
            raise Violation("the first session", "another one", "a store of five")

    async def tried(gym: Gym) -> None:
        await Attempts(evicts, Trial(Bench(gym))).try_batch([Schedule((Trajectory(gym.row),) * 120, passing=True)])

    with pytest.raises(Broken) as broken:
        on_gym(ReferenceServer(), tried)
    assert sure == [6]
    assert len(broken.value.schedule.trajectories) == 6
