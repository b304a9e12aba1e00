"""How episodes of gymnasium-style servers begin, after others and beside others: none may know of another.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, compared, differences, varying
from gym_conformance.trials.before_and_after import RUNS, lasting
from gym_conformance.trials.chance import beyond_chance, rules_out_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.episodes import Play, episode_session, played, plays
from gym_conformance.trials.needs import GYMNASIUM, RESETS, each_row
from gym_conformance.trials.trial import Trial, describe, expect_cookie, expect_object, expect_success

#: Episodes alone that must agree before another one is held to what they agree in.
_ALONE: Final = 6

#: Seconds of waiting, at most, for what changes by itself.
_LONGEST_PAUSE: Final = 5.0


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
    "step-earlier",
    "An episode MUST know nothing about earlier ones",
    why="rollouts build on what others left behind; the same actions earn a different reward each time, and nothing reports it.",
    needs=[GYMNASIUM, RESETS],
)
async def step_earlier(trial: Trial, _: object) -> None:
    """Begins an episode 17 times, plays others, and begins it 17 times more; it must begin as before.

    It is reset alone, and with a message that does nothing. Values that differ anyway are not compared.

    Source: `_cleanup_session` in resources_servers/gymnasium/base.py releases what the session held (0.7.0), and each
    session has a state of its own (every version).
    """
    every = await plays(trial)
    probes = [Play(every[0].row, actions) for actions in ((), (DO_NOTHING.response,))]
    before, began = [await _times(trial, probe) for probe in probes], time.monotonic()
    for play in every:
        await played(trial, trial.channel, play)
    for probe, outcomes in zip(probes, before, strict=True):
        after = await _times(trial, probe)
        if not (found := next(_lasting(outcomes, after), None)):
            continue
        await asyncio.sleep(min(time.monotonic() - began, _LONGEST_PAUSE))
        by_itself = next(_lasting(after, await _times(trial, probe)), None)
        if by_itself is None and rules_out_chance(trial, RUNS):
            raise Violation(
                f"{found.answer}, as before other episodes were played",
                f"{found.actual!r} in an episode after them",
                "State is kept for all sessions, and no reset makes it anew.",
                Cause.OUTLIVING_STATE,
            )


async def _times(trial: Trial, play: Play) -> Sequence[Outcome]:
    """What the episode comes to, many times; the first is on the trial's record."""
    channels = [trial.channel, *(Channel(trial.gym.endpoint) for _ in range(RUNS - 1))]
    return await beside([partial(played, trial, channel, play) for channel in channels])


def _lasting(before: Sequence[Outcome], after: Sequence[Outcome]) -> Iterator[Difference]:
    if len({len(each.steps) for each in (*before, *after)}) > 1:
        return iter(())  # it ends now and then
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
    gym = trial.gym
    play, *more = await plays(trial)
    row = next((row for row in gym.rows if row is not play.row), play.row)
    alone, mask = await _alone(trial, play)
    for other in (play, *more[:1], Play(row, play.actions[::-1]), Play(row, ())):
        await _expect_apart(trial, play, other, alone, mask)


async def _expect_apart(trial: Trial, play: Play, other: Play, alone: Outcome, mask: frozenset[Place]) -> None:
    """Hold an episode that is played in turn with another one to what it comes to alone, but for what is masked."""

    async def in_turn(channel: Channel) -> Difference | None:
        mine, theirs = episode_session(trial, play.row, channel), episode_session(trial, other.row, channel)
        steps = [StepOutcome.of_reply(RESET, reply_of(await mine.seed()))]
        await theirs.seed()
        for action, its in zip_longest(play.actions[: len(alone.steps) - 1], other.actions):
            if its is not None:
                await theirs.step(its)
            if action is not None:
                steps.append(StepOutcome.of_reply(STEP, reply_of(await mine.step(action))))
        for session in (mine, theirs):
            await session.close()
        return _difference(alone, Outcome(tuple(steps)), mask)

    async def by_itself(channel: Channel) -> Difference | None:
        return _difference(alone, await played(trial, channel, play), mask)

    if found := await beyond_chance(trial, in_turn, by_itself):
        raise Violation(
            f"{found.answer}, as alone",
            f"{found.actual!r}, while another episode is played",
            "State is stored under something other than the session id.",
            Cause.SHARED_STATE,
        )


def _difference(one: Outcome, two: Outcome, mask: frozenset[Place]) -> Difference | None:
    short = min(len(one.steps), len(two.steps))
    found = differences(Outcome(one.steps[:short]), Outcome(two.steps[:short]), mask)
    return next((each for each in found if not each.of_time), None)


async def _alone(trial: Trial, play: Play) -> tuple[Outcome, frozenset[Place]]:
    """What an episode comes to alone, and what is not the same each time.

    Raises:
        NotApplicable: nothing is the same each time.
    """
    outcomes = [await played(trial, Channel(trial.gym.endpoint), play) for _ in range(_ALONE)]
    if len({len(outcome.steps) for outcome in outcomes}) > 1 or not compared(outcomes[0], mask := varying(outcomes)):
        raise NotApplicable("not reproducible alone: no two episodes of the row agree")
    return outcomes[0], mask
