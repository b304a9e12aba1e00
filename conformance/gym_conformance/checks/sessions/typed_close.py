"""The end of typed sessions: what a close must do, and what may come after it.

Source throughout: as in `typed`.
"""

import asyncio
from functools import partial

from gym_conformance.checks.sessions.typed import (
    ANOTHER,
    BOUND,
    TRIES,
    TYPED_SESSION,
    expect_id,
    left_behind,
    opened,
    played,
    refuses_others,
    typed_session,
    under_typed,
)
from gym_conformance.contract.statuses import is_error, is_success
from gym_conformance.contract.verify_reply import is_masked
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.typed_sessions import TypedSession
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Outcome
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.replay import known_trajectory
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial, describe

_CLOSED = "Remember the ids that were closed and refuse them."

#: Known trajectories among which one is looked for that earns something.
_EARNING = 8


@check(
    "typed-close",
    "A close MUST succeed, even when repeated or for a session that was never seeded",
    why="an environment server closes whatever may be open; each refusal is an error at the end of a good rollout.",
    needs=TYPED_SESSION,
)
async def typed_close(trial: Trial, _: object) -> None:
    """Closes a session twice, and one that was never seeded, and expects status 200 and the id each time.

    Source: "succeed when the session is already closed or was never seeded" (0.7.0).
    """
    session = await opened(trial)
    for _again in range(2):
        expect_id(reply_of(await session.close()), session, "close_session raises when there is nothing to release.")
    never = typed_session(trial)
    expect_id(reply_of(await never.close()), never, "close_session looks up a session that does not exist.")


@check(
    "typed-close-final",
    "A seed after the close MUST NOT recreate the session",
    why="a seed that arrives after its rollout was given up opens a session that nobody closes, and sandboxes pile up.",
    needs=TYPED_SESSION,
)
async def typed_close_final(trial: Trial, _: object) -> None:
    """Seeds a session that was closed, and one that was closed before it was ever seeded.

    Servers that bind an id to its episode, or that find what a session has done by the id alone, must refuse the seed.
    For others it is enough that what the session held is gone.

    Source: "keep a seed that arrives after the close from creating the session again"; `keeps_state` in
    nemo_gym/testing/session_conformance.py (0.7.0).
    """
    typed = under_typed(trial)
    keeps = await refuses_others(trial)
    never = typed_session(trial)
    for session in (await played(trial, trial.channel), never):
        if not is_success(reply_of(await session.close()).status):
            continue  # for typed-close to find
        late = session.again()  # a retry whose first reply was lost has no cookie
        reply = reply_of(await late.seed())
        if is_error(reply.status):
            continue
        if keeps or await _finds_by_id(typed):
            raise Violation("a refusal, such as status 409", describe(reply), _CLOSED)
        closed = partial(_late, typed, closes=True)
        if session is not never and (difference := await left_behind(typed, late, closed)):
            raise Violation(
                f"{difference.answer}, as in a fresh session, or a refused seed",
                f"{difference.actual!r}",
                "close_session releases nothing.",
            )
    trial.note = "" if keeps else "accepted again: nothing is kept by the id"


async def _finds_by_id(typed: Trial) -> bool:
    """Whether a client without a cookie, which seeds an open session's id again, finds what was done there."""
    aside = Trial(typed.bench)
    again = partial(_late, aside, closes=False)
    return await left_behind(aside, await again(aside.channel), again) is not None


async def _late(typed: Trial, channel: Channel, *, closes: bool) -> Session:
    """A session that is seeded again after known calls, and after a close where it `closes`."""
    session = await played(typed, channel)
    if closes:
        await session.close()
    late = session.again()
    await late.seed()
    return late


def _rollout_in(trial: Trial, session: TypedSession, trajectory: Trajectory) -> TrajectoryRun:
    """The trajectory in this typed session, which the caller may close between its steps."""
    return TrajectoryRun(under_typed(trial).gym, session.channel, trajectory, session=session)


@check(
    "typed-close-foreign",
    "A close that names another episode SHOULD NOT end the session",
    why="a late close of an attempt that was given up ends the attempt that took its place.",
    needs=[*TYPED_SESSION, SCORE],
)
async def typed_close_foreign(trial: Trial, _: object) -> None:
    """Closes the session in another episode's name after each of its steps; calls and verify must come to the same.

    Whether the close is refused is not checked.

    Our inference, from a list in the documentation of NeMo Gym's main, not released
    (`nemo_gym.server_runtime.testing.session_conformance`): "a close that names another episode".
    """
    trajectory = await known_trajectory(trial)

    async def tried(channel: Channel) -> Outcome:
        session = typed_session(trial, trajectory.row, channel)
        rollout = _rollout_in(trial, session, trajectory)
        for _step in range(trajectory.steps - 1):
            await rollout.step()
            await session.again(rollout_id=ANOTHER).close()
        return await rollout.finish()

    if difference := await Solo(under_typed(trial), trajectory).beyond_chance(tried):
        raise Violation(f"{difference.answer}, as without that close", f"{difference.actual!r}", BOUND)


