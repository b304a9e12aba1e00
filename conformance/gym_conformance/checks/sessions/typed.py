"""Typed sessions: named by the caller, seeded for one episode, and closed.

Source throughout: the docstrings of `ResourcesSeedSessionRequest` and `close_resources_session` in
nemo_gym/base_resources_server.py, nemo_gym/testing/session_conformance.py, which tests them in process, and
environment_servers/single_agent_turn/app.py, the client (all 0.7.0).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from gym_conformance.checks.isolation.beside_others import expect_isolated
from gym_conformance.checks.isolation.between_reads import anew
from gym_conformance.checks.isolation.earlier import expect_unchanged
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.identity import SESSION_ID
from gym_conformance.contract.statuses import is_error, is_success
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session, post
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.typed_sessions import TypedContract, TypedSession
from gym_conformance.trajectories.execute import TrajectoryRun, run, seeded_within
from gym_conformance.trajectories.first import side_by_side
from gym_conformance.trajectories.generate import Knowledge, interleaved, trajectories, writes_in
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Difference, Outcome
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.before_and_after import changed, reads_on
from gym_conformance.trials.check import Need, check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE, TYPED, each_row
from gym_conformance.trials.property import alone, property_check
from gym_conformance.trials.replay import known_trajectory
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import (
    Trial,
    describe,
    expect_cookie,
    expect_no_crash,
    expect_object,
    expect_success,
    refuse_made_up,
)

#: The episode that comes for another's session.
ANOTHER: Final = "another"

#: Trajectories that are a second attempt.
_ATTEMPTED = 2

#: A race that is lost once is lost again in so many tries, or not at all.
TRIES = 8

_ODD_IDS: Final[dict[str, str]] = {
    "white space around": " \t",
    "slashes and dots": "../../",
    "quotes": "'\";--",
    "letters beyond ASCII": "\u00e9\u4e2d\u202e",
    "a null character": "\0",
    "percent signs": "%2F%00",
    "3,000 characters": "x" * 3000,
}

BOUND = "State is looked up by the id alone; keep the episode beside the id, and refuse another episode."


def typed_session(trial: Trial, row: Row | None = None, channel: Channel | None = None) -> TypedSession:
    """A typed session that is not seeded yet; over the trial's own channel, unless another is given."""
    return (trial.gym.typed or TypedContract()).session(channel or trial.channel, row or trial.gym.row)


async def _opens(trial: Trial) -> None:
    """A server that opens no typed session has one finding, of typed-seed, and not one for every check."""
    session = typed_session(trial)
    reply = reply_of(await session.seed())
    refuse_made_up(session.row, reply)
    if not is_success(reply.status) or reply.fields.get(SESSION_ID) != session.id or not session.cookies:
        raise Untestable(f"a typed session: /seed_session answered {describe(reply)}; see typed-seed")


#: What every check of a typed session but the first cannot do without.
TYPED_SESSION = [RESOURCES_SERVER, TYPED, Need("a typed session", _opens)]


async def opened(trial: Trial) -> TypedSession:
    """A typed session that is seeded.

    Raises:
        Violation: this seed is refused, though others were not.
    """
    session = typed_session(trial)
    expect_success(reply_of(await session.seed()), "The typed seed is not accepted each time.")
    return session


def under_typed(trial: Trial) -> Trial:
    """The same trial, its sessions typed, on the same channel."""
    other = Trial(replace(trial.bench, gym=replace(trial.gym, contract=trial.gym.typed or TypedContract())))
    other.channel, other.volatile = trial.channel, trial.volatile
    return other


def expect_id(reply: Reply, session: TypedSession, hint: str) -> None:
    """Hold a reply to status 200 and the session's own id."""
    expect_success(reply, hint)
    answered = expect_object(reply, hint).get(SESSION_ID)
    if answered != session.id:
        raise Violation(f"{SESSION_ID} {session.id!r}, as it was sent", f"{answered!r}", hint)


