"""`POST /verify`: scores a response, and hands it back with the reward.

Source: `BaseVerifyRequest` and `BaseVerifyResponse` in nemo_gym/base_resources_server.py (every version), and what
the clients read from the reply: Verifiers, verl and NeMo RL take reward, response and token fields from it.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from itertools import cycle, islice
from typing import Any

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import (
    DO_NOTHING,
    LONG_NUMBER,
    OPEN_BRACKETS,
    RAW_SURROGATE,
    REPLACED_SURROGATE,
    SLIPS,
    Degenerate,
    function_call,
    message,
    response,
)
from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies
from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import NotSent
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.refusals import places
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import TrajectoryRun, run
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import is_read
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.in_form import expect_number, expect_summed
from gym_conformance.trials.needs import RESOURCES_SERVER, ROLLOUTS, SCORE, TOOLS, each_degenerate_output, each_row
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.replay import play
from gym_conformance.trials.trial import (
    Trial,
    describe,
    expect_no_crash,
    expect_object,
    expect_success,
    refuse_made_up,
)


@check(
    "verify-scores-rows",
    "verify MUST score every row",
    why="the agent raises, and the row's rollout is lost after all its tokens have been paid for.",
    needs=[RESOURCES_SERVER],
    subjects=each_row,
    beside=True,
)
async def verify_scores_rows(trial: Trial, row: Row) -> None:
    """Seeds each row and verifies a message that does nothing, and a recorded rollout's output if there is one.

    The reply is 200 with a JSON object.
    Source: `SimpleAgent.run` raises for any other status (0.4.0).
    """
    hint = "verify's request model does not match the dataset, or the scorer fails on this row."
    recorded = [response(rollout.output) for rollout in trial.gym.recorded.get(row, ())[:1]]
    for output in (DO_NOTHING.response, *recorded):
        reply = await trial.verify_fresh(output, row)
        if output in recorded and _refused_by_type(reply):
            continue  # recorded by an older version, with values that today's OpenAI types refuse
        if not _refused_by_type(reply):
            refuse_made_up(row, reply)
        expect_success(reply, hint)
        expect_object(reply, "verify returns None, or its reply contains NaN, which is not JSON.")


def _refused_by_type(reply: Reply) -> bool:
    """Whether NeMo Gym's own response type refused the request: a 422 that points below `response`."""
    found = places(reply) if reply.status == HTTPStatus.UNPROCESSABLE_ENTITY else []
    return bool(found) and all(place[:2] == ["body", "response"] for place in found)


async def _scored(trial: Trial, row: Row, output: dict[str, Any]) -> dict[str, Any]:
    """What verify answers; {} where it does not score an empty output, which is verify-degenerate's finding."""
    session = await trial.open(row)
    try:
        return await trial.scored(session, output)
    except Untestable:
        if output["output"]:
            raise
        return {}


@check(
    "verify-degenerate",
    "verify MUST score degenerate policy outputs",
    why="early in training most outputs are degenerate; each crash loses a rollout and skews what the policy learns from.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=each_degenerate_output,
    beside=True,
)
async def verify_degenerate(trial: Trial, output: Degenerate) -> None:
    """Verifies the first row with odd outputs: empty, cut off, reasoning only, malformed calls, NUL, very long and more.

    Recorded answers are verified in their own rows, with numbers of 5,000 digits in the place of theirs.
    Each must be scored with 200, and with a finite number where a message that does nothing is. If NeMo Gym's own types
    cannot read an output, a 422 passes here, and verify-framework-types reports it.
    Source: the output types in nemo_gym/openai_utils.py (0.4.0) admit them, and `SimpleAgent.run` raises on any error.
    """
    reply = await trial.verify_fresh(output.response, output.row)
    if not output.stock and _refused_by_type(reply):
        raise NotApplicable("NeMo Gym's own types refuse it; see verify-framework-types")
    if output.row and not is_success(reply.status):
        said = message(trial.gym.recorded[output.row][0].last_text)
        if not is_success((await trial.verify_fresh(response([said]), output.row)).status):
            raise NotApplicable("its own answer is not scored either; see verify-scores-rows")
        trial.channel.exchanges[-2:] = []
    long = output.name.startswith((LONG_NUMBER, OPEN_BRACKETS))
    expect_success(reply, _TOO_LONG if long else _UNEXPECTED)
    try:
        expect_number(reply)
    except Violation:
        record = list(trial.channel.exchanges)
        plain = await _scored(trial, trial.gym.row, DO_NOTHING.response)
        trial.channel.exchanges[:] = record
        if is_number(plain.get("reward")):  # otherwise see verify-reward-finite
            raise


