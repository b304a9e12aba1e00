"""Typed sessions: named by the caller, and seeded for one episode; `typed_close` has their end.

Source throughout: the docstrings of `ResourcesSeedSessionRequest` and `close_resources_session` in
nemo_gym/base_resources_server.py, nemo_gym/testing/session_conformance.py, which tests them in process, and
environment_servers/single_agent_turn/app.py, the client (all 0.7.0).
"""

import asyncio
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from gym_conformance.checks.check import Level, Need, check
from gym_conformance.checks.ending import NotApplicable, Untestable, Violation
from gym_conformance.checks.isolation import expect_isolated
from gym_conformance.checks.needs import RESOURCES_SERVER, SCORE, TYPED, each_row
from gym_conformance.checks.property import alone, property_check
from gym_conformance.checks.replay import recorded_trajectory
from gym_conformance.checks.solo import Solo
from gym_conformance.checks.trial import (
    Trial,
    describe,
    expect_no_crash,
    expect_object,
    expect_status,
    refuse_made_up,
)
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.identity import SESSION_ID
from gym_conformance.contract.statuses import is_error
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.typed_sessions import TypedContract, TypedSession
from gym_conformance.trajectories.execute import Rollout, run
from gym_conformance.trajectories.first import side_by_side
from gym_conformance.trajectories.generate import interleaved, trajectories
from gym_conformance.trajectories.outcome import Difference, Outcome
from gym_conformance.trajectories.trajectory import Schedule

#: The episode that comes for another's session.
_ANOTHER: Final = "another"

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

_BOUND = "Keep the episode beside the session's id, and refuse another's: state is looked up by the id alone."


def typed_session(trial: Trial, row: Row | None = None) -> TypedSession:
    """A typed session that is not seeded yet."""
    return (trial.gym.typed or TypedContract()).session(trial.channel, row or trial.gym.row)


async def _opens(trial: Trial) -> None:
    """A server that opens no typed session has one finding, of typed-seed, and not one for every check."""
    session = typed_session(trial)
    reply = reply_of(await session.seed())
    refuse_made_up(session.row, reply)
    said = reply.said
    if (
        reply.status != HTTPStatus.OK
        or not isinstance(said, dict)
        or said.get(SESSION_ID) != session.id
        or not session.cookies
    ):
        raise Untestable(f"a typed session: /seed_session answered {describe(reply)}; see typed-seed")


#: What every check of a typed session but the first cannot do without.
TYPED_SESSION = [RESOURCES_SERVER, TYPED, Need("a typed session", _opens)]


async def opened(trial: Trial) -> TypedSession:
    """A typed session that is seeded.

    Raises:
        Violation: this seed is refused, though others were not.
    """
    session = typed_session(trial)
    expect_status(reply_of(await session.seed()), [HTTPStatus.OK], "The typed seed is not taken each time.")
    return session


def under_typed(trial: Trial) -> Trial:
    """The same trial, its sessions typed, on the same channel."""
    other = Trial(replace(trial.bench, gym=replace(trial.gym, contract=trial.gym.typed or TypedContract())))
    other.channel, other.volatile = trial.channel, trial.volatile
    return other


def expect_id(reply: Reply, session: TypedSession, hint: str) -> None:
    """Hold a reply to status 200 and the session's own id."""
    expect_status(reply, [HTTPStatus.OK], hint)
    answered = expect_object(reply, hint).get(SESSION_ID)
    if answered != session.id:
        raise Violation(f"{SESSION_ID} {session.id!r}, as it was sent", f"{answered!r}", hint)


async def other_episode(session: TypedSession) -> tuple[TypedSession, Reply]:
    """A client of another episode that seeds the same id, and what it is told."""
    intruder = session.again(rollout_id=_ANOTHER)
    return intruder, reply_of(await intruder.seed())


async def refuses_others(trial: Trial) -> bool:
    """Whether an id is bound to its episode: such a server keeps something by it."""
    aside = Trial(trial.bench)
    _, reply = await other_episode(await opened(aside))
    return is_error(reply.status)


async def left_behind(trial: Trial, session: TypedSession) -> Difference | None:
    """Where the recorded calls, made in a session that is seeded, come to something else than in a fresh one."""
    trajectory = recorded_trajectory(trial)
    rollout = Rollout(trial.gym, trial.channel, trajectory)
    rollout.session = session
    await rollout.walk_on()
    try:
        return await Solo(trial, trajectory).difference(rollout.outcome)
    except NotApplicable:
        return None


