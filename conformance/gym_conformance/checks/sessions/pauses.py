"""Whether a session is still there when a policy has thought for long.

A session is begun where the run first learns what calls mean something, and is taken up again near its end: waiting costs
nothing so. Only what differs then is tried with pauses of its own.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.contract.statuses import is_error
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.trajectories.evidence import CHANCE, SEVENTEEN, chance_of
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.outcome import Difference, Outcome, differences
from gym_conformance.trajectories.waiting import TakenUp, Waiting
from gym_conformance.trials.before_and_after import RUNS
from gym_conformance.trials.chance import waiting_beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial

#: Seconds of the pauses that are tried where a session of the run was lost; no longer than that one was left alone.
_PAUSES: Final = (1.0, 3.0, 8.0, 20.0, 60.0)

#: Sessions that show whether a pause is worth to be tried with many.
_FEW: Final = 3

#: Other sessions that are opened while one waits: fewer than a batch of rollouts has.
_STRANGERS: Final = 400

#: Verifies of each of them, in the end: more than sessions are opened, so that none is left that is older.
_VERIFIES: Final = 5

_TIME_TO_LIVE: Final = (
    "The session, or its cookie, has a time to live: let it last as long as a rollout may take, counted from the last "
    "request."
)
_PLACES: Final = (
    "There is room for a fixed number of sessions, and a new one replaces one that is still open: make room for all "
    "rollouts of a batch, or refuse the seed."
)
_ENDED: Final = (
    "A verify ends another session than its own, such as the oldest: let it release only its own, by its id. Or the "
    "session's time to live is as long as so many verifies take."
)


_LOST_ANYWAY: Final = {
    Cause.SEPARATE_PROCESSES: "another process answers",
    Cause.SHARED_STATE: "another session shares its state",
}


@check(
    "resources-session-kept",
    "A session MUST be kept while its policy thinks",
    why="calls after a long thought are made in another session, or in none, and the rollout is scored on that.",
    needs=[RESOURCES_SERVER],
)
async def resources_session_kept(trial: Trial, _: object) -> None:
    """Continues sessions that were left alone since the run began, for a client that keeps the seed's cookie and for one that replaces it.

    The remaining calls, and verify, must be answered as without a pause. If they are not, sessions pause for 1, 3, 8,
    20 and 60 seconds, three of each; if one of the three is lost, chance is excluded. A session is lost if a call gets an error
    that it does not get without the pause, or if everything is answered as in a session in which nothing was done
    before. Other differences, such as those of a clock, do not count.

    If a pause alone loses no session, what follows it is varied: another session's seed, the seeds of 400 others, both,
    and verifies of 400 others. All of 17 sessions must then be lost, twice. Nothing is tried if each process was found
    to keep sessions of its own, or sessions to share state.

    Source: `setup_session_middleware` in nemo_gym/server_utils.py gives the cookie 14 days (every version).
    """
    keeping = _Keeping(trial, await _taken_up(trial))
    losing = [each.habit for each in keeping.taken_up if await keeping.loses(each.outcome)]
    lost = [habit for habit in losing if not await keeping.lost_anyway(habit)]
    for habit in lost[:1]:  # what is lost with both has nothing to do with the client
        async with aclosing(keeping.suspected(partial(keeping.lost, habit=habit))) as suspected:
            async for pause in suspected:
                if difference := await keeping.lost_by(pause, habit):
                    raise _lost(difference, habit, f"a pause of {pause:g} s", "one", _TIME_TO_LIVE)
        for others, pause, what, hint in _among_others(keeping.pauses[-1:]):
            if difference := await keeping.lost_among(partial(keeping.seeds, others), pause, habit):
                raise _lost(difference, habit, what, "them", hint)
        if difference := await keeping.lost_among(keeping.verifies, 0.0, habit):
            raise _lost(difference, habit, f"verifies of {_STRANGERS} others", "them", _ENDED)
    trial.note = f"sessions were left alone for {keeping.longest:.0f} s"
    if lost:
        trial.caution = f"a session that was left alone for {keeping.longest:.0f} s was lost; neither a pause nor {_STRANGERS} others lose one, so that more of them may"


def _among_others(pauses: Sequence[float]) -> Iterator[tuple[int, float, str, str]]:
    """How many others are opened after which pause, what that is called, and what it hints at.

    Both at once come last: what has expired may be cleared away at few of the seeds, by chance.
    """
    many = f"the seeds of {_STRANGERS} others"
    yield from ((1, pause, f"{pause:g} s, and another's seed", _TIME_TO_LIVE) for pause in pauses)
    yield _STRANGERS, 0.0, many, _PLACES
    yield from ((_STRANGERS, pause, f"{pause:g} s, and {many}", _TIME_TO_LIVE) for pause in pauses)


def _lost(difference: Difference, habit: CookieHabit, what: str, without: str, hint: str) -> Violation:
    expected = f"{difference.answer} after {what}, as without {without}"
    return Violation(expected, f"{difference.actual!r} to {habit.value}", hint, Cause.LOST_SESSION)


@check(
    "resources-reward-kept",
    "A reward SHOULD NOT depend on how long its policy thinks",
    why="the same actions earn less when the trainer or the model is slower, so rewards drift with the load.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def resources_reward_kept(trial: Trial, _: object) -> None:
    """Continues the same sessions as resources-session-kept, and compares what they earn.

    If all replies are as without the pause but the reward is not, sessions pause for 1, 3, 8, 20 and 60 seconds, each
    beside one that does not, and chance is excluded. Nothing can be said if the world moves on by itself, as its
    replies show.

    Our inference: a rollout waits for a free GPU, for other rollouts of its batch, and for what the model writes.
    """
    keeping = _Keeping(trial, await _taken_up(trial))
    if any([await keeping.rewards(each.outcome) for each in keeping.taken_up]):
        async with aclosing(keeping.suspected(keeping.rewarded)) as suspected:
            async for pause in suspected:
                if found := await keeping.rewarded_after(pause):
                    raise Violation(
                        f"a reward of {found.expected!r} after a pause of {pause:g} s, as without one",
                        f"{found.actual!r}",
                        "The score depends on the time since the seed or the last call: count steps instead.",
                    )
    trial.note = f"sessions were left alone for {keeping.longest:.0f} s"


async def _taken_up(trial: Trial) -> Sequence[TakenUp]:
    """What became of the sessions that were left alone; they are taken up when a check first asks.

    Raises:
        NotApplicable: there are none, or their state is known to be lost without a pause, which minutes of pauses would not tell.
    """
    for cause in _LOST_ANYWAY.keys() & trial.learned.causes:
        raise NotApplicable(f"a session is lost without a pause where {_LOST_ANYWAY[cause]}: another finding says so")
    await knowledge_of(trial)
    while trial.learned.waiting:
        taken = trial.learned.waiting.pop(0)  # also if it gets no answer: it cannot go on then
        trial.learned.taken_up.append(await taken.taken_up())
    if not trial.learned.taken_up:
        raise NotApplicable("no session is left alone: no call is known to begin one with, or it was not answered")
    return trial.learned.taken_up


#: How a session that pauses for so many seconds shows what is suspected, over a channel of its own.
Shows = Callable[[float, Channel], Coroutine[Any, Any, Difference | None]]


class _Keeping:
    """One trajectory whose sessions pause, or do not.

    `taken_up` are those that were left alone, the one that waited the shortest for `longest` seconds; `pauses` are shorter.
    """

    def __init__(self, trial: Trial, taken_up: Sequence[TakenUp]) -> None:
        self.taken_up = taken_up
        self.longest = min(each.age for each in taken_up)
        self.pauses = [each for each in _PAUSES if each < self.longest]
        self._trial = trial
        self._trajectory = taken_up[0].trajectory
        self._solo = Solo(trial, self._trajectory)
        self._strangers: list[Outcome] = []

    async def loses(self, outcome: Outcome) -> Difference | None:
        """How an outcome shows that its session was lost."""
        alone = await self._solo.outcome()
        if self._solo.told_from(outcome) is None:
            return None
        if not self._strangers:
            await self._solo.settle()
            self._strangers = [await self._stranger(seeded=seeded) for seeded in (True, False)]
        fails = any(
            is_error(two.status) > is_error(one.status) for one, two in zip(alone.steps, outcome.steps, strict=True)
        )
        strange = any(next(differences(one, outcome, self._solo.mask), None) is None for one in self._strangers)
        return self._solo.told_from(outcome) if fails or strange else None

    async def rewards(self, outcome: Outcome) -> Difference | None:
        """How an outcome's reward differs, where it is the same otherwise."""
        alone = await self._solo.outcome()
        if self._solo.told_from(outcome) is None:
            return None
        await self._solo.settle()
        first, *others = [*differences(alone, outcome, self._solo.mask), None]
        scores = first is not None and first.step == VERIFY and is_number(first.expected) and is_number(first.actual)
        return first if scores and others == [None] else None

    async def suspected(self, shows: Shows) -> AsyncGenerator[float, None]:
        """The pauses after which one of a few sessions shows it, the shortest first; all are waited for at the same time."""
        begun = [
            (pause, [asyncio.create_task(shows(pause, Channel(self._trial.gym.endpoint))) for _ in range(_FEW)])
            for pause in self.pauses
        ]
        try:
            for pause, several in begun:
                if any(await asyncio.gather(*several)):
                    yield pause
        finally:
            waiting = [task for _, several in begun for task in several]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def rewarded_after(self, pause: float) -> Difference | None:
        """How the reward of sessions differs that pause for so long, chance excluded."""
        paused, at_once = (partial(self.rewarded, seconds) for seconds in (pause, 0))
        return await waiting_beyond_chance(self._trial, paused, at_once, 2 * RUNS)

    async def rewarded(self, pause: float, channel: Channel) -> Difference | None:
        """How the reward of a session differs that pauses for so long."""
        return await self.rewards(await self._after(channel, CookieHabit.REPLACING, pause))

    async def lost_anyway(self, habit: CookieHabit) -> bool:
        """Whether so many sessions are lost without a pause that none could be known to be lost by one."""
        [look] = SEVENTEEN
        tries = [partial(self.lost, 0, Channel(self._trial.gym.endpoint), habit) for _ in range(look.controls)]
        lost = [each for each in await beside(tries, look.controls) if each]
        return chance_of([(look, look.trials, len(lost))]) > CHANCE

    async def lost_by(self, pause: float, habit: CookieHabit) -> Difference | None:
        """How sessions are lost that pause for so long, chance excluded."""
        paused, at_once = (partial(self.lost, seconds, habit=habit) for seconds in (pause, 0))
        return await waiting_beyond_chance(self._trial, paused, at_once, 2 * RUNS)

    async def seeds(self, strangers: int) -> None:
        """Open so many other sessions."""
        gym = self._trial.gym
        await beside(gym.contract.session(Channel(gym.endpoint), self._trajectory.row).seed for _ in range(strangers))

    async def verifies(self) -> None:
        """Open other sessions, and verify each several times."""
        gym = self._trial.gym

        async def verified() -> None:
            session = gym.contract.session(Channel(gym.endpoint), self._trajectory.row)
            await session.seed()
            for _ in range(_VERIFIES):
                await session.verify(DO_NOTHING.response)

        await beside([verified] * _STRANGERS)

    async def lost_among(
        self, strangers: Callable[[], Awaitable[None]], pause: float, habit: CookieHabit
    ) -> Difference | None:
        """How all of many sessions are lost, twice, that pause for so long, and then others come.

        Controls beside them would meet the same others; of those that `lost_anyway` made, too few were lost for chance.
        """
        gym = self._trial.gym
        found: Difference | None = None
        for _again in range(2):
            begin = [partial(Waiting.begun, gym, Channel(gym.endpoint), self._trajectory, habit) for _ in range(RUNS)]
            waiting = await beside(begin, RUNS)
            await asyncio.sleep(pause)
            await strangers()
            for each in waiting:
                found = await self.loses((await each.taken_up()).outcome)
                if found is None:
                    return None
        return found

    async def lost(self, pause: float, channel: Channel, habit: CookieHabit) -> Difference | None:
        """How a session is lost that pauses for so long."""
        return await self.loses(await self._after(channel, habit, pause))

    async def _after(self, channel: Channel, habit: CookieHabit, seconds: float) -> Outcome:
        waiting = await Waiting.begun(self._trial.gym, channel, self._trajectory, habit)
        await asyncio.sleep(seconds)
        return (await waiting.taken_up()).outcome

    async def _stranger(self, *, seeded: bool) -> Outcome:
        """What comes where another session, or none, takes over."""
        waiting = await Waiting.begun(self._trial.gym, Channel(self._trial.gym.endpoint), self._trajectory)
        rollout = waiting.rollout
        rollout.session = self._trial.gym.contract.session(Channel(self._trial.gym.endpoint), self._trajectory.row)
        if seeded:
            await rollout.session.seed()
        return await rollout.finish()