async def played(trial: Trial, channel: Channel) -> TypedSession:
    """A typed session in which known calls were made, up to half of the writes: the others may undo them."""
    trajectory = await known_trajectory(trial)
    session = typed_session(trial, trajectory.row, channel)
    writes = writes_in(trajectory.calls)
    calls = writes[(len(writes) - 1) // 2] + 1 if writes else len(trajectory.calls)
    await TrajectoryRun(trial.gym, channel, trajectory, session=session).step(1 + calls)
    return session


async def _other_episode(session: TypedSession) -> tuple[TypedSession, Reply]:
    """A client of another episode that seeds the same id, and what it is told."""
    intruder = session.again(rollout_id=ANOTHER)
    return intruder, reply_of(await intruder.seed())


async def refuses_others(trial: Trial) -> bool:
    """Whether an id is bound to its episode: such a server keeps something by it."""
    aside = Trial(trial.bench)
    _, reply = await _other_episode(await opened(aside))
    return is_error(reply.status)


async def left_behind(
    trial: Trial, session: Session, again: Callable[[Channel], Awaitable[Session]]
) -> Difference | None:
    """Where known calls, made in a session that is seeded, come to something else than in a fresh one.

    `again` opens another session like it, to exclude chance.
    """
    trajectory = await known_trajectory(trial)

    async def tried(channel: Channel, session: Session | None = None) -> Outcome:
        return await TrajectoryRun(trial.gym, channel, trajectory, session=session or await again(channel)).walk_on()

    try:
        found = await tried(trial.channel, session)
        return await Solo(trial, trajectory).beyond_chance(tried, found, together=False)
    except NotApplicable:
        return None


@check(
    "typed-seed",
    "A typed seed MUST return its session's id and a cookie",
    why="an environment server gives up on the episode, and none of its rollouts comes back.",
    needs=[RESOURCES_SERVER, TYPED],
    subjects=each_row,
)
async def typed_seed(trial: Trial, row: Row) -> None:
    """Seeds each row as an environment server does and expects status 200, the id that was sent, and a session cookie.

    Source: `run` in environment_servers/single_agent_turn/app.py (0.7.0) raises if one of them is missing.
    """
    session = typed_session(trial, row)
    reply = reply_of(await session.seed())
    refuse_made_up(row, reply)
    expect_id(
        reply,
        session,
        "seed_session does not answer a ResourcesSeedSessionRequest with a ResourcesSeedSessionResponse.",
    )
    expect_cookie(reply, session.cookies)


@check(
    "typed-seed-repeat",
    "A repeated typed seed MUST return the existing session unchanged",
    why="clients resend a seed when its reply is lost; what the policy has done by then must not be undone.",
    needs=TYPED_SESSION,
)
async def typed_seed_repeat(trial: Trial, _: object) -> None:
    """Seeds twice before recorded calls, the second time without a cookie, and once more after each of them.

    If none is recorded, calls are made that the tools are known to accept. Each seed must answer 200 with the same id;
    replies and reward must be as with one seed.

    Source: "Repeating the same identifier and episode must return the existing session" (0.7.0).
    """
    typed = under_typed(trial)
    trajectory = await known_trajectory(trial)
    hint = "seed_session creates the state again, or refuses a session that it knows; return the existing one."

    async def seeded_again(channel: Channel) -> Outcome:
        lost = typed_session(trial, trajectory.row, channel)
        await lost.seed()
        again = lost.again()
        rollout = TrajectoryRun(typed.gym, channel, trajectory, session=again)
        await rollout.step()
        for _step in range(trajectory.steps - 1):
            expect_id(reply_of(await again.seed()), again, hint)
            await rollout.step()
        return rollout.outcome

    if difference := await Solo(typed, trajectory).beyond_chance(seeded_again):
        expected = f"{difference.answer}, as after one seed"
        raise Violation(expected, f"{difference.actual!r}", hint)


@check(
    "typed-seed-foreign",
    "A session's id SHOULD NOT let another episode into the session",
    why="two rollouts would share one state, and both rewards would be noise.",
    needs=TYPED_SESSION,
)
async def typed_seed_foreign(trial: Trial, _: object) -> None:
    """Makes known calls, then seeds the same id for another episode.

    The seed must be refused, or the other episode's calls must get what they get in a fresh session, because nothing is
    kept under the id.

    Our inference: the servers of 0.7.0 that keep something under the id refuse it
    (resources_servers/example_single_tool_call/app.py), but neither `SimpleResourcesServer` nor
    `check_resources_session_contract` requires it. By default a server keeps nothing under the id.
    """
    typed = under_typed(trial)

    async def intrude(channel: Channel) -> tuple[TypedSession, Reply]:
        return await _other_episode(await played(trial, channel))

    async def intruder_over(channel: Channel) -> Session:
        return (await intrude(channel))[0]

    intruder, reply = await intrude(trial.channel)
    if is_error(reply.status):
        trial.note = f"refused with status {reply.status}"
        return
    if difference := await left_behind(typed, intruder, intruder_over):
        raise Violation(
            "status 409, or a session of its own",
            f"status {reply.status}, and {difference.step} answers {difference.actual!r}, "
            f"not {difference.expected!r} as in a fresh session",
            BOUND,
        )
    trial.note = "accepted: nothing is kept by the id, as far as its tools show"


@check(
    "typed-refusal-status",
    "A refused typed seed SHOULD have a 4xx status",
    why="clients take a 5xx for a passing fault and keep resending the seed.",
    needs=TYPED_SESSION,
)
async def typed_refusal_status(trial: Trial, _: object) -> None:
    """Seeds an id that belongs to another episode, if that is refused at all.

    Source: `_is_retryable_dependency_error` in environment_servers/single_agent_turn/app.py (0.7.0).
    """
    _, reply = await _other_episode(await opened(trial))
    if not is_error(reply.status):
        raise NotApplicable("it does not refuse another episode; nothing is kept by the id")
    expect_no_crash(reply, "raise HTTPException(409) instead of ValueError.", "another episode's seed")


@check(
    "typed-seed-race",
    "Concurrent seeds of one id MUST NOT open it twice",
    why="a retry may overtake the original; the rollout would then have two sessions, or two rollouts would share one.",
    needs=TYPED_SESSION,
)
async def typed_seed_race(trial: Trial, _: object) -> None:
    """Sends two concurrent seeds of one id: both must succeed for one episode, and only one for two, if ids are bound.

    Source: "Idempotently initialize resources state under a caller-assigned identifier" (0.7.0).
    """
    binds = await refuses_others(trial)
    hint = "The handler awaits between looking for the session and creating it; hold a lock, or create it first."
    for _try in range(TRIES):
        trial.channel.exchanges.clear()
        one = typed_session(trial)
        for exchange in await asyncio.gather(one.seed(), one.again().seed()):
            expect_id(reply_of(exchange), one, hint)
        mine = typed_session(trial)
        both = await asyncio.gather(mine.seed(), mine.again(rollout_id=ANOTHER).seed())
        taken = sum(is_success(reply_of(exchange).status) for exchange in both)
        if binds and taken != 1:
            raise Violation("one of two episodes' seeds accepted", f"{taken} of them accepted", hint)


@check(
    "typed-seed-strict",
    "A typed seed with an unknown key SHOULD NOT open a typed session",
    why="a field that the server does not know would be dropped silently.",
    needs=TYPED_SESSION,
)
async def typed_seed_strict(trial: Trial, _: object) -> None:
    """Sends a typed seed with one extra key; it must be refused, or treated as an untyped seed, which has no id.

    Source: `extra="forbid"` of `ResourcesSeedSessionRequest` (0.7.0). In a union with the untyped request, nemo-gym's
    own servers treat such a body as that.
    """
    session = typed_session(trial)
    body = session.identity.seed(session.row.data) | {"conformance_unknown": 1}
    reply = await trial.send(post(SEED_SESSION, body))
    hint = 'Let the request model forbid unknown fields: model_config = ConfigDict(extra="forbid").'
    expect_no_crash(reply, hint)
    if is_success(reply.status) and reply.fields.get(SESSION_ID) == session.id:
        raise Violation("status 422, or a reply without an id", describe(reply), hint)


@check(
    "typed-odd-ids",
    "Any text SHOULD be accepted as a session's id",
    why="the caller chooses the ids; a session whose id is altered, or crashes the server, can never be closed.",
    needs=TYPED_SESSION,
    subjects=lambda _: _ODD_IDS,
)
async def typed_odd_ids(trial: Trial, odd: str) -> None:
    """Seeds and closes a session with an odd id, which must come back unchanged or be refused with a 4xx.

    Source: `resources_session_id: str = Field(min_length=1)` in nemo_gym/base_resources_server.py (0.7.0).
    """
    session = typed_session(trial).again(session_id=_ODD_IDS[odd] + typed_session(trial).identity.session_id)
    for reply in (reply_of(await session.seed()), reply_of(await session.close())):
        expect_no_crash(reply, "The id is used as a path, a key or a header without validation.", f"an id with {odd}")
        if not is_error(reply.status):
            expect_id(reply, session, "The id is changed along the way: trimmed, cut, or decoded.")


async def _expect_apart(trial: Trial, knowledge: Knowledge) -> None:
    """What needs no search: what sessions leave to later ones, and the attempts of one rollout."""
    gym, found = under_typed(trial).gym, known(knowledge)[:_ATTEMPTED]
    look = await changed(
        gym, tuple(reads_on(gym, one.row) for one in found), [each for one in found for each in anew(one)]
    )
    expect_unchanged(trial, look.change)
    await _expect_attempts_apart(trial, found)


async def _expect_attempts_apart(trial: Trial, found: Sequence[Trajectory]) -> None:
    """What two attempts of one rollout come to, the second seeded halfway through the first, held to one alone.

    Where they come to the same as attempts of two rollouts, the search finds a shorter example.
    """
    typed = under_typed(trial)

    async def attempts(channel: Channel, trajectory: Trajectory, *, same: bool = True) -> tuple[Outcome, Outcome]:
        sessions = [typed_session(trial, trajectory.row, channel) for _ in range(2)]
        if same:
            sessions[1].identity = replace(sessions[1].identity, rollout_id=sessions[0].identity.rollout_id, attempt=1)
        came = await seeded_within(*(TrajectoryRun(typed.gym, channel, trajectory, session=each) for each in sessions))
        for session in sessions:
            await session.close()
        return came

    for one in found:
        solo = Solo(typed, one)

        async def told(channel: Channel, one: Trajectory = one, solo: Solo = solo) -> Outcome:
            first, second = await attempts(channel, one)
            return first if solo.told_from(first) else second

        difference = await solo.beyond_chance(told, together=False)
        if difference and not any(map(solo.told_from, await attempts(Channel(trial.gym.endpoint), one, same=False))):
            trial.schedule = Schedule((one, one))
            raise Violation(
                f"{difference.answer} in each of two attempts, as alone",
                f"{difference.actual!r}, where the other attempt's session is open",
                "Sessions are stored under the rollout's id, which is the same for each attempt: store them under resources_session_id.",
                Cause.SHARED_STATE,
            )


@property_check(
    "typed-isolation",
    "Typed sessions MUST NOT see each other",
    why="rollouts of one batch overwrite each other's state; the rewards are noise, and nothing reports it.",
    needs=[*TYPED_SESSION, SCORE],
    examples=interleaved,
    first=side_by_side,
    before=_expect_apart,
    together=False,
)
async def typed_isolation(trial: Trial, schedule: Schedule) -> None:
    """Runs two or three trajectories alone, and then with their steps interleaved, each in its own typed session.

    Every reply and reward must be as it is alone. Values that differ between two runs alone are not compared. Two
    attempts of one rollout, each a session with an id of its own, must not see each other either. Reads must be answered
    the same 17 times before and 17 times after sessions of the same tasks that write.

    Source: `resources_session_id` names one session (nemo_gym/base_resources_server.py, 0.7.0); `EpisodeId` is one
    physical attempt of a rollout (nemo_gym/episode_types.py, 0.7.0).
    """
    await expect_isolated(under_typed(trial), schedule)


@property_check(
    "typed-like-cookie",
    "A trajectory SHOULD have the same result in a typed session as in an untyped one",
    why="what was measured through an agent's /run would not hold for an environment server.",
    needs=[*TYPED_SESSION, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
)
async def typed_like_cookie(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory under both contracts, if the server supports both, and compares replies and reward.

    Our inference: the row is the same, and so are the tools.
    """
    if trial.gym.contract.name == TypedContract.name:
        raise NotApplicable("the server accepts only typed seeds")
    trajectory = schedule.trajectories[0]
    gym = under_typed(trial).gym

    async def typed(channel: Channel) -> Outcome:
        return await run(gym, channel, trajectory)

    if difference := await Solo(trial, trajectory).beyond_chance(typed):
        raise Violation(
            f"{difference.answer}, as in an untyped session",
            f"{difference.actual!r}",
            "The typed seed skips something that the untyped one does with the row; both should build the same state.",
        )
