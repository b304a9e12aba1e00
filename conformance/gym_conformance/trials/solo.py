"""The outcome of a trajectory that runs alone, to which every property of sessions compares."""

import time
from collections.abc import Awaitable, Callable, Sequence

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, compared, differences, named, volatile
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.bench import KnownAlone
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.ending import NotApplicable
from gym_conformance.trials.trial import Trial

#: So many runs alone show what differs alone, too; fewer will do while an example is shortened.
_RUNS, _SHORTENING = 6, 2

#: What came of so many trajectories is kept for later trials. What is as it was then differs from no run alone; what is
#: not is held to new ones, unless one takes more seconds: then those of earlier trials count, too, but for one.
_KEPT, _LONG = 16, 1.0


class Solo:
    """Runs one trajectory alone, as often as needed; these runs are not part of the trial's record.

    `mask` has the places that are known to differ among the runs; `seconds` is how long the last one took.
    """

    def __init__(self, trial: Trial, trajectory: Trajectory, habit: CookieHabit = CookieHabit.REPLACING) -> None:
        self.trajectory = trajectory
        self.habit = habit
        self.mask: frozenset[Place] = frozenset()
        self.seconds = 0.0
        self._trial = trial
        self._outcome: Outcome | None = None
        self._pace: Sequence[float] = ()  # when the steps of the last run that differed began
        self._runs = 0
        contract = trial.gym.contract.name
        self._key = (contract, trajectory.row, repr(trajectory.calls), trajectory.noise, trajectory.answer, habit)
        self._of_earlier = False  # what is known of it is no more than the outcome of an earlier trial's run
        if known := trial.learned.alone.get(self._key):
            self._outcome, self.seconds = known.outcome, known.seconds
            self._of_earlier = known.seconds <= _LONG
            if not self._of_earlier:
                self.mask, self._runs = known.mask, min(known.runs, _RUNS - 1)

    async def outcome(self) -> Outcome:
        """The outcome of the first run."""
        return self._outcome or await self._run()

    async def difference(self, tried: Outcome) -> Difference | None:
        """How `tried` differs from runs alone, but for what differs among these: times, ids, random text.

        This is only a suspicion; see `beyond_chance`.

        Raises:
            NotApplicable: nothing is left to compare.
        """
        await self.outcome()
        if self.told_from(tried) is None:
            return None
        await self.settle(tried)
        return self.told_from(tried)

    async def settle(self, beside: Outcome | None = None) -> None:
        """Run it alone as often as it takes to know what differs alone.

        One of the runs pauses, if it has paused beside others. Each run only adds to what is left out, so none is needed once that includes all that differs `beside` others.

        Raises:
            NotApplicable: nothing is left to compare.
        """
        if self._of_earlier:
            self._outcome, self._of_earlier = None, False
        outcome = await self.outcome()

        def differs() -> bool:
            return beside is None or self._difference(beside) is not None

        while (
            self._runs < (_SHORTENING if self._trial.shrinking else _RUNS)
            and compared(outcome, self.mask)
            and differs()
        ):
            await self._run()
        began = () if beside is None or self._trial.shrinking else beside.began
        if began and began[-1] - began[0] > self.seconds and compared(outcome, self.mask) and differs():
            await self._run(began)
        self._trial.volatile |= named(self.mask, outcome)
        left, values = compared(outcome, self.mask), compared(outcome, frozenset())
        self._trial.hidden = (self._trial.hidden[0] + values - left, self._trial.hidden[1] + values)
        if not left:
            raise NotApplicable("not reproducible alone: no two runs of a trajectory agree anywhere")

    def told_from(self, tried: Outcome) -> Difference | None:
        """How `tried` differs from the first run alone, as far as is known by now."""
        difference = self._difference(tried)
        self._pace = tried.began if difference else self._pace
        return difference

    async def differs(self, endpoint: Endpoint, seconds: float) -> bool:
        """Whether one more run alone differs from the first: the control of every comparison (`chance.Control`)."""
        pace = self._pace if seconds else ()
        again = await run(self._trial.gym, Channel(endpoint), self.trajectory, pace, self.habit)
        return self._difference(again) is not None

    def _difference(self, other: Outcome) -> Difference | None:
        if self._outcome is None:
            return None
        return next((one for one in differences(self._outcome, other, self.mask) if not one.of_time), None)

    async def beyond_chance(
        self, again: Callable[[Channel], Awaitable[Outcome]], first: Outcome | None = None, *, together: bool = True
    ) -> Difference | None:
        """How runs made by `again` differ from runs alone, chance excluded; the first uses the trial's own channel.

        Raises:
            NotApplicable: nothing is left to compare.
        """
        if await self.difference(first or await again(self._trial.channel)) is None:
            return None

        async def tried(channel: Channel) -> Difference | None:
            return self.told_from(await again(channel))

        return await beyond_chance(self._trial, tried, self, together=together, suspected=True)

    async def _run(self, began: Sequence[float] = ()) -> Outcome:
        start = time.monotonic()
        again = await run(self._trial.gym, Channel(self._trial.gym.endpoint), self.trajectory, began, self.habit)
        self.seconds = time.monotonic() - start
        self._outcome = self._outcome or again
        self.mask |= volatile(self._outcome, again)
        self._runs += 1
        alone = self._trial.learned.alone
        if self._key in alone or len(alone) < _KEPT:
            alone[self._key] = KnownAlone(self._outcome, self.mask, self._runs, self.seconds)
        return again
