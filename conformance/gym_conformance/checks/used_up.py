"""What was granted at first, and is refused to each later session: a seat, a stock or a name that all sessions share."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from math import comb, prod
from typing import Any, Final

from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.refusals import grants
from gym_conformance.trajectories.evidence import allowed
from gym_conformance.trajectories.execute import TrajectoryRun, beside
from gym_conformance.trajectories.trajectory import REFUSED, FirstSession, Schedule, Trajectory
from gym_conformance.trials.ending import Untestable, Violation
from gym_conformance.trials.suspicions import STORE
from gym_conformance.trials.trial import Trial, describe

#: Sessions of each kind that are added, one look after the other.
_LOOKS: Final = (8, 24, 96, 384)

#: Seconds after which no further look is begun.
_SECONDS: Final = 60.0

#: Sessions that a replay opens at most until one is refused what the first was granted, and that are refused it then.
_UNTIL, _SINCE = 64, 17

#: How often the session is shown in what is to be replayed.
SHOWN: Final = 3

_USED_UP: Final = (
    "What one session takes, such as a seat, an item in stock or a name, is gone for all later ones; start the server anew "
    f"to try it. {STORE}"
)


@dataclass(frozen=True)
class _Answer:
    """A reply, and the arguments of the call that it answers."""

    reply: Reply
    asked: Any

    @property
    def refuses(self) -> bool:
        """Whether it refuses what was asked for, not the pace at which it was, and is no crash."""
        status = self.reply.status
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return False
        return is_refusal(status) or (is_success(status) and not grants(self.reply, self.asked))


@dataclass
class _Grant:
    """A call that a first session was granted, and what later ones were answered that did the same up to it.

    Attributes:
        session: what is done, up to and including the call.
        answers: what these were answered.
    """

    session: FirstSession
    answers: list[_Answer] = field(default_factory=list)

    @property
    def chance(self) -> float:
        """The chance that those that were granted it came before all that were not, if any order was as likely."""
        return 1 / comb(self.session.times + len(self.answers), self.session.times)


async def expect_granted(trial: Trial, sessions: Sequence[FirstSession], at_once: int) -> None:
    """Do what the first sessions did, and expect that what they were granted is not refused each time.

    One alone may have been lucky. So they are counted together, until it is no chance that all were granted it before it
    was refused to hundreds.

    Raises:
        Violation: it is refused each time.
    """
    endpoint = trial.gym.endpoint
    gone = await beside([partial(_gone, trial, each) for each in sessions], at_once, endpoint)
    grants_gone = [_Grant(each) for each in gone if each and (await _as_slow(trial, each)).refuses]
    if not grants_gone:
        return
    trial.tried.comparisons += 1
    began = time.monotonic()
    for number in _LOOKS:
        if not grants_gone or time.monotonic() - began > _SECONDS:
            break
        for each in grants_gone:
            asked = [partial(_answer, trial, Channel(endpoint), each.session.trajectory) for _ in range(number)]
            each.answers += await beside(asked, at_once, endpoint)
        grants_gone = [each for each in grants_gone if all(answer.refuses for answer in each.answers)]
        chance = prod(each.chance for each in grants_gone)
        if grants_gone and chance * len(_LOOKS) <= allowed(trial.tried.comparisons):
            least = min(grants_gone, key=lambda each: len(each.session.trajectory.calls))
            answers = [*least.answers, await _as_slow(trial, least.session)]
            raise _violation(trial, least.session.trajectory, answers)
    if grants_gone:
        trial.caution = (
            f"{_line(grants_gone[0].session.trajectory)} was granted to a first session, and to none of "
            f"{len(grants_gone[0].answers)} since; a server that is started anew would show whether that is chance"
        )


async def expect_granted_again(trial: Trial, trajectory: Trajectory) -> None:
    """What a replay does: open one session after the other, until one is refused what the first was granted.

    Raises:
        Violation: those that follow are refused it, too.
        Untestable: the first one was refused it.
    """
    granted = 0
    while granted < _UNTIL and not (await _answer(trial, Channel(trial.gym.endpoint), trajectory)).refuses:
        granted += 1
    if not granted:
        raise Untestable("a server that nobody has used: start it anew, since what was used up is gone")
    answers = [await _answer(trial, Channel(trial.gym.endpoint), trajectory) for _ in range(_SINCE - 1)]
    answers.append(await _answer(trial, trial.channel, trajectory))
    if all(answer.refuses for answer in answers):
        raise _violation(trial, trajectory, answers)


def _violation(trial: Trial, trajectory: Trajectory, since: Sequence[_Answer]) -> Violation:
    trial.schedule = Schedule((trajectory,) * SHOWN)
    return Violation(
        f"{_line(trajectory)} is granted, as to a first session",
        f"refused to each of {len(since)} sessions since that did the same: {describe(since[-1].reply)}",
        _USED_UP,
        Cause.OUTLIVING_STATE,
    )


def _line(trajectory: Trajectory) -> str:
    """Its last call, as a schedule shows it."""
    return Schedule((trajectory,)).lines()[-2].removesuffix(REFUSED)


async def _gone(trial: Trial, first: FirstSession) -> FirstSession | None:
    """The session up to the first call that it was granted, and that is refused now; None if there is none."""
    rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), first.trajectory)
    await rollout.step()
    for number in range(len(first.trajectory.calls)):
        await rollout.step()
        if number not in first.trajectory.noise and _last(rollout).refuses:
            break
    else:
        number = -1
    await rollout.session.close()
    if number < 0:
        return None
    return FirstSession(first.trajectory.chosen(range(number + 1)), first.began[: number + 2], first.times)


async def _answer(trial: Trial, channel: Channel, trajectory: Trajectory, began: Sequence[float] = ()) -> _Answer:
    """What its last call is answered in a fresh session, in which nothing comes sooner than `began` says."""
    rollout, start = TrajectoryRun(trial.gym, channel, trajectory), time.monotonic()
    await rollout.step()
    for number in range(1, 1 + len(trajectory.calls)):
        if began:
            await asyncio.sleep(began[number] - began[0] - (time.monotonic() - start))
        await rollout.step()
    await rollout.session.close()
    return _last(rollout)


def _last(rollout: TrajectoryRun) -> _Answer:
    return _Answer(reply_of(rollout.exchanges[-1]), rollout.made[-1].arguments)


async def _as_slow(trial: Trial, first: FirstSession) -> _Answer:
    """The same in a session that takes as long as the first did, in which a job may have ended."""
    trial.channel.exchanges.clear()
    return await _answer(trial, trial.channel, first.trajectory, first.began)
