"""Sessions that are begun and then left idle for a while."""

import time
from dataclasses import dataclass

from gym_conformance.contract.openapi import ServerKind
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Outcome
from gym_conformance.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class TakenUp:
    """What became of a session that was left idle for `age` seconds."""

    trajectory: Trajectory
    habit: CookieHabit
    age: float
    outcome: Outcome


@dataclass(frozen=True)
class Waiting:
    """A session that was begun and has been idle since `since`, a monotonic time."""

    rollout: TrajectoryRun
    habit: CookieHabit
    since: float

    @classmethod
    async def begun(
        cls, gym: Gym, channel: Channel, trajectory: Trajectory, habit: CookieHabit = CookieHabit.REPLACING
    ) -> "Waiting":
        """Seed, and make half of the calls."""
        rollout = TrajectoryRun(gym, channel, trajectory, habit)
        await rollout.step(1 + (len(trajectory.calls) + 1) // 2)
        return cls(rollout, habit, time.monotonic())

    @property
    def age(self) -> float:
        """Seconds for which it has been idle."""
        return time.monotonic() - self.since

    async def taken_up(self) -> TakenUp:
        """Make the remaining calls, and verify."""
        age = self.age
        return TakenUp(self.rollout.trajectory, self.habit, age, await self.rollout.finish())


async def left_waiting(gym: Gym, knowledge: Knowledge) -> list[Waiting]:
    """One idle session for each of two cookie habits; none if no call is known, or the server does not answer."""
    trajectory = next((each for each in known(knowledge) if each.calls), None)
    if trajectory is None or gym.kind is ServerKind.SINGLE_TURN:
        return []
    habits = (CookieHabit.REPLACING, CookieHabit.KEEPING)
    try:
        return [await Waiting.begun(gym, Channel(gym.endpoint), trajectory, habit) for habit in habits]
    except ServerFault:
        return []
