"""When the suspicion that one session shows in another is followed up."""

from functools import partial

import pytest

from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.suspicions import Likeness, Told, expect_none
from gym_conformance.trials.trial import Trial
from gym_mocks.reference import ReferenceServer
from tests.twins.judging import on_gym


def test_what_an_earlier_session_left_hides_no_fault() -> None:
    """The first trial may find what it would leave itself, such as what was listed last."""
    left = ["the first trial's, left by a session before it"]

    async def counted(channel: Channel, *, after_another: bool) -> Outcome:
        del channel
        shown = after_another and not (left and left.pop())
        return Outcome((StepOutcome("/count", 200, {"count": int(shown)}),))

    async def followed_up(gym: Gym) -> None:
        trial = Trial(Bench(gym))
        told = Told(Schedule(()), ", as before it")
        after, alone = (partial(counted, after_another=another) for another in (True, False))
        with pytest.raises(Violation):
            await expect_none(trial, Likeness(trial, after, alone, told))

    on_gym(ReferenceServer(), followed_up)
