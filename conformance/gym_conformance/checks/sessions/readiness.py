"""Whether what a reply promises is there: a session that is complete, a call that has taken effect."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import cycle, islice
from typing import Final

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import first_of_each
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import FEW, TrajectoryRun, beside
from gym_conformance.trajectories.generate import Knowledge, is_reading, writes_in
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.outcome import Difference, Outcome, varying
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, resolve
from gym_conformance.trials.before_and_after import lasting
from gym_conformance.trials.chance import waiting_beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

#: Seconds between the seed's reply and a late read. A session that is filled is the same after each of them; a world
#: that goes on by itself is not, or not before the first one.
PAUSES: Final = (0.3, 0.6, 1.2, 2.0)

#: Late reads that show what goes on changing.
_CONTROLS: Final = 8

#: Rows that are read, different tools for each, and all reads; seconds that the early ones of each may take.
_ROWS, _FIRST, _READS, _SECONDS = 4, 3, 8, 6.0

#: What says so itself is under way by design: a job that is queued.
_UNDER_WAY: Final = re.compile(
    r"pending|queued|running|progress|processing|scheduled|submitted|loading|waiting|(start|build)ing|not.ready|under.way",
    re.IGNORECASE,
)

#: So is what is written where the reply to the write says so; "scheduled" may be a word for success there.
_TO_COME: Final = re.compile(r"queued|(index|sync)ing", re.IGNORECASE)

#: What is not the same in two sessions at once differs anyway.
_EACH: Final = 2


@check(
    "seed-complete",
    "A session SHOULD be complete when /seed_session replies",
    why="otherwise it depends on how long the policy happens to think whether its first call finds the world ready.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    gentle=True,
)
async def seed_complete(trial: Trial, _: object) -> None:
    """Makes a read in separate sessions: immediately after the seed's reply, and 0.3, 0.6, 1.2 and 2 seconds after it.

    Whatever is the same after every pause must also be the same immediately; chance is excluded. Not compared are
    values that differ between the pauses, as in a world that moves on by itself; times; the reward, which may fall with
    time; and replies that say themselves that something is still in progress.

    Our inference: `SimpleAgent.run` (0.4.0) waits for the seed's reply, and for nothing else, before the policy acts.
    """
    knowledge = await knowledge_of(trial)
    reads = affordable(knowledge, _reads(knowledge))
    if not reads:
        raise NotApplicable("no read is known whose answer shows anything")
    await expect_each_complete(trial, reads, "the seed")


@dataclass(frozen=True)
class ReadLater:
    """Reads in the end of a session, after so many of its steps, and maybe a pause; or its verify instead, if `scored`."""

    trajectory: Trajectory
    begun: int = 1
    scored: bool = False

    async def made(self, trial: Trial, channel: Channel, pause: float = 0) -> Outcome:
        """What the whole session is answered."""
        rollout = TrajectoryRun(trial.gym, channel, self.trajectory)
        await rollout.step(self.begun)
        await asyncio.sleep(pause)
        outcome = await rollout.finish()
        await rollout.session.close()
        return outcome

    def told(self, outcome: Outcome) -> Outcome:
        """What the reads tell, without the reward; or what all calls and the verify do."""
        return Outcome(outcome.steps[1:] if self.scored else outcome.steps[self.begun : -1])

    def is_to_come(self, outcome: Outcome) -> bool:
        """Whether a reply before the reads, such as one of status 202, or what they tell says that it is not there yet."""
        before = outcome.steps[: self.begun]
        return any(step.status == HTTPStatus.ACCEPTED or _TO_COME.search(str(step.body)) for step in before) or any(
            _UNDER_WAY.search(str(step.body)) for step in self.told(outcome).steps
        )

    def later(self, settled: Sequence[Outcome], early: Sequence[Outcome]) -> Iterator[Difference]:
        """What was not there yet: of a reward only what is missing, for it may fall with the time."""
        for one in lasting([*map(self.told, settled)], [*map(self.told, early)]):
            numbers = is_number(one.expected) and is_number(one.actual)
            if not self.scored or (one.step == VERIFY and numbers and one.actual < one.expected):
                yield one


def affordable(knowledge: Knowledge, reads: Iterable[ReadLater], most: int = _READS) -> list[ReadLater]:
    """The first of them, as many as there is time for: the early ones are made one after the other."""
    return list(knowledge.affordable(reads, lambda read: read.trajectory.steps, _SECONDS, most))


async def expect_each_complete(trial: Trial, reads: Sequence[ReadLater], what: str) -> None:
    """Hold reads at once to reads after pauses: of all of them those that differ at first."""
    many = [*reads] * _EACH
    pausing = [partial(read.made, trial, Channel(trial.gym.endpoint), PAUSES[0]) for read in many]
    late = asyncio.ensure_future(beside(pausing, _at_once(trial, len(many))))
    try:
        # one after the other: beside others a read may come too late to meet what is not there yet
        early = [await read.made(trial, Channel(trial.gym.endpoint)) for read in many]
    finally:
        [settled] = await asyncio.gather(late, return_exceptions=True)
    if isinstance(settled, BaseException):
        raise settled
    for at, read in enumerate(reads):
        at_once = early[at :: len(reads)]
        if any(read.later(settled[at :: len(reads)], at_once)) and not all(map(read.is_to_come, at_once)):
            await _expect_complete(trial, read, what)
    trial.note = f"{len(reads)} reads, at once and {PAUSES[0]:g} s later"


async def _expect_complete(trial: Trial, read: ReadLater, what: str) -> None:
    """Hold a read at once to reads after pauses, chance excluded."""
    pauses = cycle(PAUSES)
    late = [partial(read.made, trial, Channel(trial.gym.endpoint), next(pauses)) for _ in range(_CONTROLS)]
    settled, *others = await beside(late, _at_once(trial, _CONTROLS))
    mask = varying([*map(read.told, (settled, *others))])

    async def differs(channel: Channel, *, early: bool) -> Difference | None:
        answered = await read.made(trial, channel, 0 if early else next(pauses))
        if early and read.is_to_come(answered):
            return None
        found = read.later([settled], [answered])
        return next((one for one in found if not one.hidden(mask)), None)

    if await differs(Channel(trial.gym.endpoint), early=True) and (
        found := await waiting_beyond_chance(
            trial, partial(differs, early=True), partial(differs, early=False), _at_once(trial, 2 * FEW)
        )
    ):
        trial.schedule = Schedule((read.trajectory,))
        raise Violation(
            f"{found.answer} at once, as from {PAUSES[0]:g} s after the reply to {what} on",
            f"{found.actual!r}",
            f"What {what} starts still runs after its reply, in a task or a thread: reply when it is done"
            + (", or let verify wait for it." if read.scored else "."),
        )


def _at_once(trial: Trial, most: int) -> int:
    """How many sessions pause at once: each call may compute for seconds, as a program does that is run."""
    known = trial.learned.knowledge
    return known.beside(most) if known else most


def _reads(knowledge: Knowledge) -> Iterator[ReadLater]:
    """Reads that need no earlier reply, each to be made first in a session: of a few rows the first of each tool."""
    for trajectory in islice(first_of_each(lambda one: one.row, known(knowledge)).values(), _ROWS):
        own = (call for call in trajectory.calls if is_reading(call) and resolve(call.arguments, []) == call.arguments)
        reads = first_of_each(lambda call: call.name, [*own, *bare_reads(trajectory.row)])
        for call in islice(reads.values(), _FIRST):
            yield ReadLater(Trajectory(trajectory.row, (call,)))


async def once_more(trial: Trial, schedule: Schedule) -> None:
    """What `--gym-replay` does: all that the reads in the end follow is made before the pause."""
    [trajectory] = schedule.trajectories
    writes = writes_in(trajectory.calls)
    begun = writes[-1] + 2 if writes else 1
    read = ReadLater(trajectory, begun, scored=1 < begun == trajectory.steps - 1)
    await _expect_complete(trial, read, "the call" if begun > 1 else "the seed")


seed_complete = replace(seed_complete, attempt=once_more)
