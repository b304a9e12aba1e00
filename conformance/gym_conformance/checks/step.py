"""Gymnasium-style servers: `/reset` begins an episode, `/step` takes a policy output and returns its reward.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice, zip_longest
from secrets import token_hex
from typing import Any

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import DO_NOTHING, Degenerate, message, response
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.stepping import SteppingSession
from gym_conformance.trajectories.before_and_after import RUNS, lasting
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.outcome import (
    Difference,
    Outcome,
    Place,
    StepOutcome,
    compared,
    differences,
    varying,
    volatile,
)
from gym_conformance.trials.chance import beyond_chance, rules_out_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import GYMNASIUM, RESETS, each_degenerate_output, each_row
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_success

#: Steps of one episode; the agent takes ten (`max_steps`).
_STEPS = 8

#: Episodes alone that must agree before another one is held to what they agree in.
_ALONE = 6

#: Recorded rollouts that are played, and prompts.
_PLAYS = 4

#: Seconds of waiting, at most, for what changes by itself.
_LONGEST_PAUSE = 5.0

#: What prompts show, as far as it is looked at.
_LOOKED_AT = 100

#: What a prompt shows the policy to write: in a tag, in backquotes, in quotation marks or in brackets.
_SHOWN = re.compile(r"<(\w+)>[^<>\n]{1,40}</\1>|`[^`\n]{1,40}`|\"[^\"\n]{1,40}\"|\[[^\]\n]{1,40}\]")


Action = Mapping[str, Any]


@dataclass(frozen=True)
class _Play:
    """What a policy does in an episode of a row."""

    row: Row
    actions: Sequence[Action]


def _session(trial: Trial, row: Row | None = None, channel: Channel | None = None) -> SteppingSession:
    """A session that is not reset yet."""
    return SteppingSession(channel or trial.channel, row or trial.gym.row, CookieHabit.REPLACING)


def _turns(output: Iterable[Any]) -> Iterator[Action]:
    """The policy's turns in a recorded output."""

    def of_policy(item: Any) -> bool:
        return not (
            isinstance(item, dict) and (item.get("role") == "user" or item.get("type") == "function_call_output")
        )

    return (response(list(turn)) for policy, turn in groupby(output, of_policy) if policy)


def _plays(gym: Gym) -> Sequence[_Play]:
    """Episodes to play: recorded ones, longest first, those of what prompts show, and one of the same message again and again."""
    recorded = [(row, rollout) for row, rollouts in gym.recorded.items() for rollout in rollouts]
    recorded = recorded or [(gym.row, rollout) for rollout in gym.rollouts]
    played = [_Play(row, tuple(islice(_turns(rollout.output), _STEPS))) for row, rollout in recorded]
    played = sorted((play for play in played if play.actions), key=lambda play: -len(play.actions))
    prompts = [*((row, rollout.data) for row, rollout in recorded), *((row, row.data) for row in gym.rows)]
    shown = [_Play(row, actions) for row, data in prompts[:_PLAYS] if (actions := _shown(data))]
    return [*played[:_PLAYS], *shown, _Play(gym.row, [DO_NOTHING.response] * _STEPS)]


def _shown(data: Mapping[str, Any]) -> Sequence[Action]:
    found = (match.group() for text in Rollout.input_texts(data) for match in _SHOWN.finditer(text))
    return [response([message(text)]) for text in dict.fromkeys(islice(found, _LOOKED_AT))][:_STEPS]


def _actions(gym: Gym) -> Sequence[Action]:
    return _plays(gym)[0].actions


def _over(reply: Reply) -> bool:
    said = reply.said
    return (
        not is_success(reply.status)
        or not isinstance(said, dict)
        or bool(said.get("terminated") or said.get("truncated"))
    )


async def _episode(session: SteppingSession, actions: Iterable[Action]) -> Outcome:
    """Reset, and step until the episode is over or the actions are."""
    reply = reply_of(await session.seed())
    steps = [StepOutcome.of_reply(RESET, reply)]
    for action in actions if is_success(reply.status) else ():
        reply = reply_of(await session.step(action))
        steps.append(StepOutcome.of_reply(STEP, reply))
        if _over(reply):
            break
    return Outcome(tuple(steps))