@check(
    "typed-seed",
    Level.MUST,
    "A typed seed MUST be answered with its session's id and a cookie",
    why="an environment server gives the episode up: none of its rollouts comes back.",
    needs=[RESOURCES_SERVER, TYPED],
    subjects=each_row,
)
async def typed_seed(trial: Trial, row: Row) -> None:
    """Seeds each row as an environment server does: status 200, the id that was sent, and a session cookie.

    Source: `run` in environment_servers/single_agent_turn/app.py (0.7.0) raises where one of them is missing.
    """
    session = typed_session(trial, row)
    reply = reply_of(await session.seed())
    refuse_made_up(row, reply)
    expect_id(reply, session, "seed_session returns no ResourcesSeedSessionResponse to a ResourcesSeedSessionRequest.")
    if not session.cookies:
        hint = "setup_webserver() does not call setup_session_middleware(app), or a proxy strips the header."
        raise Violation("a Set-Cookie header", f"Set-Cookie {list(reply.set_cookies)}", hint)


@check(
    "typed-seed-repeat",
    Level.MUST,
    "A repeated typed seed MUST find the session as it is",
    why="clients send a seed again when its reply is lost: what the policy did by then is undone.",
    needs=TYPED_SESSION,
)
async def typed_seed_repeat(trial: Trial, _: object) -> None:
    """Seeds twice before the recorded calls, the second time without a cookie, and once in the middle of them.

    Each time status 200 and the same id; replies and reward are as with one seed.

    Source: "Repeating the same identifier and episode must return the existing session" (0.7.0).
    """
    typed = under_typed(trial)
    trajectory = recorded_trajectory(trial)
    hint = "seed_session makes the state anew, or refuses a session that it knows: return the one that is there."

    async def seeded_again(channel: Channel) -> Outcome:
        rollout = Rollout(typed.gym, channel, trajectory)
        lost = rollout.session
        if not isinstance(lost, TypedSession):
            raise TypeError(f"{lost} is no typed session")
        await lost.seed()
        rollout.session = again = lost.again()
        await rollout.step()
        for step in range(trajectory.steps - 1):
            if step == (trajectory.steps - 1) // 2:
                expect_id(reply_of(await again.seed()), again, hint)
            await rollout.step()
        return rollout.outcome

    if difference := await Solo(typed, trajectory).beyond_chance(await seeded_again(trial.channel), seeded_again):
        expected = f"{difference.step} answers {difference.expected!r}, as after one seed"
        raise Violation(expected, f"{difference.actual!r}", hint)


@check(
    "typed-seed-foreign",
    Level.MUST,
    "A session's id MUST NOT let another episode into it",
    why="two rollouts share a state: both rewards are noise.",
    needs=TYPED_SESSION,
)
async def typed_seed_foreign(trial: Trial, _: object) -> None:
    """Makes the recorded calls, and seeds the same id for another episode.

    It is refused; or nothing is kept by the id, so that the other episode's calls come to what they do alone.

    Source: nemo-gym's own example_single_tool_call refuses it (0.7.0). That a server may keep nothing is the default.
    """
    typed = under_typed(trial)
    trajectory = recorded_trajectory(trial)
    rollout = Rollout(typed.gym, trial.channel, trajectory)
    await rollout.finish()
    session = rollout.session
    if not isinstance(session, TypedSession):
        raise TypeError(f"{session} is no typed session")
    intruder, reply = await other_episode(session)
    if is_error(reply.status):
        trial.note = f"refused with status {reply.status}"
        return
    if difference := await left_behind(typed, intruder):
        raise Violation(
            "status 409, or a session of its own",
            f"status {reply.status}, and {difference.step} answers {difference.actual!r}, "
            f"not {difference.expected!r} as in a fresh session",
            _BOUND,
        )
    trial.note = "taken: nothing is kept by the id, as far as its tools tell"


@check(
    "typed-refusal-status",
    Level.SHOULD,
    "A refused typed seed SHOULD have a 4xx status",
    why="clients take a 5xx for a passing fault, and send the seed again and again.",
    needs=TYPED_SESSION,
)
async def typed_refusal_status(trial: Trial, _: object) -> None:
    """Seeds an id that is another episode's, where that is refused at all.

    Source: `_is_retryable_dependency_error` in environment_servers/single_agent_turn/app.py (0.7.0).
    """
    _, reply = await other_episode(await opened(trial))
    if not is_error(reply.status):
        raise NotApplicable("it refuses no other episode: nothing is kept by the id")
    expect_no_crash(reply, "raise HTTPException(409) instead of ValueError.", "another episode's seed")


