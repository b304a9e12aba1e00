"""What the first sessions were granted, or earned, and no later one is: a seat, a stock or a name that all sessions share."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from math import comb, prod
from typing import Any, Final

from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.refusals import grants
from gym_conformance.trajectories.evidence import allowed
from gym_conformance.trajectories.execute import TrajectoryRun, beside, run
from gym_conformance.trajectories.trajectory import REFUSED, FirstSession, Schedule, Trajectory
from gym_conformance.trials.ending import Untestable, Violation
from gym_conformance.trials.suspicions import STORE
from gym_conformance.trials.trial import Trial, describe

#: Sessions of each kind that are added, one look after the other.
_LOOKS: Final = (8, 24, 96, 384, 1536)

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

_EARNED: Final = (
    "The reward depends on earlier sessions, such as on how often something was asked for in all of them; start the server "
    f"anew to try it. {STORE}"
)


@dataclass(frozen=True)
class _Answer:
    """The last reply to what a first session did: to its last call, with that call's arguments, or to a verify, with the reward."""

    reply: Reply
    asked: Any = None
    earned: Any = None

    def is_gone(self, first: FirstSession) -> bool:
        """Whether the call is refused, though not for the pace at which it was made, nor by a crash; or another reward is earned."""
        if first.reward is not None:
            return is_number(self.earned) and self.earned != first.reward
        status = self.reply.status
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return False
        return is_refusal(status) or (is_success(status) and not grants(self.reply, self.asked))


@dataclass
class _Gone:
    """What a first session was granted, or earned, and later ones that did the same were not.

    Attributes:
        session: what is done, up to and including the call; to the end, if it has a reward.
        answers: what these were answered.
    """

    session: FirstSession
    answers: list[_Answer] = field(default_factory=list)

    @property
    def lasts(self) -> bool:
        """Whether it is gone each time, and all that is earned is the same."""
        earned = {repr(each.earned) for each in self.answers}
        return len(earned) <= 1 and all(each.is_gone(self.session) for each in self.answers)

    @property
    def chance(self) -> float:
        """The chance that those that were granted it came before all that were not, if any order was as likely."""
        return 1 / comb(self.session.times + len(self.answers), self.session.times)

    @property
    def expected(self) -> str:
        """What the first session came to."""
        if self.session.reward is not None:
            return f"/verify earns {self.session.reward}, as in a first session"
        call = Schedule((self.session.trajectory,)).lines()[-2].removesuffix(REFUSED)
        return f"{call} is granted, as to a first session"

    @property
    def actual(self) -> str:
        """What became of it."""
        last = self.answers[-1]
        if self.session.reward is not None:
            return f"{last.earned} in each of {len(self.answers)} sessions since that did the same"
        return f"refused to each of {len(self.answers)} sessions since that did the same: {describe(last.reply)}"


async def expect_granted(trial: Trial, sessions: Sequence[FirstSession], at_once: int) -> None:
    """Do what the first sessions did, and expect that what they were granted, and earned, is not gone for good.

    One alone may have been lucky. So they are counted together, until it is no chance that all of them came before
    hundreds that fared worse.

    Raises:
        Violation: it is gone each time.
    """
    endpoint = trial.gym.endpoint
    found = await beside([partial(_gone, trial, each) for each in sessions], at_once, endpoint)
    gone = [_Gone(each) for each in found if each and (await _as_slow(trial, each)).is_gone(each)]
    if not gone:
        return
    trial.tried.comparisons += 1
    began = time.monotonic()
    for number in _LOOKS:
        if not gone or time.monotonic() - began > _SECONDS:
            break
        for each in gone:
            asked = [partial(_answer, trial, each.session) for _ in range(number)]
            each.answers += await beside(asked, at_once, endpoint)
        gone = [each for each in gone if each.lasts]
        if gone and prod(each.chance for each in gone) * len(_LOOKS) <= allowed(trial.tried.comparisons):
            least = min(gone, key=lambda each: len(each.session.trajectory.calls))
            least.answers.append(await _as_slow(trial, least.session))
            raise _violation(trial, least)
    if gone:
        trial.caution = (
            f"{gone[0].expected}, and {gone[0].actual}; a server that is started anew would show whether that is chance"
        )


async def expect_granted_again(trial: Trial, trajectory: Trajectory) -> None:
    """What a replay does: open one session after the other, until one is refused, or does not earn, what the first was.

    Raises:
        Violation: those that follow are no better off.
        Untestable: the first one was refused it.
    """
    granted = FirstSession(trajectory, ())
    if (await _answer(trial, granted)).is_gone(granted):
        raise Untestable("a server that nobody has used: start it anew, since what was used up is gone")
    whole = replace(trajectory, noise=frozenset())
    earned = (await run(trial.gym, Channel(trial.gym.endpoint), whole)).reward
    sessions = [granted, *([FirstSession(whole, (), reward=earned)] if is_number(earned) else ())]
    for _session in range(_UNTIL):
        for first in sessions:
            if (await _answer(trial, first)).is_gone(first):
                since = _Gone(first, [await _answer(trial, first, trial.channel) for _ in range(_SINCE)])
                if since.lasts:
                    raise _violation(trial, since)
                return


def _violation(trial: Trial, gone: _Gone) -> Violation:
    trial.schedule = Schedule((gone.session.trajectory,) * SHOWN)
    hint = _USED_UP if gone.session.reward is None else _EARNED
    return Violation(gone.expected, gone.actual, hint, Cause.OUTLIVING_STATE)


async def _gone(trial: Trial, first: FirstSession) -> FirstSession | None:
    """The session up to the first call that it was granted, and that is refused now; all of it, if it earns another reward."""
    whole = replace(first.trajectory, noise=frozenset())  # verify is told of refused calls, too, as it was then
    rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), whole)
    await rollout.step()
    found = None
    for number in range(len(whole.calls)):
        await rollout.step()
        granted = FirstSession(first.trajectory.chosen(range(number + 1)), first.began, first.times)
        if number not in first.trajectory.noise and _last(rollout, granted).is_gone(granted):
            found = granted
            break
    else:
        if first.reward is not None:
            await rollout.step()
            found = replace(first, trajectory=whole) if _last(rollout, first).is_gone(first) else None
    await rollout.session.close()
    return found


async def _answer(
    trial: Trial, first: FirstSession, shown: Channel | None = None, began: Sequence[float] = ()
) -> _Answer:
    """What a fresh session that does the same is answered last, where nothing comes sooner than `began` says."""
    channel = shown or Channel(
        trial.gym.endpoint
    )  # made here, and gone with its replies: of hundreds only the last counts
    rollout, start = TrajectoryRun(trial.gym, channel, first.trajectory), time.monotonic()
    await rollout.step()
    for number in range(1, 1 + len(first.trajectory.calls) + (first.reward is not None)):
        if began:
            await asyncio.sleep(began[number] - began[0] - (time.monotonic() - start))
        await rollout.step()
    await rollout.session.close()
    return _last(rollout, first)


def _last(rollout: TrajectoryRun, first: FirstSession) -> _Answer:
    reply = reply_of(rollout.exchanges[-1])
    if first.reward is not None:
        return _Answer(reply, earned=rollout.steps[-1].body)
    return _Answer(reply, rollout.made[-1].arguments)


async def _as_slow(trial: Trial, first: FirstSession) -> _Answer:
    """The same in a session that takes as long as the first did, in which a job may have ended."""
    trial.channel.exchanges.clear()
    return await _answer(trial, first, trial.channel, first.began)