async def _played(trial: Trial, channel: Channel, play: _Play) -> Outcome:
    """An episode alone, in a session that is closed where it can be."""
    session = _session(trial, play.row, channel)
    outcome = await _episode(session, play.actions)
    await session.close()
    return outcome


def _difference(one: Outcome, two: Outcome, mask: frozenset[Place]) -> Difference | None:
    short = min(len(one.steps), len(two.steps))
    found = differences(Outcome(one.steps[:short]), Outcome(two.steps[:short]), mask)
    return next((each for each in found if not each.of_time), None)


async def _alone(trial: Trial, play: _Play) -> tuple[Outcome, frozenset[Place]]:
    """What an episode comes to alone, and what is not the same each time.

    Raises:
        NotApplicable: nothing is the same each time.
    """
    outcomes = [await _played(trial, Channel(trial.gym.endpoint), play) for _ in range(_ALONE)]
    if len({len(outcome.steps) for outcome in outcomes}) > 1 or not compared(outcomes[0], mask := varying(outcomes)):
        raise NotApplicable("not reproducible alone: no two episodes of the row agree")
    return outcomes[0], mask


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
    session = _session(trial, row)
    reply = reply_of(await session.seed())
    expect_success(reply, "reset() assumes a field that this row does not have.")
    answered = expect_object(reply, "reset() returns (observation, info).")
    if not isinstance(answered.get("observation"), str | None) or not isinstance(answered.get("info", {}), dict):
        raise Violation("observation: text or null, info: an object", describe(reply), "reset() returns them swapped.")
    if not session.cookies:
        hint = "setup_webserver() does not call setup_session_middleware(app), or a proxy strips the header."
        raise Violation("a Set-Cookie header", f"Set-Cookie {list(reply.set_cookies)}", hint)
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
    plays = _plays(trial.gym)
    probes = [_Play(plays[0].row, actions) for actions in ((), (DO_NOTHING.response,))]
    before, began = [await _times(trial, probe) for probe in probes], time.monotonic()
    for play in plays:
        await _played(trial, trial.channel, play)
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


async def _times(trial: Trial, play: _Play) -> Sequence[Outcome]:
    """What the episode comes to, many times; the first is on the trial's record."""
    channels = [trial.channel, *(Channel(trial.gym.endpoint) for _ in range(RUNS - 1))]
    return await beside([partial(_played, trial, channel, play) for channel in channels])


def _lasting(before: Sequence[Outcome], after: Sequence[Outcome]) -> Iterator[Difference]:
    if len({len(each.steps) for each in (*before, *after)}) > 1:
        return iter(())  # it ends now and then
    return lasting(before, after)


def _expect_step(reply: Reply) -> dict[str, Any]:
    expect_success(reply, "step() assumes something about what the policy wrote.")
    answered = expect_object(reply, "step() returns (observation, reward, terminated, truncated, info).")
    reward = answered.get("reward", 0.0)
    if not is_number(reward):
        hint = "A division by zero, or a score that was never set; NaN becomes null in JSON."
        raise Violation("reward: a finite number", f"reward: {reward!r}", hint)
    if not all(isinstance(answered.get(key, False), bool) for key in ("terminated", "truncated")):
        raise Violation("terminated and truncated: true or false", describe(reply), "step() returns them swapped.")
    if not isinstance(answered.get("observation"), str | None):
        raise Violation("observation: text or null", describe(reply), "Write the observation as the policy reads it.")
    return answered


@check(
    "step-answers",
    "/step MUST answer with finite rewards",
    why="a single NaN reward turns the whole batch's gradient into NaN.",
    needs=[GYMNASIUM, RESETS],
    subjects=each_row,
)
async def step_answers(trial: Trial, row: Row) -> None:
    """Plays an episode on each row, with recorded turns if there are any, and checks the form of each reply.

    Source: `EnvStepResponse` in resources_servers/gymnasium/base.py, with which the agent reads the reply (0.4.0 to 0.7.0).
    """
    session = _session(trial, row)
    await session.seed()
    for action in _actions(trial.gym):
        reply = reply_of(await session.step(action))
        _expect_step(reply)
        if _over(reply):
            break
    await session.close()


