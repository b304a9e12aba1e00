"""Whether a session is complete when its seed is answered, or is filled in the background."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import compress, cycle, islice
from typing import Final

from gym_conformance.checks.chance import differ_each_time
from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Violation
from gym_conformance.checks.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.checks.property import knowledge_of
from gym_conformance.checks.trial import Trial
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.before_and_after import lasting
from gym_conformance.trajectories.execute import FEW, TrajectoryRun, beside
from gym_conformance.trajectories.first import bare_reads, known
from gym_conformance.trajectories.generate import Knowledge, is_read
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, masked, volatile
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, resolve

#: Seconds between the seed's reply and a late read. A session that is filled is the same after each of them; a world
#: that goes on by itself is not, or not before the first one.
PAUSES: Final = (0.3, 0.6, 1.2, 2.0)

#: Late reads that show what goes on changing.
_CONTROLS: Final = 8

#: Rows that are read, different tools for each, and all reads; seconds that the early ones may take.
_ROWS, _TOOLS, _READS, _SECONDS = 4, 3, 8, 2.0

#: What is not the same in two sessions at once differs anyway.
_EACH: Final = 2


@check(
    "seed-complete",
    Level.SHOULD,
    "A session SHOULD be complete when /seed_session replies",
    why="the first call meets a world that is not there yet, or is, as the policy happens to think for longer or not.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
)
async def seed_complete(trial: Trial, _: object) -> None:
    """Makes a read in sessions of its own: at once after the seed's reply, and 0.3, 0.6, 1.2 and 2 seconds after it.

    What is answered alike after each pause must be answered at once, too, chance excluded. What differs between the
    pauses, as where a world goes on by itself, is left out, and so are times, and the reward, which may fall with them.

    Our inference: `SimpleAgent.run` (0.4.0) waits for the seed's reply, and for nothing else, before the policy acts.
    """
    knowledge = await knowledge_of(trial)
    reads = list(islice(_reads(knowledge), knowledge.sessions_in(_SECONDS, at_most=_READS)))
    if not reads:
        raise NotApplicable("no read is known that tells anything")
    many = reads * _EACH
    late = asyncio.gather(*(_read(trial, Channel(trial.gym.endpoint), read, PAUSES[0]) for read in many))
    try:
        # one after the other: beside others a read may come too late to meet what is not there yet
        early = [await _read(trial, Channel(trial.gym.endpoint), read) for read in many]
    finally:
        [settled] = await asyncio.gather(late, return_exceptions=True)
    if isinstance(settled, BaseException):
        raise settled
    suspected = (next(lasting(early[at :: len(reads)], settled[at :: len(reads)]), None) for at in range(len(reads)))
    for read in compress(reads, suspected):
        await _expect_complete(trial, Schedule((read,)))
    trial.note = f"{len(reads)} reads, at once and {PAUSES[0]:g} s later"


async def _expect_complete(trial: Trial, schedule: Schedule) -> None:
    """Hold a read at once to reads after pauses, chance excluded."""
    [read] = schedule.trajectories
    pauses = cycle(PAUSES)
    late = [partial(_read, trial, Channel(trial.gym.endpoint), read, next(pauses)) for _ in range(_CONTROLS)]
    settled, *others = await beside(late, _CONTROLS)
    mask = frozenset[Place]().union(*(volatile(settled, other) for other in others))

    async def differs(channel: Channel, *, early: bool) -> Difference | None:
        answered = await _read(trial, channel, read, 0 if early else next(pauses))
        found = lasting([settled], [answered])
        return next((one for one in found if not masked(one.place, mask)), None)

    if await differs(Channel(trial.gym.endpoint), early=True) and (
        found := await differ_each_time(trial, partial(differs, early=True), partial(differs, early=False), FEW)
    ):
        trial.schedule = schedule
        raise Violation(
            f"{found.step} answers {found.expected!r} at once, as from {PAUSES[0]:g} s after the seed's reply on",
            f"{found.actual!r}",
            "The seed goes on in the background after its reply, in a task or a thread: reply when the session is filled.",
        )


async def _read(trial: Trial, channel: Channel, read: Trajectory, pause: float = 0) -> Outcome:
    """What a session is answered so many seconds after its seed; not its reward, which may fall with the time."""
    rollout = TrajectoryRun(trial.gym, channel, read)
    await rollout.step()
    await asyncio.sleep(pause)
    outcome = await rollout.finish()
    await rollout.session.close()
    return Outcome(outcome.steps[:-1])


def _reads(knowledge: Knowledge) -> Iterator[Trajectory]:
    """Reads that need no earlier reply, each to be made first in a session: of a few rows the first of each tool."""
    rows: dict[int, Trajectory] = {}
    for trajectory in known(knowledge):
        rows.setdefault(id(trajectory.row), trajectory)
    for trajectory in islice(rows.values(), _ROWS):
        own = (
            call for call in trajectory.calls if is_read(call.name) and resolve(call.arguments, []) == call.arguments
        )
        reads = {call.name: call for call in reversed([*own, *bare_reads(trajectory.row)])}
        for call in islice(reversed(reads.values()), _TOOLS):
            yield Trajectory(trajectory.row, (call,))


seed_complete = replace(seed_complete, attempt=_expect_complete)
