"""The end of typed sessions: closing, and what comes after.

Source throughout: the docstring of `close_resources_session` in nemo_gym/base_resources_server.py, and
nemo_gym/testing/session_conformance.py (0.7.0).
"""

import asyncio
from http import HTTPStatus

from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Violation
from gym_conformance.checks.replay import recorded_trajectory
from gym_conformance.checks.trial import Trial, describe
from gym_conformance.checks.typed import (
    TRIES,
    TYPED_SESSION,
    expect_id,
    left_behind,
    opened,
    refuses_others,
    typed_session,
    under_typed,
)
from gym_conformance.contract.statuses import is_error
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.typed_sessions import TypedSession
from gym_conformance.trajectories.execute import TrajectoryRun

_CLOSED = "Remember the ids that were closed and refuse them."


@check(
    "typed-close",
    Level.MUST,
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
    Level.MUST,
    "A seed after the close MUST NOT recreate the session",
    why="a seed that arrives after its rollout was given up opens a session that nobody closes, and sandboxes pile up.",
    needs=TYPED_SESSION,
)
async def typed_close_final(trial: Trial, _: object) -> None:
    """Seeds a session that was closed, and one that was closed before it was ever seeded.

    Servers that bind an id to its episode must refuse; of others it is only asked that what the session held is gone.

    Source: "keep a seed that arrives after the close from creating the session again"; `keeps_state` in
    nemo_gym/testing/session_conformance.py (0.7.0).
    """
    typed = under_typed(trial)
    keeps = await refuses_others(trial)
    closed = TrajectoryRun(typed.gym, trial.channel, recorded_trajectory(trial))
    await closed.finish()
    never = typed_session(trial)
    for session in (closed.session, never):
        closing = await session.close()
        if closing is None or reply_of(closing).status != HTTPStatus.OK or not isinstance(session, TypedSession):
            continue  # for typed-close to find
        late = session.again()  # a retry whose first reply was lost has no cookie
        reply = reply_of(await late.seed())
        if is_error(reply.status):
            continue
        if keeps:
            raise Violation("a refusal, such as status 409", describe(reply), _CLOSED)
        if session is not never and (difference := await left_behind(typed, late)):
            raise Violation(
                f"{difference.step} answers {difference.expected!r}, as in a fresh session, or a refused seed",
                f"{difference.actual!r}",
                "close_session releases nothing.",
            )
    trial.note = "" if keeps else "accepted again: nothing is kept by the id"


@check(
    "typed-close-busy",
    Level.MUST,
    "A close MUST succeed while a tool call runs",
    why="rollouts are given up in the middle of a call; a close that hangs or fails leaks the session.",
    needs=TYPED_SESSION,
)
async def typed_close_busy(trial: Trial, _: object) -> None:
    """Makes the first recorded call and closes at the same time; both must be answered, the close with 200.

    Source: `close_resources` is registered before the seed, and runs however the episode ends
    (environment_servers/single_agent_turn/app.py, 0.7.0).
    """
    trajectory = recorded_trajectory(trial)
    if not trajectory.calls:
        raise NotApplicable("no tool call is recorded (example_rollouts.jsonl beside the data)")
    hint = "close_session waits for the call in progress, or fails because of it."
    for _try in range(TRIES):
        trial.channel.exchanges.clear()
        session = typed_session(trial, trajectory.row)
        await session.seed()
        _, closed = await asyncio.gather(session.call(trajectory.calls[0]), session.close())
        if closed is not None:
            expect_id(reply_of(closed), session, hint)
