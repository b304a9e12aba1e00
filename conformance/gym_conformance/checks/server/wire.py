"""Faults on the wire: what a line that breaks, is slow, or carries a request twice does to an episode."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import is_refusal
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.wire_faults import DISTURBANCES, HANG_UPS, StruckChannel, WireFault
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.in_flight import Known, measured_alone
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Difference
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.before_and_after import RUNS
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

#: Trajectories, and calls of each, that are disturbed.
_TRAJECTORIES, _CALLS = 2, 3

_CANCELLED: Final = (
    "The handler is cancelled while it awaits something, with half of its work done or a lock held: change the state in "
    "one go, after the last await, and release in `finally` (`async with`)."
)
_RACES: Final = (
    "Two requests of one session change its state at the same time, or a reply goes to whoever reads next: take a lock for "
    "each session, and read each request's body to its end even if it is refused."
)


@dataclass(frozen=True)
class _Disturbed:
    """A trajectory whose request number `at` meets a fault, and the ways in which it goes alone that will do."""

    ways: Sequence[Known]
    at: int
    fault: WireFault

    async def run(self, trial: Trial, channel: Channel) -> Difference | None:
        """Where a disturbed run is as in none of the ways."""
        struck = StruckChannel(channel.endpoint, self.at, self.fault, reply_of(self.ways[0].exchanges[self.at]).elapsed)
        try:
            came = await run(trial.gym, struck, self.ways[0].trajectory)
        finally:
            channel.exchanges[:] = struck.exchanges
        if any(is_refusal(step.status) for step in came.steps):
            return None  # in form: the client knows
        first, *others = self.ways
        elsewhere = [{one.place[0] for one in way.differences(came)} for way in others]
        found = (one for one in first.differences(came) if all(one.place[0] in places for places in elsewhere))
        return next(found, None)

    async def alone(self, trial: Trial, channel: Channel) -> Difference | None:
        """Where an undisturbed run is not as it was: the control."""
        return self.ways[0].difference(await run(trial.gym, channel, self.ways[0].trajectory))


@check(
    "wire-hang-up",
    "A request whose client hangs up SHOULD take full effect or none",
    why="connections break in every long run; the client sends again, and the episode goes on from a state that no policy made.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def wire_hang_up(trial: Trial, _: object) -> None:
    """Hangs up on the seed, on calls and on the verify of two trajectories: early, late, and when the reply begins.

    Early and late are a fifth and four fifths of the time that the request takes alone. The request is then sent again,
    and the trajectory continues: the answers must be as alone, or as if the request had been made twice. Calls are also
    hung up on and not sent again: later answers must be as with the call, or as without it. A 4xx is fine too. Episodes
    afterwards must end as they did before. Runs with `--gym-load` only, over plain HTTP.

    Our inference: `request` in nemo_gym/server_utils.py sends again on a lost connection (every version), and from
    0.7.0 on a middleware cancels the handler of a request whose client is gone.
    """
    tried = await _try(trial, HANG_UPS, _CANCELLED)
    trial.note = f"hung up {tried} times"


@check(
    "wire-disturbed",
    "A request SHOULD have the same effect over a connection that is slow or used before, or if it arrives twice",
    why="proxies and clients resend what took long, reuse connections, and read slowly under load; what that does to an episode looks like the policy's doing.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: DISTURBANCES,
)
async def wire_disturbed(trial: Trial, disturbance: str) -> None:
    """Sends the seed, calls and the verify of two trajectories over connections with one disturbance at a time.

    Each request arrives twice at the same time, on two connections; or on a connection over which an unknown tool was
    called with a body that is not JSON; or in four parts, with its reply read slowly into a small buffer. The answers
    must be as alone; a call that arrives twice may also act twice, and a 4xx is fine. Episodes afterwards must end as
    they did before. Runs with `--gym-load` only, over plain HTTP.

    Our inference: `request` in nemo_gym/server_utils.py sends again on a lost connection while the first request may
    still be under way (every version).
    """
    tried = await _try(trial, [DISTURBANCES[disturbance]], _RACES)
    trial.note = f"tried {tried} times"


async def _try(trial: Trial, faults: Sequence[WireFault], hint: str) -> int:
    """Let each fault happen to each request of a few trajectories; how often that was.

    Raises:
        NotApplicable: nothing can be tried.
        Violation: an episode went as none should.
    """
    if not trial.gym.endpoint.url.startswith("http://"):
        raise NotApplicable("the faults are tried over plain HTTP only")
    tried = 0
    for trajectory in known(await knowledge_of(trial))[:_TRAJECTORIES]:
        once = await measured_alone(trial.gym, trajectory)
        if once is None:
            continue
        async for disturbed in _disturbed(trial, once, faults):
            tried += 1
            if found := await beyond_chance(trial, partial(disturbed.run, trial), partial(disturbed.alone, trial)):
                forms = "as alone" if len(disturbed.ways) == 1 else "as alone, or as where it acts twice or not at all"
                raise Violation(
                    f"{found.answer}, {forms}",
                    f"{found.actual!r}; request {disturbed.at + 1} of the session: {disturbed.fault.said}",
                    hint,
                )
        if found := await _afterwards(trial, once):
            raise Violation(
                f"{found.answer}, as before",
                f"{found.actual!r} in each new session, after other sessions' requests: {faults[0].said}",
                hint,
            )
    if not tried:
        raise NotApplicable("no episode that was tried ends well and earns the same reward twice, alone")
    return tried


async def _afterwards(trial: Trial, once: Known) -> Difference | None:
    """Where an episode that nothing happens to is not as it was before, each time that it is run."""
    found = None
    for _run in range(RUNS):
        trial.channel.exchanges.clear()
        found = once.difference(await run(trial.gym, trial.channel, once.trajectory))
        if found is None:
            return None
    return found


async def _disturbed(trial: Trial, once: Known, faults: Sequence[WireFault]) -> AsyncIterator[_Disturbed]:
    """Each request of a trajectory, in each way; a call only if it is known what it does twice, or not at all."""
    again = [fault for fault in faults if fault.again]
    graded = trial.gym.kind is ServerKind.SINGLE_TURN  # its calls are written, never made
    calls = () if graded else once.trajectory.calls
    scored = (len(calls) + 1,) if trial.gym.endpoint.groups.size == 1 else ()
    for at in (0, *scored):
        for fault in again:
            yield _Disturbed((once,), at, fault)
    for number in range(len(calls[:_CALLS])):
        for disturbed in (*await _sent_again(trial, once, number, again), *await _lost(trial, once, number, faults)):
            yield disturbed


async def _sent_again(trial: Trial, once: Known, number: int, faults: Sequence[WireFault]) -> list[_Disturbed]:
    """A call that is sent again; only where it is known what it does twice, for a fault after which it may act twice."""
    trajectory = once.trajectory
    twice = None
    if any(fault.twice for fault in faults):
        # its first reply is lost, and so no part of what comes
        twice = await measured_alone(trial.gym, trajectory.with_noise(number, trajectory.calls[number]))
    harmless = [_Disturbed((once,), number + 1, fault) for fault in faults if not fault.twice]
    acting = [_Disturbed((once, twice), number + 1, fault) for fault in faults if twice and fault.twice]
    return [*harmless, *acting]


async def _lost(trial: Trial, once: Known, number: int, faults: Sequence[WireFault]) -> list[_Disturbed]:
    """A call whose reply never comes; only where it is known what comes with it and without it."""
    trajectory = once.trajectory
    without = trajectory.without({number})
    lost = [fault for fault in faults if not fault.again]
    if not lost or _refers(without):
        return []
    unanswered = replace(trajectory, noise=trajectory.noise | {number})
    ways = [way for each in (unanswered, without) if (way := await measured_alone(trial.gym, each)) is not None]
    return [_Disturbed(ways, number + 1, fault) for fault in lost] if len(ways) == 2 else []  # noqa: PLR2004 - both


def _refers(trajectory: Trajectory) -> bool:
    """Whether a call was made with what a call returned that is left out now."""
    return any('"call": -1' in json.dumps(call.arguments) for call in trajectory.calls)