_UNEXPECTED = "The scorer assumes that there is a message, text, or arguments that parse."
_TOO_LONG = (
    "The scorer reads the number or the JSON without a guard: int() raises a ValueError above 4,300 digits, and json a "
    "RecursionError where it is nested too deep. What cannot be read is a wrong answer."
)


@check(
    "verify-malformed-calls",
    "verify MUST score malformed calls to every tool",
    why="the agent survives them and continues to verify, where the whole rollout is lost with all its tokens.",
    needs=[RESOURCES_SERVER, TOOLS, SCORE],
    subjects=lambda trial: [row for row in trial.gym.rows if row.tools],
    beside=True,
)
async def verify_malformed_calls(trial: Trial, row: Row) -> None:
    """Verifies, for each row, calls of all its tools with arguments that are empty, a list, null, not JSON, and so on.

    If that does not answer 200, each tool is tried alone to name the culprit. A row that verify cannot score at all
    belongs to verify-scores-rows.
    Source: simple_agent/app.py (0.4.0) answers malformed arguments with an error for the policy, and continues.
    """
    for slip, arguments in SLIPS.items():
        names = [tool.name for tool in row.tools]
        if (together := await _refusal(trial, row, names, arguments)) is None:
            continue
        await trial.scored(await trial.open(row), DO_NOTHING.response)
        alone = [(name, reply) for name in names if (reply := await _refusal(trial, row, [name], arguments))]
        name, reply = next(iter(alone), ("all its tools", together))
        raise Violation(
            f"status 200 for a call of {name} whose arguments are {slip}",
            describe(reply),
            "verify parses the arguments, or reads a key from them, without guarding against errors.",
        )


async def _refusal(trial: Trial, row: Row, names: list[str], arguments: str) -> Reply | None:
    """The reply to such calls; None where they are scored, and then it leaves no trace."""
    calls = [function_call(name, arguments, f"call_{at}") for at, name in enumerate(names)]
    before = len(trial.channel.exchanges)
    reply = await trial.verify_fresh(response([*calls, message("Done.")]), row)
    if not is_success(reply.status):
        return reply
    for exchange in trial.channel.exchanges[before:]:
        trial.channel.forget(exchange)
    return None


@check(
    "verify-framework-types",
    "verify SHOULD accept hosted tools' items, lists as tool output, and unknown items",
    why="every such rollout of a policy with hosted tools is lost with a 422.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda trial: [output for output in each_degenerate_output(trial) if not output.stock],
    framework=True,
    beside=True,
)
async def verify_framework_types(trial: Trial, output: Degenerate) -> None:
    """Verifies the outputs that NeMo Gym's own types cannot read in some versions.

    Source: `NeMoGymResponseOutputItem` in nemo_gym/openai_utils.py: in 0.4.0 every stock server refuses them.
    """
    if _refused_by_type(reply := await trial.verify_fresh(output.response)):
        raise Violation(
            "status 200",
            describe(reply),
            "This comes from NeMo Gym's own types, not from this environment; newer versions accept more.",
        )