@check(
    "typed-close-lost",
    "A close without the session's cookie SHOULD end the session",
    why="a client whose seed reply was lost has no cookie; a session that it cannot close stays, and sandboxes pile up.",
    needs=TYPED_SESSION,
)
async def typed_close_lost(trial: Trial, _: object) -> None:
    """Seeds, closes without the cookie, and seeds again; this must be refused as it is after a close with the cookie.

    Our inference, from a list in the documentation of NeMo Gym's main, not released
    (`nemo_gym.server_runtime.testing.session_conformance`): "a close without the session cookie after a seed whose
    reply was lost".
    """
    closed = await opened(trial)
    await closed.close()
    if not is_error(reply_of(await closed.again().seed()).status):
        raise NotApplicable("a seed after a close is accepted, so nothing shows whether a session has ended")
    lost = await opened(trial)
    hint = "close_session looks up the session of the cookie; it is the one that the body names."
    expect_id(reply_of(await lost.again().close()), lost, hint)
    late = reply_of(await lost.again().seed())
    if not is_error(late.status):
        raise Violation("a refused seed, as after a close with the cookie", describe(late), hint)


async def _earning(trial: Trial) -> Trajectory:
    """A known trajectory that earns something, since nothing tells what it scores from an empty session's; any, if none does."""
    typed = under_typed(trial)
    for one in known(await knowledge_of(trial))[:_EARNING]:
        if (await Solo(typed, one).outcome()).reward:
            return one
    return await known_trajectory(trial)


@check(
    "typed-verify-closed",
    "A verify after the close SHOULD NOT score a state that no longer exists",
    why="a late verify scores an empty session; a zero that no policy earned moves the baseline of its group.",
    needs=[*TYPED_SESSION, SCORE],
)
async def typed_verify_closed(trial: Trial, _: object) -> None:
    """Closes the session before the verify, which must be refused, mask its sample, or score as before the close.

    Our inference, from a list in the documentation of NeMo Gym's main, not released
    (`nemo_gym.server_runtime.testing.session_conformance`): "a verify after close"; `mask_sample` in
    nemo_gym/base_resources_server.py (0.7.0) is for a lost session.
    """
    trajectory = await _earning(trial)

    async def tried(channel: Channel) -> Outcome:
        session = typed_session(trial, trajectory.row, channel)
        rollout = _rollout_in(trial, session, trajectory)
        await rollout.step(trajectory.steps - 1)
        await session.close()
        return await rollout.finish()

    found = await tried(trial.channel)
    verified = reply_of(trial.channel.exchanges[-1])
    if is_error(verified.status) or is_masked(verified.said):
        return
    if difference := await Solo(under_typed(trial), trajectory).beyond_chance(tried, found):
        raise Violation(
            f"{difference.answer}, as without that close, or a refusal, or a masked sample",
            f"{difference.actual!r}",
            "Refuse the closed session, or set mask_sample in the verify reply; setdefault or get(id, {}) scores an empty one.",
        )


@check(
    "typed-close-busy",
    "A close MUST succeed while a tool call runs",
    why="rollouts are given up in the middle of a call; a close that hangs or fails leaks the session.",
    needs=TYPED_SESSION,
)
async def typed_close_busy(trial: Trial, _: object) -> None:
    """Makes the first known call and closes at the same time; both must be answered, the close with 200.

    Source: `close_resources` is registered before the seed, and runs however the episode ends
    (environment_servers/single_agent_turn/app.py, 0.7.0).
    """
    trajectory = await known_trajectory(trial)
    if not trajectory.calls:
        raise NotApplicable("no call is known that its tool accepts")
    hint = "close_session waits for the call in progress, or fails because of it."
    for _try in range(TRIES):
        trial.channel.exchanges.clear()
        session = typed_session(trial, trajectory.row)
        await session.seed()
        _, closed = await asyncio.gather(session.call(trajectory.calls[0]), session.close())
        if closed is not None:
            expect_id(reply_of(closed), session, hint)
