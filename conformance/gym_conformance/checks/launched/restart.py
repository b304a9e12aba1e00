"""A restart: what becomes of sessions that are open when the server's process ends and comes up again.

Source: `mask_sample` in nemo_gym/base_resources_server.py (0.7.0) is for a reward that measures no policy, and names a lost
session first. NeMo Gym's main documents a 404 for a call in one (`ResourcesSessionLostError`), and a 410 where the
worker that owned it is gone (`server_runtime.request_handling.session_routing`); neither is released.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import is_crash, is_refusal, is_success
from gym_conformance.contract.verify_reply import is_masked
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.execute import TrajectoryRun, beside
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Difference, Outcome
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.before_and_after import RUNS, lasting, run_times
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, NotExamined, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

#: Trajectories whose sessions are open over the restart.
_TRAJECTORIES: Final = 2

_HINT: Final = (
    "The session was in the memory of the process, and an unknown id starts an empty session, as with setdefault or "
    "get(id, {}). Refuse it with 404, set mask_sample in the verify reply, or keep sessions where a new process finds them."
)


@dataclass
class _Interrupted:
    """A trajectory's outcomes alone, and sessions that are in its midst when the process ends."""

    alone: Sequence[Outcome]
    rollouts: Sequence[TrajectoryRun]
    channels: Sequence[Channel]


@check(
    "restart-session",
    "A restarted server SHOULD continue its sessions, or refuse them",
    why="rollouts in progress are scored as if nothing had been done; zeros that no policy earned move the baseline of their group.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def restart_session(trial: Trial, _: object) -> None:
    """Ends the process in the middle of 17 sessions of a trajectory, starts it again, and continues each of them.

    The answers must be as without the restart, or a 4xx; a verify may also mask its sample. It is a violation if the
    reward differs, and is the same in all 17 sessions, and in 17 that nobody interrupted; if a tool answers 5xx; or if
    a tool answers in its usual form from a state that knows nothing of the earlier calls. Trajectories are tried only
    if their earlier calls show in later replies or, where calls are only graded, if their verify differs without the
    seed.

    The server is stopped as by Ctrl-C, with two seconds to save what it has. Since this takes a launch, it is done only
    with `--gym-profile ci` and longer ones.

    Our inference, from `mask_sample` in nemo_gym/base_resources_server.py (0.7.0), which is for a lost session.
    """
    relaunch = trial.launched.relaunch
    if relaunch is None:
        raise NotApplicable("only a server that was launched with --gym-env is started again")
    if not trial.settings.search.profile.relaunches:
        raise NotExamined("starting the server again takes as long as its launch (--gym-profile ci)")
    interrupted = await _interrupt(trial)
    if not interrupted:
        raise NotApplicable("nothing to lose: nothing that was tried shows in a later reply, or in verify")
    try:
        await asyncio.to_thread(relaunch.restart)
    except NotLaunched as missing:
        trial.gym.endpoint.until = 0.0  # nothing answers there any more
        raise Untestable(f"to start a second time: it needs {missing.needs}") from None
    for each in interrupted:
        after = await asyncio.gather(*(rollout.finish() for rollout in each.rollouts))
        trial.channel.exchanges[:] = each.channels[0].exchanges
        for difference in lasting(each.alone, after):
            _judge(each, difference, after)
    refused = any(is_refusal(step.status) for each in interrupted for step in each.rollouts[0].steps)
    trial.note = "it refuses the sessions that it has lost" if refused else "it goes on with its sessions"


async def _interrupt(trial: Trial) -> list[_Interrupted]:
    """Open sessions of trajectories that have something to lose, and take their first steps."""
    found = list[_Interrupted]()
    graded = trial.gym.kind is ServerKind.SINGLE_TURN  # calls are written, never made: there is only the seed to lose
    for trajectory in known(await knowledge_of(trial)):
        if len(found) < _TRAJECTORIES and (graded or trajectory.calls):
            begun = 0 if graded else max(1, len(trajectory.calls) // 2)
            alone = await run_times(trial.gym, trajectory, RUNS)
            if await _loses(trial, trajectory, begun, alone):
                found.append(await _begin(trial, trajectory, begun, alone))
    return found


async def _begin(trial: Trial, trajectory: Trajectory, begun: int, alone: Sequence[Outcome]) -> _Interrupted:
    channels = [Channel(trial.gym.endpoint) for _ in range(RUNS)]
    rollouts = [TrajectoryRun(trial.gym, channel, trajectory) for channel in channels]
    for _step in range(1 + begun):
        await asyncio.gather(*(rollout.step() for rollout in rollouts))
    return _Interrupted(alone, rollouts, channels)


async def _loses(trial: Trial, trajectory: Trajectory, begun: int, alone: Sequence[Outcome]) -> bool:
    """Whether the rest is answered otherwise where the seed, or so many first calls, have never been."""
    if begun:
        forgotten = await run_times(trial.gym, trajectory.without(range(begun)), RUNS)
    else:

        async def unseeded() -> Outcome:
            return await TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), trajectory).walk_on()

        forgotten = await beside([unseeded] * RUNS)
    rest = [_tail(one, begun) for one in alone]
    return next(lasting(rest, [_tail(one, 0) for one in forgotten]), None) is not None


def _tail(outcome: Outcome, calls: int) -> Outcome:
    """What came after the seed and so many calls."""
    return Outcome(outcome.steps[1 + calls :])


def _judge(each: _Interrupted, difference: Difference, after: Sequence[Outcome]) -> None:
    """Say what is wrong with what a lost session is answered, if anything is.

    Raises:
        Violation: it is scored, or a tool goes on as if nothing had been done before, or crashes.
    """
    step = after[0].steps[int(difference.place[0])]
    verified = _verified(each.channels[0])
    if step.name == VERIFY:
        wrong = is_crash(step.status) or (is_success(verified.status) and not is_masked(verified.said))
    else:
        ended = is_refusal(verified.status) or is_masked(verified.said)
        wrong = is_crash(step.status) or (is_success(step.status) and not ended and _in_its_form(difference))
    if wrong:
        expected = (
            f"{step.name} answers {difference.expected!r}, as without a restart, or refuses the session with a 4xx"
        )
        actual = f"status {step.status}" if is_crash(step.status) else f"{difference.actual!r}"
        raise Violation(expected, f"{actual}, in a session that was open when the process ended", _HINT)


def _verified(channel: Channel) -> Reply:
    """The reply to the last verify."""
    return next(reply_of(one) for one in reversed(channel.exchanges) if one.request.path == VERIFY)


def _in_its_form(difference: Difference) -> bool:
    """Whether two replies of a tool differ in a value and not in their form: a refusal has another, or is a text."""
    return type(difference.expected) is type(difference.actual) and not isinstance(difference.actual, str)
