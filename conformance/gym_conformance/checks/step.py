"""Gymnasium-style servers: `/reset` begins an episode, `/step` takes a policy output and returns its reward.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import DO_NOTHING, Degenerate, response
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.stepping import SteppingSession
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, volatile
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import GYMNASIUM, RESETS, each_degenerate_output, each_row
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_success

#: Steps of one episode; the agent takes ten (`max_steps`).
_STEPS = 8

#: Episodes alone that must all be alike before another one is held to them.
_ALONE = 6


Action = Mapping[str, Any]


def _session(trial: Trial, row: Row | None = None, channel: Channel | None = None) -> SteppingSession:
    """A session that is not reset yet."""
    return SteppingSession(channel or trial.channel, row or trial.gym.row, CookieHabit.REPLACING)


def _actions(gym: Gym) -> Sequence[Action]:
    """What the policy does: its turns in the longest recorded rollout, else the same message again and again."""
    turns: list[list[Any]] = []
    for rollout in sorted(gym.rollouts, key=lambda rollout: -len(rollout.output))[:1]:
        turns = [[]]
        for item in rollout.output:
            if isinstance(item, dict) and (item.get("role") == "user" or item.get("type") == "function_call_output"):
                turns.append([])  # the environment's turn
            else:
                turns[-1].append(item)
    found = [response(turn) for turn in turns if turn]
    return (found or [DO_NOTHING.response] * _STEPS)[:_STEPS]


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


def _difference(one: Outcome, two: Outcome) -> Difference | None:
    short = min(len(one.steps), len(two.steps))
    return next(differences(Outcome(one.steps[:short]), Outcome(two.steps[:short])), None)


async def _alone(trial: Trial) -> Outcome:
    """What an episode comes to alone.

    Raises:
        NotApplicable: it is not the same each time.
    """
    outcomes = [
        await _episode(_session(trial, channel=Channel(trial.gym.endpoint)), _actions(trial.gym)) for _ in range(_ALONE)
    ]
    if any(_difference(outcomes[0], outcome) for outcome in outcomes):
        raise NotApplicable("not reproducible alone: no two episodes of the row agree")
    return outcomes[0]


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


async def _step_with(trial: Trial, output: Degenerate) -> Reply:
    session = _session(trial)
    await session.seed()
    reply = reply_of(await session.step(output.response))
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
    """Plays two episodes of a row in turn, step by step, each in its own session; both must go as one goes alone.

    Not applicable if an episode is not the same each time it is played alone.

    Source: `session_state` in resources_servers/gymnasium/base.py is kept by the cookie's session id (0.4.0 to 0.7.0).
    """
    alone = await _alone(trial)

    async def beside(channel: Channel) -> Difference | None:
        sessions = [_session(trial, channel=channel), _session(trial, channel=channel)]
        played = [[StepOutcome.of_reply(RESET, reply)] for reply in [reply_of(await s.seed()) for s in sessions]]
        for action, _step in zip(_actions(trial.gym), alone.steps[1:], strict=False):
            for session, steps in zip(sessions, played, strict=True):
                reply = reply_of(await session.step(action))
                steps.append(StepOutcome.of_reply(STEP, reply))
        return next(filter(None, (_difference(alone, Outcome(tuple(steps))) for steps in played)), None)

    async def by_itself(channel: Channel) -> Difference | None:
        return _difference(alone, await _episode(_session(trial, channel=channel), _actions(trial.gym)))

    if found := await beyond_chance(trial, beside, by_itself):
        raise Violation(
            f"{found.answer}, as alone",
            f"{found.actual!r}, while another episode is played",
            "State is stored under something other than the session id.",
            Cause.SHARED_STATE,
        )