@check(
    "typed-seed-race",
    Level.MUST,
    "Seeds of one id at once MUST agree on whose it is",
    why="a retry overtakes what it repeats: the rollout then has two sessions, or two rollouts have one.",
    needs=TYPED_SESSION,
)
async def typed_seed_race(trial: Trial, _: object) -> None:
    """Sends two seeds of one id at once: for one episode both are taken; for two, where an id is bound, one of them.

    Source: "Idempotently initialize resources state under a caller-assigned identifier" (0.7.0).
    """
    binds = await refuses_others(trial)
    hint = "The handler awaits between the look for the session and its creation: hold a lock, or create it first."
    for _try in range(TRIES):
        trial.channel.exchanges.clear()
        one = typed_session(trial)
        for exchange in await asyncio.gather(one.seed(), one.again().seed()):
            expect_id(reply_of(exchange), one, hint)
        mine = typed_session(trial)
        both = await asyncio.gather(mine.seed(), mine.again(rollout_id=_ANOTHER).seed())
        taken = [reply_of(exchange).status for exchange in both].count(HTTPStatus.OK)
        if binds and taken != 1:
            raise Violation("one of two episodes' seeds taken", f"{taken} of them", hint)


@check(
    "typed-seed-strict",
    Level.SHOULD,
    "A typed seed with an unknown key SHOULD NOT open a typed session",
    why="a field that the server does not know is lost without a word.",
    needs=TYPED_SESSION,
)
async def typed_seed_strict(trial: Trial, _: object) -> None:
    """Sends a typed seed with one key more: it is refused, or taken for a seed of the older form, without an id.

    Source: `extra="forbid"` of `ResourcesSeedSessionRequest` (0.7.0). Beside the older form in a union, nemo-gym's own
    servers take such a body for that.
    """
    session = typed_session(trial)
    body = session.identity.seed(session.row.data) | {"conformance_unknown": 1}
    reply = await trial.send(post(SEED_SESSION, body))
    hint = 'Let the request model forbid what it does not name: model_config = ConfigDict(extra="forbid").'
    expect_no_crash(reply, hint)
    said = reply.said
    if reply.status == HTTPStatus.OK and isinstance(said, dict) and said.get(SESSION_ID) == session.id:
        raise Violation("status 422, or a reply without an id", describe(reply), hint)


@check(
    "typed-odd-ids",
    Level.SHOULD,
    "Any text SHOULD do as a session's id",
    why="the caller names sessions as it likes: one that is renamed, or crashes, is one that cannot be closed.",
    needs=TYPED_SESSION,
    subjects=lambda _: _ODD_IDS,
)
async def typed_odd_ids(trial: Trial, odd: str) -> None:
    """Seeds and closes a session with an odd id: the id comes back as it is, or is refused with a 4xx.

    Source: `resources_session_id: str = Field(min_length=1)` (0.7.0).
    """
    session = typed_session(trial).again(session_id=_ODD_IDS[odd] + typed_session(trial).identity.session_id)
    for reply in (reply_of(await session.seed()), reply_of(await session.close())):
        expect_no_crash(reply, "The id is used as a path, a key or a header without a look.", f"an id with {odd}")
        if not is_error(reply.status):
            expect_id(reply, session, "The id is changed on its way: trimmed, cut, or decoded.")


@property_check(
    "typed-isolation",
    Level.MUST,
    "Typed sessions MUST NOT see each other",
    why="rollouts of one batch write into each other's state: the rewards are noise, and training goes on silently.",
    needs=[*TYPED_SESSION, SCORE],
    examples=interleaved,
    first=side_by_side,
    together=False,
)
async def typed_isolation(trial: Trial, schedule: Schedule) -> None:
    """Runs two or three trajectories alone, and then with their steps interleaved, each in a typed session of its own.

    Every reply and reward is as it is alone. What differs already between two runs alone is not compared.

    Source: `resources_session_id` names one session (0.7.0).
    """
    await expect_isolated(under_typed(trial), schedule)


@property_check(
    "typed-like-cookie",
    Level.SHOULD,
    "A trajectory SHOULD come to the same in a typed session as in one of the older form",
    why="what was measured with an agent's /run does not hold for an environment server.",
    needs=[*TYPED_SESSION, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
)
async def typed_like_cookie(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory under both contracts, where a server takes both: replies and reward are the same.

    Our inference: the row is the same, and so are the tools.
    """
    if trial.gym.contract.name == TypedContract.name:
        raise NotApplicable("only typed seeds are taken")
    trajectory = schedule.trajectories[0]
    gym = under_typed(trial).gym

    async def typed(channel: Channel) -> Outcome:
        return await run(gym, channel, trajectory)

    if difference := await Solo(trial, trajectory).beyond_chance(await typed(trial.channel), typed):
        raise Violation(
            f"{difference.step} answers {difference.expected!r}, as in a session of the older form",
            f"{difference.actual!r}",
            "The typed seed leaves out what the older one does with the row: both should build the same state.",
        )
