"""What a server can no longer do, or no longer as fast, after some hundred sessions."""

import asyncio
from dataclasses import dataclass

from gym_conformance.contract.statuses import is_success
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.options import is_here
from gym_conformance.session.channel import Channel, NoMoreSessions
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.process import slowdown
from gym_conformance.trials.before_and_after import Played, play
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.fresh_process import fresh_process
from gym_conformance.trials.needs import FIRST_LOOK, RESOURCES_SERVER
from gym_conformance.trials.trial import Trial, describe, refuse_made_up

#: A training run has millions; so many in all show a fixed number of places, and take no second.
_SEEDS = 120

#: A seed that is refused so often in a row is no accident.
_REFUSALS = 3

#: A session is slower that takes so many times as long as at first, and so many seconds more.
_TIMES, _MORE = 4.0, 0.1

#: Sessions of which the fastest counts: a machine is seldom busy during all of them.
_RUNS = 5

#: Seconds of a processor that show what share of one is free.
_COMPUTING = 0.1

#: Seconds between them: jobs of earlier sessions may end, and a limit of so many requests a second lets some through again.
_REST = 1.0


@check(
    "resources-seeds",
    "/seed_session MUST NOT stop opening sessions",
    why="a training run opens a million sessions; once the server opens no more, every rollout is lost.",
    needs=[RESOURCES_SERVER],
)
async def resources_seeds(trial: Trial, _: object) -> None:
    """Seeds the first row until the run has opened 120 sessions in all, and checks that the last seeds are still accepted.

    Source: `SimpleAgent.run` raises for any status but 200 (0.4.0); no request of the cookie contract ends a session.
    """
    seeds = trial.gym.endpoint.seeds
    refused = 0
    while seeds.taken < _SEEDS or refused or not trial.channel.exchanges:
        trial.channel.exchanges.clear()
        try:
            reply = reply_of(await trial.session().seed())
        except NoMoreSessions:
            if seeds.refused is None:
                raise
            raise _worn_out(trial, seeds.refused) from None
        refuse_made_up(trial.gym.row, reply)
        refused = refused + 1 if not is_success(reply.status) else 0
        if refused == _REFUSALS:
            if seeds.taken:
                raise _worn_out(trial, reply)
            return  # never taken: seed-accepts-rows has told it
    trial.note = f"at least {_SEEDS} sessions were opened in this run"


def _worn_out(trial: Trial, reply: Reply) -> Violation:
    """That no more are opened, and what may have led to it."""
    seeds = trial.gym.endpoint.seeds
    held = (
        f" Or a call holds a lock or a transaction for ever; the last ones before it were {', '.join(seeds.before)}."
        if seeds.before
        else ""
    )
    return Violation(
        f"status 200, as to the first {seeds.taken} seeds",
        describe(reply),
        "Each session takes something that is never given back: a slot of a pool, a semaphore, files or processes. "
        f"Free what the oldest sessions hold, or what had no requests for a while.{held}",
        Cause.WORN_OUT,
    )


@check(
    "resources-latency",
    "A session SHOULD take no longer after many others than at first",
    why="a training run opens a million sessions; each is slower than the one before, until they time out.",
    needs=[RESOURCES_SERVER, FIRST_LOOK],
)
async def resources_latency(trial: Trial, _: object) -> None:
    """Runs the recorded rollouts again that were run first on the untouched server, and compares how long their answers take.

    A session is slower if the fastest of five takes four times as long as the first one did, and at least 0.1 s more. A
    busy machine must not be the reason: next to each of the five, the slowdown of a computation is measured, and if the
    suite launched the server, a process started for comparison must take less than half as long. For a server on
    another machine, which others may also be using, it is only a caution.

    Our inference, from a server that wrote the history of all sessions to disk with every call.
    """
    look = trial.learned.first_look
    after = f"after {trial.gym.endpoint.requests:,} requests"
    for first in look.played if look else ():
        limit = max(_TIMES * first.seconds, first.seconds + _MORE)
        now = await _fastest(trial.gym, trial.channel, first, limit)
        if now is None or now.seconds <= limit:
            continue
        if now.alone <= limit or await _may_be_busy(trial, first, now):
            trial.caution = (
                f"a session takes {now.seconds:.2f} s {after}, and took {first.seconds:.2f} s: the machine may be busy"
            )
            return
        expected = f"about {first.seconds:.2f} s for all answers of a session, as at first"
        raise Violation(expected, f"{now.seconds:.2f} s {after}", _SLOWER)
    trial.note = f"as fast as at first {after}"


@dataclass(frozen=True)
class _Pace:
    """How many seconds a session took, and how many times as long as alone a computation takes meanwhile, at least 1."""

    seconds: float
    slowdown: float = 1.0

    @property
    def alone(self) -> float:
        """The seconds that it takes where the machine does nothing else."""
        return self.seconds / self.slowdown


_SLOWER = (
    "Each call searches, copies or writes what all earlier sessions have left, such as a list that nobody empties or a "
    "table without an index; or what each of them started is still running."
)


async def _fastest(gym: Gym, channel: Channel, first: Played, limit: float) -> _Pace | None:
    """The fastest of some sessions like it, of which no more are tried once one is within the limit.

    None where one comes to other statuses: that is no comparison.
    """
    paces = list[_Pace]()
    for number in range(_RUNS):
        await asyncio.sleep(_REST if number else 0.0)
        channel.exchanges.clear()
        now = await play(gym, channel, first.trajectory)
        if [step.status for step in now.outcome.steps] != [step.status for step in first.outcome.steps]:
            return None
        if now.seconds <= limit:
            return _Pace(now.seconds)
        paces.append(_Pace(now.seconds, slowdown(_COMPUTING)))
    return min(paces, key=lambda pace: pace.alone)


async def _may_be_busy(trial: Trial, first: Played, now: _Pace) -> bool:
    """Whether something else than earlier sessions may make a session take so long."""
    async with fresh_process(trial, suspicion=True) as fresh:
        if fresh is not None:
            there = await _fastest(fresh, Channel(fresh.endpoint), first, now.alone / 2)
            return there is None or there.alone > now.alone / 2
    return not is_here(trial.gym.endpoint.url)