async def _step_with(trial: Trial, output: Degenerate) -> Reply:
    session = _session(trial)
    await session.seed()
    reply = reply_of(await session.step(output.response))
    await session.close()
    if not output.stock and is_refusal(reply.status):
        raise NotApplicable("NeMo Gym's own types refuse it")
    return reply


@check(
    "step-degenerate",
    "/step MUST survive degenerate policy outputs",
    why="early in training most outputs are degenerate; each crash loses a rollout and skews what the policy learns from.",
    needs=[GYMNASIUM, RESETS],
    subjects=each_degenerate_output,
)
async def step_degenerate(trial: Trial, output: Degenerate) -> None:
    """Steps with odd outputs, each in a fresh episode: empty, cut off, reasoning only, malformed calls, very long and more.

    No answer may be a 5xx, and a 200 must have the form that the agent reads.

    Source: the output types in nemo_gym/openai_utils.py (0.4.0) admit them, and the agent raises on any error.
    """
    reply = await _step_with(trial, output)
    expect_no_crash(reply, "step() assumes that there is a message, text, or arguments that parse.")
    if is_success(reply.status):
        _expect_step(reply)


@check(
    "step-refuses-none",
    "/step SHOULD answer a bad action within the episode",
    why="a refused step ends the rollout without a reward, so the policy is never penalised for its mistake.",
    needs=[GYMNASIUM, RESETS],
    subjects=each_degenerate_output,
)
async def step_refuses_none(trial: Trial, output: Degenerate) -> None:
    """Steps with the same outputs; none should be refused with a 4xx.

    Source: the agent raises for any status but 200, and the rollout is lost
    (responses_api_agents/gymnasium_agent/app.py, 0.4.0 to 0.7.0).
    """
    reply = await _step_with(trial, output)
    if is_refusal(reply.status):
        hint = "Return an observation that says what is wrong, with a reward of 0 or less, or end the episode."
        raise Violation("status 200", describe(reply), hint)


@check(
    "step-over",
    "A step after the end SHOULD NOT crash or restart the episode",
    why="a client that resends the last step because its reply was lost would lose the rollout, or play a dead episode.",
    needs=[GYMNASIUM, RESETS],
)
async def step_over(trial: Trial, _: object) -> None:
    """Plays to the end and steps once more; the answer must not be a 5xx and may only say that the episode is over.

    Source: nemo_gym/server_utils.py `request` sends again when a reply is lost (every version).
    """
    session = _session(trial)
    await session.seed()
    actions = _actions(trial.gym)
    for action in [*actions, *[actions[-1]] * _STEPS]:
        reply = reply_of(await session.step(action))
        if _over(reply):
            break
    else:
        raise NotApplicable(f"no end within {len(actions) + _STEPS} steps")
    again = reply_of(await session.step(actions[-1]))
    await session.close()
    expect_no_crash(again, "step() looks up a session that the last step closed.", "a step after the last")
    said = again.said
    if is_success(again.status) and isinstance(said, dict) and not (said.get("terminated") or said.get("truncated")):
        hint = "The session is forgotten with its last step, and the next one starts from nothing; remember that it is over."
        raise Violation("terminated, or a refusal", describe(again), hint)


