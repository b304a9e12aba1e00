"""Whether a read shows a write where it was made before that write, too."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, differences, varying
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.before_and_after import is_by_design
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial

#: How often a suspected read is made after the write: what comes a call or two later is not remembered.
ROUNDS: Final = 3

#: Runs that show what differs anyway.
_CONTROLS: Final = 3

_REMEMBERED: Final = (
    "The read repeats an earlier answer, from a cache that no write clears. Clear it with each write of the session, or do "
    "without it."
)


@dataclass(frozen=True)
class AroundWrite:
    """Reads just before a write, and again just after it.

    Attributes:
        whole: has all calls.
        begun: the numbers of those that come first.
        write: the number of the write.
        reads: the numbers of the reads.
        rounds: how often they are made after the write.
    """

    whole: Trajectory
    begun: tuple[int, ...]
    write: int
    reads: tuple[int, ...]
    rounds: int = 1

    def trajectory(self, *, before: bool = True) -> Trajectory:
        """The calls, with or without the reads before the write."""
        return self.whole.chosen([*self.begun, *self.reads * before, self.write, *self.reads * self.rounds])

    async def made(self, trial: Trial, channel: Channel, *, before: bool = True) -> Sequence[StepOutcome]:
        """What is answered to the reads before the write, if they are made, to the write, and to the reads after it."""
        trajectory = self.trajectory(before=before)
        rollout = TrajectoryRun(trial.gym, channel, trajectory)
        await rollout.step(trajectory.steps - 1)
        await rollout.session.close()
        return rollout.steps[1 + len(self.begun) :]

    async def suspected(self, trial: Trial) -> list["AroundWrite"]:
        """Each read that says after the write what it has said before it, and something else where it was not asked then."""
        tried, control = [
            await self.made(trial, Channel(trial.gym.endpoint), before=before) for before in (True, False)
        ]
        reads, many = self.reads, len(self.reads)
        told = zip(reads, tried, tried[many + 1 :], control[1:], strict=False)
        return [
            replace(self, reads=(read,), rounds=ROUNDS)
            for read, old, new, shown in told
            if not _news(old, new) and _news(old, shown)
        ]


def _news(one: StepOutcome, other: StepOutcome, mask: frozenset[Place] = frozenset()) -> Difference | None:
    found = differences(Outcome((one,)), Outcome((other,)), mask)
    return next((each for each in found if not each.of_time and not is_by_design(each)), None)


def _mask(steps: Sequence[StepOutcome]) -> frozenset[Place]:
    """Where what should be the same answer differs."""
    return varying([Outcome((step,)) for step in steps])


async def expect_fresh(trial: Trial, one: AroundWrite) -> None:
    """Require that a read after a write shows the write where it was made before, too, if it does where it was not.

    Where the write is answered otherwise after the read, such as by a game that is over, nothing is compared.
    """
    made = [await one.made(trial, Channel(trial.gym.endpoint), before=before) for before in (True, False) * _CONTROLS]
    tried, controls = made[::2], made[1::2]
    old, shown = [steps[0] for steps in tried], [step for steps in controls for step in steps[1:]]
    writes = [steps[0] for steps in controls]
    mask, anyway = _mask(old) | _mask(shown), _mask(writes)
    difference = _news(shown[0], old[0], mask)
    if difference is None or any(step.is_refused for step in (*old, *writes)):
        return

    async def remembered(channel: Channel) -> Difference | None:
        before, write, *after = await one.made(trial, channel)
        moved = any(_news(before, each) for each in after) or _news(writes[0], write, anyway)
        return None if moved else difference

    async def control(channel: Channel) -> Difference | None:
        now, *_ = await one.made(trial, Channel(trial.gym.endpoint))  # a price that follows the clock is another by now
        _, *after = await one.made(trial, channel, before=False)
        return None if all(_news(now, each, mask) for each in after) else difference

    if found := await beyond_chance(trial, remembered, control, together=True):
        write = one.whole.calls[one.write].name
        trial.schedule = Schedule((one.trajectory(),))
        raise Violation(
            f"{found.answer} after {write}, as in sessions that did not ask before it",
            f"{found.actual!r}, as before {write}, {ROUNDS} times",
            _REMEMBERED,
        )
