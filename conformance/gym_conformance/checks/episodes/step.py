"""What gymnasium-style servers make of `/step`, which takes a policy output and returns its reward.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

from functools import partial
from itertools import islice
from secrets import token_hex
from typing import Any

from gym_conformance.checks.sessions.rows_read import different_rows
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import Degenerate, message, response
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.contract.verify_reply import is_number, rounded
from gym_conformance.scouting.acting import Play, earned_in, own_texts
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, volatile
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.episodes import (
    actions_of,
    differences_of,
    episode_session,
    explored,
    is_over,
    odd_actions,
    of_one_length,
    played,
    plays,
    recorded_plays,
    stepped,
)
from gym_conformance.trials.needs import GYMNASIUM, RESETS, each_degenerate_turn, each_row
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_success

#: Texts with rows' own words that are tried.
_SAID = 100

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
    """Plays episodes on each row, recorded ones and what was found by trying, and checks the form of each reply.

    The last turn of the first one is repeated, up to 24 times, until the episode is over: how it ends is seldom seen
    before. On the first row, each form that prompts and observations show begins an episode with words that mean nothing
    in it, which must not crash.

    Source: `EnvStepResponse` in resources_servers/gymnasium/base.py, with which the agent reads the reply (0.4.0 to 0.7.0).
    """
    known, recorded = await plays(trial), recorded_plays(trial)
    for play in [play for play in known if play.row is row] or known[:1]:
        further = play.actions[-1:] * _FURTHER if play in known[:1] else ()
        session = episode_session(trial, row)
        await session.seed()
        for number, action in enumerate((*play.actions, *further)):
            reply = reply_of(await session.step(action))
            if is_refusal(reply.status) and play not in recorded:
                break  # it is for step-refuses-none to say
            if number < len(play.actions) or is_success(reply.status):
                _expect_step(reply)
            if is_over(reply):
                break
        await session.close()
    for text in await odd_actions(trial) if row is trial.gym.row else ():
        reply = await _step_with(trial, Degenerate("odd words", (message(text),)))
        _expect_survived(reply, "step() looks up what the policy wrote, or takes it for a number.", f"after {text!r}")


async def _step_with(trial: Trial, output: Degenerate) -> Reply:
    session = episode_session(trial)
    await session.seed()
    reply = reply_of(await session.step(output.response))
    await session.close()
    if not output.stock and is_refusal(reply.status):
        raise NotApplicable("NeMo Gym's own types refuse it")
    return reply


def _expect_survived(reply: Reply, hint: str, given: str = "") -> None:
    expect_no_crash(reply, hint, given)
    if is_success(reply.status):
        _expect_step(reply)


@check(
    "step-degenerate",
    "/step MUST survive degenerate policy outputs",
    why="early in training most outputs are degenerate; each crash loses a rollout and skews what the policy learns from.",
    needs=[GYMNASIUM, RESETS],
    subjects=each_degenerate_turn,
)
async def step_degenerate(trial: Trial, output: Degenerate) -> None:
    """Steps with odd outputs, each in a fresh episode: empty, cut off, reasoning only, malformed calls, very long and more.

    No answer may be a 5xx, and a 200 must have the form that the agent reads.

    Source: the output types in nemo_gym/openai_utils.py (0.4.0) admit them, and the agent raises on any error.
    """
    reply = await _step_with(trial, output)
    _expect_survived(reply, "step() assumes that there is a message, text, or arguments that parse.")


@check(
    "step-refuses-none",
    "/step SHOULD answer a bad action within the episode",
    why="a refused step ends the rollout without a reward, so the policy is never penalised for its mistake.",
    needs=[GYMNASIUM, RESETS],
    subjects=each_degenerate_turn,
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
    """Resets a row in two fresh sessions, and again in one of them after an episode; the policy must see the same each time.

    What the policy sees is the observation. Everything else that both fresh episodes say alike must also be said in the
    one that comes after another in its session.

    Our inference: an environment that uses randomness takes its seed from the row.
    """
    known = await plays(trial)
    actions = next((play.actions for play in known if play.row is row), known[0].actions)

    async def begun(channel: Channel, *, times: int = 1) -> Outcome:
        session = episode_session(trial, row, channel)
        for _again in range(times):
            outcome = await stepped(session, await session.seed(), actions)
        await session.close()
        return outcome

    first, second = [await begun(trial.channel) for _ in range(2)]
    mask = volatile(*of_one_length(first, second))

    async def differs(channel: Channel, *, times: int = 1) -> Difference | None:
        return next(differences_of(first, await begun(channel, times=times), mask), None)

    seen = (one for one in differences_of(first, second) if one.step == RESET and "observation" in one.place)
    difference = next(seen, None)
    if difference := difference or await beyond_chance(trial, partial(differs, times=2), differs):
        raise Violation(
            f"{difference.answer} again",
            f"{difference.actual!r}",
            "It uses randomness that the row does not seed, or a reset leaves traces of the previous episode.",
        )


@check(
    "step-reads-row",
    "The row that is reset SHOULD matter",
    why="if it does not, every rollout plays the same task, whatever its prompt says, and most of the data trains nothing.",
    needs=[GYMNASIUM, RESETS],
)
async def step_reads_row(trial: Trial, _: object) -> None:
    """Plays the episodes that were found on each of up to four rows, on all of them; their own fields differ in more than ids.

    It is a violation if every reply is the same for all rows, although some episodes earn more than others, and so it is
    for each row's own words in the forms that are shown, one of which may be the answer.

    Our inference: `GymnasiumAgent.run` posts the whole row to /reset and /step (0.4.0 to 0.7.0), and would not if nobody
    read it.
    """
    known = await explored(trial)
    rows = different_rows([*known.rows])
    found = [each for each in known.best if each.play.actions and each.play.row in rows]
    if len(rows) == 1 or len({each.earned for each in found}) <= 1:
        raise NotApplicable("no two rows have fields of their own that differ, or all that was tried earns the same")
    said = [text for row in rows for text in own_texts(row, known.rows[row].shown)]
    written = [(response([message(text)]),) for text in islice(dict.fromkeys(said), _SAID)]
    turns = [*written, *(each.play.actions for each in reversed(found))]
    earned = set[float]()
    for actions in turns:
        trial.channel.exchanges.clear()  # the last of them is shown
        one, *others = [await played(trial, trial.channel, Play(row, actions)) for row in rows]
        earned.add(earned_in(one))
        if any(len(other.steps) != len(one.steps) or any(differences_of(one, other)) for other in others):
            return
    if len(earned) == 1:
        raise NotApplicable("all that was tried earns the same by now; see step-repeats")
    raise Violation(
        f"replies or rewards that differ between {rows[0]} and {', '.join(map(str, rows[1:]))}",
        "the same for all, whatever was done",
        "reset() ignores the row, keeps that of the first session, or reads a field that no row has.",
    )


@check(
    "step-repeats",
    "The same actions SHOULD earn the same",
    why="group-relative advantages compare rollouts of one row, so what an episode finds by luck is mistaken for merit.",
    needs=[GYMNASIUM, RESETS],
)
async def step_repeats(trial: Trial, _: object) -> None:
    """Compares what each episode that was found by trying earned with what the same actions earned at once again.

    Episodes that begin differently are left to `step-reset-fresh`.

    Our inference: an environment that uses randomness takes its seed from the row, and an episode leaves nothing behind.
    """
    for each in (await explored(trial)).episodes:
        begun, begun_again = (Outcome(outcome.steps[:1]) for outcome in (each.outcome, each.again))
        earned, earned_again = (rounded(earned_in(outcome)) for outcome in (each.outcome, each.again))
        if earned != earned_again and not any(differences_of(begun, begun_again)):
            await played(trial, trial.channel, each.play)  # for the record
            raise Violation(
                f"{earned} for {len(each.play.actions)} steps on {each.play.row}, as they earned the first time",
                f"{earned_again} the next time",
                "What one episode has done is not undone for the next, or the row does not seed what is drawn.",
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
