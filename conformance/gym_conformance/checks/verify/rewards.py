"""`POST /verify` returns a reward to train on: a finite number, the sum of its components, and more than nothing earns.

Source: `BaseVerifyResponse` in nemo_gym/base_resources_server.py (every version), and what the clients read from the
reply: Verifiers, verl and NeMo RL.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import Any

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import DO_NOTHING, message, response
from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Exchange, Reply, reply_of
from gym_conformance.session.server_fault import NotSent, ServerFault
from gym_conformance.trajectories.execute import TrajectoryRun, beside, run
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import is_reading
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.in_form import expect_number, expect_summed
from gym_conformance.trials.needs import RESOURCES_SERVER, ROLLOUTS, SCORE, each_row
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.replay import play
from gym_conformance.trials.trial import Trial


async def _scored(trial: Trial, row: Row, output: dict[str, Any]) -> dict[str, Any]:
    """What verify answers; {} where it does not score an empty output, which is verify-degenerate's finding."""
    session = await trial.open(row)
    try:
        return await trial.scored(session, output)
    except Untestable:
        if output["output"]:
            raise
        return {}


def _answers(gym: Gym, row: Row) -> Iterator[dict[str, Any]]:
    """What was recorded of the row and of another one, said as it was, and the first half of what was said for this one."""
    own = {rollout.last_text for rollout in gym.recorded.get(row, ())}
    yield from (response(rollout.output) for rollout in gym.recorded.get(row, ())[:1])
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
    gentle=True,
)
async def verify_reward_finite(trial: Trial, row: Row) -> None:
    """Verifies each row with a message that does nothing, an empty output, right and wrong answers and part of the right calls, and looks at `reward`.

    The answers are what was recorded for the row, half of it, and what was recorded for another row. The calls are a
    third and two thirds of a recorded rollout's, which may earn part of the reward.

    Source: `BaseVerifyResponse.reward: float` (every version); NaN leaves FastAPI as null.
    """
    plain = DO_NOTHING.response
    for output in (plain, response([]), *_answers(trial.gym, row)):
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
    gentle=True,
)
async def verify_reward_components(trial: Trial, _: object) -> None:
    """Verifies two outputs that do nothing, and recorded rollouts, whole and in part, and compares the sum of the components with the reward.

    The same is tried after a very long answer, and after 24 repetitions of calls that the tools are known to accept,
    since either may carry a cost. On the first row the keys must be the same each time. Not applicable if no reply for
    it has `reward_components`.

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
    knowledge = await knowledge_of(trial)
    costly = [each for one in known(knowledge)[:_KNOWN] for each in _costly(one)]
    for exchanges in await beside([partial(_exchanges, trial.gym, one) for one in costly], knowledge.several):
        trial.channel.exchanges[:] = exchanges
        reply = reply_of(exchanges[-1])
        if is_success(reply.status) and reply.fields:
            with contextlib.suppress(Untestable):
                _summed(reply.fields)


async def _exchanges(gym: Gym, trajectory: Trajectory) -> list[Exchange]:
    """The exchanges of a trajectory in a session of its own."""
    rollout = TrajectoryRun(gym, Channel(gym.endpoint), trajectory)
    await rollout.finish()
    return rollout.exchanges


def _costly(trajectory: Trajectory) -> tuple[Trajectory, Trajectory]:
    """The trajectory with many calls, and with a very long answer after them."""
    often = trajectory.chosen(list(islice(cycle(range(len(trajectory.calls))), _MANY)))
    return often, replace(trajectory, answer=_LONG + trajectory.answer)


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
    "verify-floor",
    "Doing nothing SHOULD NOT earn what the best recorded rollout earns",
    why="otherwise the easiest way to that reward is to do nothing, and the policy will learn just that.",
    needs=[RESOURCES_SERVER, ROLLOUTS, SCORE],
    subjects=lambda trial: list(trial.gym.recorded),
    beside=True,
    gentle=True,
)
async def verify_floor(trial: Trial, row: Row) -> None:
    """Verifies an empty output and a message that does nothing, and compares them with the best reward recorded for the row.

    Not applicable if no recorded rollout of the row earned more than 0, or if doing nothing is the right answer: the
    best rollout makes no calls either, or only reads, or says nothing where none makes any, and in a row whose
    best rollout does more, doing nothing earns less. Nor if it may have failed: a rollout of another row earned more,
    and there doing nothing earns less. If rewards are relative to a group, the best rollout is scored anew in the
    same group.

    Our inference: a reward for no work teaches none.
    """
    best, rollouts = _best(trial, row)
    if best <= 0:
        raise NotApplicable("no recorded rollout of this row earned a reward")
    idle = [rollout for rollout in rollouts if _does_nothing(trial, rollout)]
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
                raise NotApplicable("its best recorded rollout only reads, and in other rows doing nothing earns less")
            if await _nothing_is_not_enough(trial, row, best):
                raise NotApplicable("a rollout of another row earned more, and there doing nothing earns less")
            raise Violation(
                f"less than {best}, the best recorded reward",
                f"{reward} for {name}",
                hint,
            )


_IGNORES = "The scorer ignores what the policy did, or compares with a state that needs no change."
_BELIEVES = (
    "The scorer takes words such as 'done' for the deed, or any message for an answer: let an empty output earn less."
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


def _does_nothing(trial: Trial, rollout: Rollout) -> bool:
    """Whether it only looks, and says nothing where there is nothing else to do: where no rollout makes calls."""
    only_looks = all(is_reading(call) for call in rollout.calls)
    acts = trial.gym.kind is not ServerKind.SINGLE_TURN or bool(trial.gym.recorded_calls)
    return only_looks and (acts or not rollout.last_text.strip())


async def _nothing_is_not_enough(trial: Trial, row: Row, than: float = 0) -> bool:
    """Whether in another row doing more than to look earned more `than` that, and doing nothing earns less."""
    for other in trial.gym.recorded:
        best, rollouts = _best(trial, other)
        if other is row or best <= than or any(_does_nothing(trial, rollout) for rollout in rollouts):
            continue
        reward = (await _scored(Trial(trial.bench), other, response([]))).get("reward")
        if is_number(reward) and reward < best:
            return True
    return False
