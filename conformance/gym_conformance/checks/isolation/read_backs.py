"""Whether all clients of a session read what one of its calls has written, a while later: several workers may answer."""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from functools import partial
from itertools import compress, product

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel, apart
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.evidence import LOOKS
from gym_conformance.trajectories.execute import TrajectoryRun, beside
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.outcome import Difference, StepOutcome
from gym_conformance.trajectories.reading_back import ReadBack, reading_back
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.chance import waiting_beyond_chance
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

_OWN_COPY = (
    "What the call wrote stays in the memory of one process or thread, and others answer from copies of their own: store "
    "it where all of them find it, and cache it for no longer than one request."
)

#: Seconds after a write in which it may still come to other replicas.
COPIED = 1.0

#: Sessions that read around a write beside each other, and requests that each may have under way.
_READ_BACK, _READS = 17, 12


class Way(Enum):
    """Over which connections a session reads before its write, and after it; each may lead to another worker."""

    #: A new one for each read.
    NEW = auto()

    #: The session's own, over which it has read before the write, too.
    OWN = auto()

    #: One, and a new one for each read after the write, one at a time: where nothing was read before, no copy is old.
    ONE = auto()


async def expect_known_read_back(trial: Trial, knowledge: Knowledge) -> None:
    """Require it of the trajectories that are known to write."""
    await expect_read_back(trial, [each for each in map(ReadBack.of, reading_back(knowledge)) if each])


async def _read_back(trial: Trial, channel: Channel, read_back: ReadBack, *, way: Way) -> Difference | None:
    """How one session's reads after its write do not agree, a while later.

    Its own connections are no other's, since sessions that wait beside it read as well.
    """
    async with apart(channel) as own:
        fresh = Channel(trial.gym.endpoint, fresh=True, record=channel)
        through = fresh if way is Way.NEW else own
        rollout = TrajectoryRun(trial.gym, through, read_back.trajectory, CookieHabit.KEEPING)
        await rollout.step(read_back.prefix)

        async def answers(calls: Sequence[Call]) -> list[StepOutcome]:
            if way is Way.ONE and len(calls) > 1:
                return [step for call in calls for step in await answers([call])]
            sent = [Call(call.name, rollout.arguments(call)) for call in calls]
            came = await asyncio.gather(*map(rollout.session.call, sent))
            steps = [StepOutcome.of_call(call, reply_of(each)) for call, each in zip(sent, came, strict=True)]
            rollout.replies += [step.body for step in steps]
            return steps

        before = await answers(read_back.before)
        write = read_back.trajectory.calls[read_back.write]
        said = rollout.arguments(write)
        if read_back.written:
            await answers([write])
        if way is Way.ONE:
            rollout.session.channel = fresh
        await asyncio.sleep(COPIED)
        torn = read_back.torn(said, before, await answers(read_back.after))
        # what holds for so many calls, as a lease does, has gone by the next ones
        return torn and read_back.torn(said, before, await answers(read_back.after), at_least=1)


async def expect_read_back(trial: Trial, read_backs: Sequence[ReadBack]) -> None:
    """Require that no read answers as before the write any more, once what was written must have arrived everywhere."""
    at_once = (await knowledge_of(trial)).beside(min(_READ_BACK, max(1, trial.gym.endpoint.in_flight // _READS)))
    # all ways beside each other: most of the time is spent waiting for what was written
    ways = list(product((*Way, Way.ONE), read_backs))
    tries = [partial(_read_back, trial, read_back=each, way=way) for way, each in ways]
    torn = await beside([partial(tried, Channel(trial.gym.endpoint)) for tried in tries], at_once)
    for (way, read_back), tried in compress(zip(ways, tries, strict=True), torn):
        control = partial(_read_back, trial, read_back=read_back.quiet, way=way)
        if found := await waiting_beyond_chance(trial, tried, control, at_once, LOOKS):
            trial.schedule = Schedule((read_back.trajectory,))
            raise Violation(
                f"{found.step} answers {found.actual!r} to every client once the call before it was answered",
                f"{found.actual!r} to some, and {found.expected!r} to others, as before that call",
                _OWN_COPY,
                Cause.SEPARATE_PROCESSES,
            )
