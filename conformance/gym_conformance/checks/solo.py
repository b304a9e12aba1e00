"""What a trajectory comes to alone: the yardstick that every property of sessions is held to."""

from gym_conformance.checks.ending import NotApplicable
from gym_conformance.checks.trial import Trial
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, compared, differences, named, volatile
from gym_conformance.trajectories.trajectory import Trajectory

#: A difference counts where so many runs alone are all alike.
_RUNS = 6


class Solo:
    """Runs of one trajectory alone, as many as are needed; they are no part of the trial's record."""

    def __init__(self, trial: Trial, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        self._trial = trial
        self._outcome: Outcome | None = None
        self._mask: frozenset[Place] = frozenset()
        self._runs = 0

    async def outcome(self) -> Outcome:
        """What the first run came to."""
        return self._outcome or await self._run()

    async def difference(self, tried: Outcome) -> Difference | None:
        """Where `tried` is not as it is alone, leaving out what differs alone too: times, ids, random text.

        Raises:
            NotApplicable: nothing is left to compare.
        """
        outcome = await self.outcome()
        if next(differences(outcome, tried, self._mask), None) is None:
            return None
        while self._runs < _RUNS:
            await self._run()
        self._trial.volatile |= named(self._mask, outcome)
        if not compared(outcome, self._mask):
            raise NotApplicable("not reproducible alone: no two runs of a trajectory are alike anywhere")
        return next(differences(outcome, tried, self._mask), None)

    async def _run(self) -> Outcome:
        again = await run(self._trial.gym, Channel(self._trial.gym.endpoint), self.trajectory)
        self._outcome = self._outcome or again
        self._mask |= volatile(self._outcome, again)
        self._runs += 1
        return again
