"""What gymnasium-style servers make of `/step`, which takes a policy output and returns its reward.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

from functools import partial
from secrets import token_hex
from typing import Any

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import Degenerate
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, volatile
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.episodes import actions_of, episode_session, is_over
from gym_conformance.trials.needs import GYMNASIUM, RESETS, each_degenerate_output, each_row
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_success

#: Times that the last turn is repeated.
_FURTHER = 24


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

    On the first row, the last turn is repeated, up to 24 times, until the episode is over: how it ends is seldom seen before.

    Source: `EnvStepResponse` in resources_servers/gymnasium/base.py, with which the agent reads the reply (0.4.0 to 0.7.0).
    """
    session = episode_session(trial, row)
    await session.seed()
    actions = await actions_of(trial)
    further = [actions[-1]] * _FURTHER if row is trial.gym.row else []
    for number, action in enumerate((*actions, *further)):
        reply = reply_of(await session.step(action))
        if number < len(actions) or is_success(reply.status):
            _expect_step(reply)
        if is_over(reply):
            break
    await session.close()


async def _step_with(trial: Trial, output: Degenerate) -> Reply:
    session = episode_session(trial)
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
    session = episode_session(trial)
    await session.seed()
    actions = await actions_of(trial)
    for action in [*actions, *[actions[-1]] * _FURTHER]:
        reply = reply_of(await session.step(action))
        if is_over(reply):
            break
    else:
        raise NotApplicable(f"no end within {len(actions) + _FURTHER} steps")
    again = reply_of(await session.step(actions[-1]))
    await session.close()
    expect_no_crash(again, "step() looks up a session that the last step closed.", "a step after the last")
    if not is_over(again):
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
    the step, and so must what a first step is answered.

    Our inference: an environment that uses randomness takes its seed from the row.
    """
    action = (await actions_of(trial))[0]

    async def begun(channel: Channel, *, times: int = 1) -> Outcome:
        session = episode_session(trial, row, channel)
        for _again in range(times):
            reset, step = reply_of(await session.seed()), reply_of(await session.step(action))
        await session.close()
        return Outcome((StepOutcome.of_reply(RESET, reset), StepOutcome.of_reply(STEP, step)))

    first, second = [await begun(trial.channel) for _ in range(2)]
    mask = volatile(first, second)

    async def differs(channel: Channel, *, times: int = 1) -> Difference | None:
        found = differences(first, await begun(channel, times=times), mask)
        return next((one for one in found if not one.of_time), None)

    seen = (one for one in differences(first, second) if one.step == RESET and "observation" in one.place)
    difference = next((one for one in seen if not one.of_time), None)
    if difference := difference or await beyond_chance(trial, partial(differs, times=2), differs):
        raise Violation(
            f"{difference.answer} again",
            f"{difference.actual!r}",
            "It uses randomness that the row does not seed, or a reset leaves traces of the previous episode.",
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
    session = episode_session(trial)
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
    session = episode_session(trial)
    reply = reply_of(await session.seed())
    if (reply.fields.get("info") or {}).get("supports_step_idempotency") is not True:
        raise NotApplicable("its resets do not say supports_step_idempotency")
    action, named = (await actions_of(trial))[0], {"_ng_step_request_id": token_hex()}
    one, two = [reply_of(await session.step(action, **named)) for _ in range(2)]
    await session.close()
    first, again = (Outcome((StepOutcome.of_reply(STEP, each),)) for each in (one, two))
    if found := next((one for one in differences(first, again) if not one.of_time), None):
        hint = "Keep the last answer by the session and _ng_step_request_id, and give it again."
        raise Violation(f"{found.answer} again", f"{found.actual!r}", hint)
