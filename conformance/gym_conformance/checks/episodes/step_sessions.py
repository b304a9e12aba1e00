"""How episodes of gymnasium-style servers begin, after others and beside others: none may know of another.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import cycle, islice, zip_longest
from random import Random
from typing import Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.contract.statuses import is_crash, is_success
from gym_conformance.findings import Cause
from gym_conformance.scouting.acting import Play, with_word
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, compared, varying
from gym_conformance.trajectories.renaming import word as new_word
from gym_conformance.trials.before_and_after import RUNS, lasting
from gym_conformance.trials.chance import beyond_chance, rules_out_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.episodes import (
    differences_of,
    episode_session,
    explored,
    is_large,
    is_over,
    played,
    plays,
    stepped,
    times,
)
from gym_conformance.trials.needs import GYMNASIUM, RESETS, each_row
from gym_conformance.trials.trial import Trial, describe, expect_cookie, expect_object, expect_success
from gym_schemas.json_values import texts_in

#: Episodes alone that must agree before another one is held to what they agree in.
_ALONE: Final = 6

#: The same once one has gone otherwise among others, since six also agree by luck.
_DOUBTED: Final = 24

_NO_TWO_AGREE: Final = "not reproducible alone: no two episodes of the row agree"

#: Episodes that others are played beside.
_KNOWN: Final = 6

#: Episodes at once.
_CROWD: Final = 48

#: Statuses of a server that says that it has too much to do.
_TURNED_AWAY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

#: Steps that are looked at.
_FIRST: Final = 2

#: Seconds of waiting, at most, for what changes by itself.
_LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True)
class _Agreed:
    """What an episode comes to alone.

    Attributes:
        play: the episode.
        alone: how it went the first time.
        mask: what was not the same each time.
    """

    play: Play
    alone: Outcome
    mask: frozenset[Place]

    def difference(self, outcome: Outcome) -> Difference | None:
        """The first one to how it goes alone, but for what is masked; None if there is none."""
        return next(differences_of(self.alone, outcome, self.mask), None)


@check(
    "step-resets",
    "/reset MUST accept every dataset row and set a session cookie",
    why="the row's rollouts are lost, or continue in a session that was never reset.",
    needs=[GYMNASIUM],
    subjects=each_row,
)
async def step_resets(trial: Trial, row: Row) -> None:
    """Resets with each row and expects status 200 and an object whose `observation` is text or null and `info` an object.

    Source: `EnvResetResponse` in resources_servers/gymnasium/base.py, with which the agent reads the reply (0.4.0 to 0.7.0).
    """
    session = episode_session(trial, row)
    reply = reply_of(await session.seed())
    expect_success(reply, "reset() assumes a field that this row does not have.")
    answered = expect_object(reply, "reset() returns (observation, info).")
    if not isinstance(answered.get("observation"), str | None) or not isinstance(answered.get("info", {}), dict):
        raise Violation("observation: text or null, info: an object", describe(reply), "reset() returns them swapped.")
    expect_cookie(reply, session.cookies)
    await session.close()


@check(
    "step-cookie",
    "The session cookie MUST be set again by every step below 500",
    why="the agent of 0.4.0 and 0.5.1 replaces its cookies with those of each reply; without one it loses the episode after a step.",
    needs=[GYMNASIUM, RESETS],
)
async def step_cookie(trial: Trial, _: object) -> None:
    """Steps with a message that does nothing, and with what is known to do something; each reply must set the cookie.

    Source: `env_cookies = step_resp.cookies` in responses_api_agents/gymnasium_agent/app.py (0.4.0 and 0.5.1; from 0.6.0
    on it keeps those that no reply replaces).
    """
    play, *_ = await plays(trial)
    session = episode_session(trial, play.row)
    await session.seed()
    for action in (DO_NOTHING.response, *play.actions[:_FIRST]):
        exchange = await session.step(action)
        reply = reply_of(exchange)
        if not is_crash(reply.status) and not exchange.received:
            likely = "Sessions are refreshed only where they change: set the cookie with every reply."
            raise Violation("a Set-Cookie header on every step", f"none from {exchange}", likely, Cause.LOST_SESSION)
        if is_over(reply):
            break
    await session.close()


@check(
    "step-earlier",
    "An episode MUST know nothing about earlier ones",
    why="rollouts build on what others left behind; the same actions earn a different reward each time, and nothing reports it.",
    needs=[GYMNASIUM, RESETS],
)
async def step_earlier(trial: Trial, _: object) -> None:
    """Begins an episode 17 times on the untouched server, plays others, and begins it 17 times more; it must begin as before.

    It is reset alone, with a message that does nothing, and with calls that read, on two rows. Values that differ anyway
    are not compared.

    Source: `_cleanup_session` in resources_servers/gymnasium/base.py releases what the session held (0.7.0), and each
    session has a state of its own (every version).
    """
    for play in await plays(trial):
        await played(trial, trial.channel, play)
    known = await explored(trial)
    for probe, outcomes in known.untouched:
        after = await times(trial, probe)
        if not (found := next(_lasting(outcomes, after), None)):
            continue
        await asyncio.sleep(min(time.monotonic() - known.began, _LONGEST_PAUSE))
        by_itself = next(_lasting(after, await times(trial, probe)), None)
        if by_itself is None and rules_out_chance(trial, RUNS):
            raise Violation(
                f"{found.answer}, as before other episodes were played",
                f"{found.actual!r} in an episode after them",
                "State is kept for all sessions, and no reset makes it anew.",
                Cause.OUTLIVING_STATE,
            )


def _lasting(before: Sequence[Outcome], after: Sequence[Outcome]) -> Iterator[Difference]:
    if len(before) < RUNS or len({len(each.steps) for each in (*before, *after)}) > 1:
        return iter(())  # its replies are large, or it ends now and then
    return lasting(before, after)


@check(
    "step-isolation",
    "Episodes MUST NOT see each other",
    why="rollouts of one batch play each other's episode; the rewards are noise, and nothing reports it.",
    needs=[GYMNASIUM, RESETS],
)
async def step_isolation(trial: Trial, _: object) -> None:
    """Plays an episode in turn with another one, step by step, each in its own session; it must go as it goes alone.

    The other one is a second one of the same actions, one of other actions, one on another row, and one that only
    begins. Values that differ between episodes alone are not compared.

    Source: `session_state` in resources_servers/gymnasium/base.py is kept by the cookie's session id (0.4.0 to 0.7.0).
    """
    known = await plays(trial)
    apart = 0
    for play, more in zip_longest(known[:_KNOWN], known[1:_KNOWN], fillvalue=known[0]):
        row = next((row for row in trial.gym.rows if row is not play.row), play.row)
        if (agreed := await _alone(trial, play, _ALONE)) is None:
            continue
        apart += 1
        for other in (play, more, Play(row, play.actions[::-1]), Play(row, ())):
            await _expect_apart(trial, agreed, other)
    if not apart:
        raise NotApplicable(_NO_TWO_AGREE)


async def _expect_apart(trial: Trial, agreed: _Agreed, other: Play) -> None:
    """Hold an episode that is played in turn with another one to what it comes to alone, but for what is masked."""
    play = agreed.play

    async def in_turn(channel: Channel) -> Difference | None:
        mine, theirs = episode_session(trial, play.row, channel), episode_session(trial, other.row, channel)
        steps = [StepOutcome.of_reply(RESET, reply_of(await mine.seed()))]
        await theirs.seed()
        for action, its in zip_longest(play.actions[: len(agreed.alone.steps) - 1], other.actions):
            if its is not None:
                await theirs.step(its)
            if action is not None:
                steps.append(StepOutcome.of_reply(STEP, reply_of(await mine.step(action))))
        for session in (mine, theirs):
            await session.close()
        return agreed.difference(Outcome(tuple(steps)))

    async def by_itself(channel: Channel) -> Difference | None:
        return agreed.difference(await played(trial, channel, play))

    if found := await beyond_chance(trial, in_turn, by_itself):
        raise Violation(
            f"{found.answer}, as alone",
            f"{found.actual!r}, while another episode is played",
            "State is stored under something other than the session id.",
            Cause.SHARED_STATE,
        )


@check(
    "step-told",
    "Replies in one episode MUST NOT reveal what only another was told",
    why="rollouts write into each other's state; the rewards are noise, and nothing reports it.",
    needs=[GYMNASIUM, RESETS],
)
async def step_told(trial: Trial, _: object) -> None:
    """Plays episodes with a word that nobody else says in their forms and calls, and then without it, in another session.

    The word must not be in what the second is answered. Nothing is compared, and none appears there by accident.

    Source: `session_state` in resources_servers/gymnasium/base.py is kept by the cookie's session id (0.4.0 to 0.7.0).
    """
    for play in (await plays(trial))[:_KNOWN]:
        for marked in islice(with_word(play, word := new_word(Random())), _KNOWN):
            if not _says(await played(trial, trial.channel, marked), word):
                trial.channel.exchanges.clear()
                continue
            if _says(await played(trial, trial.channel, play), word):
                hint = "What a policy writes is kept for all sessions: a list of the module or the class, or a default argument."
                raise Violation(
                    f"nothing of {word}", f"a reply in another session has {word}", hint, Cause.SHARED_STATE
                )
            trial.channel.exchanges.clear()


def _says(outcome: Outcome, word: str) -> bool:
    return any(word in text for step in outcome.steps for text in texts_in(step.body))


@check(
    "step-concurrent",
    "Episodes that are played at once MUST go as they go alone",
    why="trainers play hundreds of episodes at once; what they mix up is noise in the rewards, and nothing reports it.",
    needs=[GYMNASIUM, RESETS],
)
async def step_concurrent(trial: Trial, _: object) -> None:
    """Begins 48 episodes, and then plays them all at once, each in its own session.

    They are those that are known, recorded or found by trying, several times each. Each must go as it goes alone, but for
    values that differ between episodes alone. Those that are refused for want of room (429, 503) do not count, and if not
    all can begin, a caution says how many could.

    Source: `session_state` in resources_servers/gymnasium/base.py is kept by the cookie's session id, and `max_concurrent`
    of the rollout collection has no limit by default (0.4.0 to 0.7.0).
    """
    known = await plays(trial)
    agreed = await _agreed(trial, known, _ALONE)
    if not (crowd := _crowd(agreed)):
        raise NotApplicable("its replies are too large for so many at once" if agreed else _NO_TWO_AGREE)
    if await _at_once(trial, crowd, trial.channel) is None:
        return
    if not (crowd := _crowd(await _agreed(trial, known, _DOUBTED))):
        raise NotApplicable(_NO_TWO_AGREE)
    if found := await beyond_chance(trial, partial(_at_once, trial, crowd), partial(_one_by_one, trial, crowd)):
        raise Violation(
            f"{found.answer}, as alone",
            f"{found.actual!r}, among {_CROWD} episodes at once",
            "A variable of all sessions holds this one's across an await, or there is room for few sessions only. (The "
            "commands are sent one by one; -k step-concurrent sends them at once.)",
            Cause.SHARED_STATE,
        )


def _crowd(agreed: Sequence[_Agreed]) -> list[_Agreed]:
    return list(islice(cycle([each for each in agreed if not is_large(each.alone)]), _CROWD))


async def _at_once(trial: Trial, crowd: Sequence[_Agreed], channel: Channel) -> Difference | None:
    """How the first episode that goes otherwise differs, if all begin, and then all are played."""
    sessions = [episode_session(trial, each.play.row, channel) for each in crowd]
    resets = await beside([session.seed for session in sessions], _CROWD)
    begun = [each for each in zip(crowd, sessions, resets, strict=True) if is_success(reply_of(each[2]).status)]
    if len(begun) < len(crowd):
        trial.caution = f"{len(begun)} of {len(crowd)} episodes could begin at once; the others were refused"
    outcomes = await beside(
        [partial(stepped, session, reset, each.play.actions) for each, session, reset in begun], _CROWD
    )
    for _, session, _ in begun:
        await session.close()
    served = [
        each.difference(outcome)
        for (each, *_), outcome in zip(begun, outcomes, strict=True)
        if not any(step.status in _TURNED_AWAY for step in outcome.steps)
    ]
    return next(filter(None, served), None)


async def _one_by_one(trial: Trial, crowd: Sequence[_Agreed], channel: Channel) -> Difference | None:
    """The same of as many, played one after the other: where luck decides, some of so many always go otherwise."""
    played_alone = [each.difference(await played(trial, channel, each.play)) for each in crowd]
    return next(filter(None, played_alone), None)


async def _agreed(trial: Trial, known: Sequence[Play], times: int) -> list[_Agreed]:
    """What these episodes come to alone, where the same comes each of so many times."""
    found = [await _alone(trial, play, times) for play in known[:_KNOWN]]
    return [each for each in found if each is not None]


async def _alone(trial: Trial, play: Play, times: int) -> _Agreed | None:
    outcomes = [await played(trial, Channel(trial.gym.endpoint), play) for _ in range(times)]
    if len({len(outcome.steps) for outcome in outcomes}) > 1 or not compared(outcomes[0], mask := varying(outcomes)):
        return None
    return _Agreed(play, outcomes[0], mask)