@check(
    "step-reset-fresh",
    "A row SHOULD begin the same episode on every reset",
    why="group-relative advantages compare rollouts of one row, so a random start is mistaken for merit.",
    needs=[GYMNASIUM, RESETS],
    subjects=lambda trial: each_row(trial)[:8],
)
async def step_reset_fresh(trial: Trial, row: Row) -> None:
    """Resets a row in two fresh sessions, and again in one of them after a step; the policy must see the same each time.

    What the policy sees is the observation. Everything else that both fresh resets say alike must also be said after
    the step.

    Our inference: an environment that uses randomness takes its seed from the row.
    """
    first, second = _session(trial, row), _session(trial, row)
    replies = [reply_of(await session.seed()) for session in (first, second)]
    await first.step(_actions(trial.gym)[0])
    replies.append(reply_of(await first.seed()))
    for session in (first, second):
        await session.close()
    begun, beside, again = (Outcome((StepOutcome.of_reply(RESET, reply),)) for reply in replies)
    seen = (one for one in differences(begun, beside) if "observation" in one.place)
    left = differences(begun, again, volatile(begun, beside))
    if difference := next((one for one in chain(seen, left) if not one.of_time), None):
        raise Violation(
            f"{difference.expected!r} again",
            f"{difference.actual!r}",
            "It uses randomness that the row does not seed, or a reset leaves traces of the previous episode.",
        )


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
    play, *more = _plays(gym)
    row = next((row for row in gym.rows if row is not play.row), play.row)
    alone, mask = await _alone(trial, play)
    for other in (play, *more[:1], _Play(row, play.actions[::-1]), _Play(row, ())):
        await _expect_apart(trial, play, other, alone, mask)


async def _expect_apart(trial: Trial, play: _Play, other: _Play, alone: Outcome, mask: frozenset[Place]) -> None:
    """Hold an episode that is played in turn with another one to what it comes to alone, but for what is masked."""

    async def in_turn(channel: Channel) -> Difference | None:
        mine, theirs = _session(trial, play.row, channel), _session(trial, other.row, channel)
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
        return _difference(alone, await _played(trial, channel, play), mask)

    if found := await beyond_chance(trial, in_turn, by_itself):
        raise Violation(
            f"{found.answer}, as alone",
            f"{found.actual!r}, while another episode is played",
            "State is stored under something other than the session id.",
            Cause.SHARED_STATE,
        )


@check(
    "step-close",
    "An episode that can be closed MUST be, at its beginning and twice",
    why="the agent closes whatever it has reset; what a close leaves open holds a place that no rollout gets back.",
    needs=[GYMNASIUM, RESETS],
)
async def step_close(trial: Trial, _: object) -> None:
    """Closes an episode that has just begun, and once more, if the reset says `supports_explicit_close`; each must answer 200.

    Source: `_close_environment` in responses_api_agents/gymnasium_agent/app.py (0.7.0), which sends it again when a reply
    is lost.
    """
    session = _session(trial)
    await session.seed()
    if not session.closes:
        raise NotApplicable("its resets do not say supports_explicit_close")
    for _again in range(2):
        if closed := await session.close():
            expect_success(reply_of(closed), "/close raises where there is no episode, or where none has been played.")


@check(
    "step-idempotent",
    "A step that is sent again MUST be answered as before, if the server says so",
    why="a step whose reply was lost is sent again; played twice, the episode is another than the policy has seen.",
    needs=[GYMNASIUM, RESETS],
)
async def step_idempotent(trial: Trial, _: object) -> None:
    """Sends the first step twice under one `_ng_step_request_id`, if the reset says `supports_step_idempotency`.

    Both must be answered alike.

    Source: `_run_open_episode` in responses_api_agents/gymnasium_agent/app.py (0.7.0).
    """
    session = _session(trial)
    reply = reply_of(await session.seed())
    if (reply.fields.get("info") or {}).get("supports_step_idempotency") is not True:
        raise NotApplicable("its resets do not say supports_step_idempotency")
    action, named = _actions(trial.gym)[0], {"_ng_step_request_id": token_hex()}
    one, two = [reply_of(await session.step(action, **named)) for _ in range(2)]
    await session.close()
    first, again = (Outcome((StepOutcome.of_reply(STEP, each),)) for each in (one, two))
    if found := _difference(first, again, frozenset()):
        hint = "Keep the last answer by the session and _ng_step_request_id, and give it again."
        raise Violation(f"{found.answer} again", f"{found.actual!r}", hint)