@check(
    "verify-raw-surrogate",
    "verify SHOULD score text that contains a lone surrogate",
    why="models that write byte by byte produce them, and the rollout is lost with a 500.",
    needs=[RESOURCES_SERVER, SCORE],
    framework=True,
)
async def verify_raw_surrogate(trial: Trial, _: object) -> None:
    r"""Verifies a message whose text contains the JSON escape "\ud800", which Python reads as one character.

    Not where another framework than NeMo Gym fails on it and takes the same text with U+FFFD in its place: what it
    cannot read or write is then JSON, which the environment's author leaves to it.

    Source: in 0.4.0 every stock server answers 500: `BaseVerifyResponse` in nemo_gym/base_resources_server.py echoes the
    response, which cannot be encoded as UTF-8.
    """
    reply = await trial.verify_fresh(RAW_SURROGATE.response)
    if not is_success(reply.status) and not trial.met_framework:
        replaced = await trial.verify_fresh(REPLACED_SURROGATE.response)
        if is_success(replaced.status):
            raise NotApplicable("the server's web framework cannot hold it; with U+FFFD in its place it is scored")
    expect_success(
        reply,
        "This comes from NeMo Gym's own echo, not from this environment: UTF-8 has no lone surrogates.",
    )


def _wrong_answers(gym: Gym, row: Row) -> Iterator[dict[str, Any]]:
    """What was recorded of another row, said as it was, and the first half of what was said for this one."""
    own = {rollout.last_text for rollout in gym.recorded.get(row, ())}
    others = (rollout for other in gym.recorded if other is not row for rollout in gym.recorded[other])
    yield from (response(rollout.output) for rollout in islice((one for one in others if one.last_text not in own), 1))
    yield from (response([message(text[: len(text) // 2])]) for text in islice(own, 1) if len(text) > 1)


def _half_done(gym: Gym, row: Row) -> Iterator[Trajectory]:
    """A third and two thirds of the calls of the row's first recorded rollout, if it calls tools that are served here."""
    rollouts = gym.recorded.get(row, ()) if gym.kind is not ServerKind.SINGLE_TURN else ()
    whole = [followed(row, rollout) for rollout in rollouts[:1]]
    for trajectory in whole:
        count = len(trajectory.calls)
        yield from (trajectory.without(range(kept, count)) for kept in sorted({count // 3, 2 * count // 3} - {0}))


@check(
    "verify-reward-finite",
    "The reward MUST be a finite number",
    why="NaN and null poison the advantages of the whole batch; a string or a bool breaks the trainer's types.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=each_row,
    beside=True,
)
async def verify_reward_finite(trial: Trial, row: Row) -> None:
    """Verifies each row with a message that does nothing, an empty output, wrong answers and half the deeds, and looks at `reward`.

    The wrong answers are what was recorded of another row, and half of what was recorded of this one; the deeds are a
    third and two thirds of a recorded rollout's calls, which may earn a part of the reward.

    Source: `BaseVerifyResponse.reward: float` (every version); NaN leaves FastAPI as null.
    """
    plain = DO_NOTHING.response
    for output in (plain, response([]), *_wrong_answers(trial.gym, row)):
        reply = await trial.verify_fresh(output, row)
        if not is_success(reply.status) and output is not plain:
            continue  # see verify-degenerate
        if not is_success(reply.status):
            raise Untestable(f"a score: /verify answered {reply.status}; see verify-scores-rows")
        expect_number(reply)
    for reply in await _partly_scored(trial, row):
        expect_number(reply)


async def _partly_scored(trial: Trial, row: Row) -> list[Reply]:
    """What verify answers to a part of the deeds, where it scores them."""
    replies = []
    for deeds in _half_done(trial.gym, row):
        try:
            await run(trial.gym, trial.channel, deeds)
        except (ServerFault, NotSent):
            break  # a tool that does not answer is told by others
        replies.append(reply_of(next(one for one in reversed(trial.channel.exchanges) if one.request.path == VERIFY)))
    return [reply for reply in replies if is_success(reply.status)]


#: Words before an answer, more than any author would want.
_LONG = "I go through it once more, step by step. " * 1_000

#: Rows whose recorded rollouts are held to their components; known trajectories whose calls are repeated up to so many.
_ROWS, _KNOWN, _MANY = 8, 3, 24


@check(
    "verify-reward-components",
    "reward_components MUST sum to the reward and keep their keys",
    why="multi-objective trainers normalise each component; a missing one or a wrong sum trains for another objective.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def verify_reward_components(trial: Trial, _: object) -> None:
    """Verifies two outputs that do nothing and recorded rollouts, whole and in part, and compares the components' sum.

    So it does after a very long answer, and after 24 calls that the tools are known to take, repeated: either may cost
    something.

    On the first row their keys must be the same each time. Not applicable if no reply to it has `reward_components`.
    Source: `BaseMultiRewardVerifyResponse` in nemo_gym/base_resources_server.py (0.7.0).
    """
    row = trial.gym.row
    verdicts = [await _scored(trial, row, output) for output in (DO_NOTHING.response, response([]))]
    verdicts = [verdict for verdict in [*verdicts, *await _done_scored(trial, row)] if verdict]
    if all(verdict.get("reward_components") is None for verdict in verdicts):
        raise NotApplicable("the reply has no reward_components")
    keys = [_summed(verdict).keys() for verdict in verdicts]
    if other := next((each for each in keys if each != keys[0]), None):
        hint = "A component is left out when it is 0."
        raise Violation(f"the keys {sorted(keys[0])} each time", f"{sorted(other)}", hint)
    for other_row in list(trial.gym.recorded)[:_ROWS]:
        trial.channel.exchanges.clear()
        with contextlib.suppress(Untestable):  # a row that is not scored is told by others
            for verdict in await _done_scored(trial, other_row):
                _summed(verdict)
    for trajectory in known(await knowledge_of(trial))[:_KNOWN]:
        often = trajectory.chosen(list(islice(cycle(range(len(trajectory.calls))), _MANY)))
        for dear in (often, replace(trajectory, answer=_LONG + trajectory.answer)):
            trial.channel.exchanges.clear()
            rollout = TrajectoryRun(trial.gym, trial.channel, dear)
            await rollout.finish()
            reply = reply_of(rollout.exchanges[-1])
            if is_success(reply.status) and reply.fields:
                with contextlib.suppress(Untestable):
                    _summed(reply.fields)


async def _done_scored(trial: Trial, row: Row) -> list[dict[str, Any]]:
    """What verify answers to a recorded rollout of the row, and to parts of it."""
    played = await play(trial, row)
    replies = [*([played] if is_success(played.status) else []), *await _partly_scored(trial, row)]
    return [reply.fields for reply in replies if reply.fields]


def _summed(verdict: dict[str, Any]) -> dict[str, Any]:
    """The components, which sum to the reward."""
    components, reward = verdict.get("reward_components"), verdict.get("reward")
    if not is_number(reward):
        raise Untestable("a reward that is a number; see verify-reward-finite")
    if not isinstance(components, dict) or not all(map(is_number, components.values())):
        raise Violation("an object of numbers", f"reward_components: {components!r}", "Each component is a float.")
    expect_summed(verdict)
    return components


@check(
    "verify-without-session",
    "verify MUST NOT crash without a session",
    why="after a lost cookie or a restart, every verify arrives like this; a 5xx ends the whole collection.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: ("no cookie, before any seed", "an unknown cookie"),
)
async def verify_without_session(trial: Trial, subject: str) -> None:
    """Verifies the first row without a cookie, and with a cookie that the server never set.

    A 4xx that says so is fine.
    Source: https://github.com/unslothai/notebooks/blob/main/nb/NeMo-Gym-Sudoku.ipynb calls `/verify` with no seed and no
    cookie.
    """
    unknown = Cookies((("unknown", "cookie"),)) if subject == "an unknown cookie" else NO_COOKIES
    reply = await trial.verify_bare(DO_NOTHING.response, unknown)
    expect_no_crash(reply, "verify looks up its session without checking that it exists.")


@check(
    "verify-floor",
    "Doing nothing SHOULD NOT earn what the best recorded rollout earns",
    why="the shortest way to that reward is to do nothing, which is what the policy will learn.",
    needs=[RESOURCES_SERVER, ROLLOUTS, SCORE],
    subjects=lambda trial: list(trial.gym.recorded),
    beside=True,
)
async def verify_floor(trial: Trial, row: Row) -> None:
    """Verifies an empty output and a message that does nothing, and compares with the best reward recorded for the row.

    Not applicable where no recorded rollout of the row earned more than 0, or where doing nothing is the right answer:
    the best rollout makes no call either, or only looks, and in a row whose best one does more nothing earns less. Where
    rewards are relative to a group, the best rollout is scored anew beside the same others.
    Our inference: a reward without work teaches none.
    """
    best, rollouts = _best(trial, row)
    if best <= 0:
        raise NotApplicable("no recorded rollout of this row earned a reward")
    idle = [rollout for rollout in rollouts if _only_looks(rollout)]
    if trial.gym.kind is not ServerKind.SINGLE_TURN and any(not rollout.calls for rollout in idle):
        raise NotApplicable("its best recorded rollout makes no call either")
    if trial.gym.endpoint.groups.size > 1:
        best = await _beside_its_group(trial, row, rollouts[0], best)
    for output, name, hint in (
        (response([]), "an empty output", _IGNORES),
        (DO_NOTHING.response, "a message that does nothing", _BELIEVES),
    ):
        reward = (await _scored(trial, row, output)).get("reward")
        if is_number(reward) and reward >= best:
            if idle and await _nothing_is_not_enough(trial, row):
                raise NotApplicable("its best recorded rollout only looks, and in other rows doing nothing earns less")
            raise Violation(
                f"less than {best}, the best recorded reward",
                f"{reward} for {name}",
                hint,
            )


_IGNORES = "The scorer ignores what the policy did, or compares with a state that needs no change."
_BELIEVES = (
    "The scorer takes words such as 'done' for the deed, or any message for an answer: an empty output earns less."
)


async def _beside_its_group(trial: Trial, row: Row, rollout: Rollout, recorded: float) -> float:
    """What a rollout earns anew, beside the others of its group.

    Raises:
        NotApplicable: no more than these, or a mock of ours scored it.
    """
    best = (await _scored(trial, row, response(rollout.output))).get("reward", recorded)
    trial.expect_own_score()
    if not is_number(best) or best <= 0:
        raise NotApplicable("its best recorded rollout earns no more than the others of its group")
    return float(best)


def _best(trial: Trial, row: Row) -> tuple[float, list[Rollout]]:
    """The best reward that is recorded for the row, 0 where none is, and the rollouts that earned it."""
    rollouts = [rollout for rollout in trial.gym.recorded[row] if is_number(rollout.reward)]
    best = max((rollout.reward for rollout in rollouts), default=0)
    return best, [rollout for rollout in rollouts if rollout.reward == best]


def _only_looks(rollout: Rollout) -> bool:
    return all(is_read(call.name) for call in rollout.calls)


async def _nothing_is_not_enough(trial: Trial, row: Row) -> bool:
    """Whether there is another row in which more is to be done than to look, and doing nothing earns less than that."""
    for other in trial.gym.recorded:
        best, rollouts = _best(trial, other)
        if other is row or best <= 0 or any(map(_only_looks, rollouts)):
            continue
        reward = (await _scored(Trial(trial.bench), other, response([]))).get("reward")
        if is_number(reward) and reward < best:
            return True
    return False


@check(
    "verify-malformed",
    "verify SHOULD refuse a malformed request without a 5xx",
    why="a 5xx is retried and hides what was wrong, while a 422 names the field.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def verify_malformed(trial: Trial, _: object) -> None:
    """Verifies the first row with no response, with null, and with an empty object as the response.

    Our inference: FastAPI answers 422 before the handler runs.
    """
    bodies: tuple[dict[str, Any], ...] = ({}, {"response": None}, {"response": {}})
    for fields in bodies:
        session = await trial.open()
        reply = reply_of(await session.send(post(VERIFY, {**trial.gym.row.data, **fields})))
        expect_no_crash(reply, "The handler reads the raw body instead of a typed request model.")
