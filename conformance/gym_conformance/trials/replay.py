"""A recorded rollout's calls, run again: the one trajectory that is known to mean something to the server."""

from dataclasses import replace
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.policy_output import DO_NOTHING, Item, message, response
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.learn import recorded_trajectories
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, Session
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial, ensure_opened

#: Enough to write and to read again.
_CALLS = 8

#: What may be an answer, also where a box or a program is asked for.
_ANSWER: Final = "The answer is 42: \\boxed{42}\n\n```python\nprint(42)\n```"


async def replayed(trial: Trial, habit: CookieHabit, channel: Channel) -> TrajectoryRun:
    """What the longest recorded rollout does, or what is known to be accepted where none is, done by a client of that habit.

    Raises:
        Untestable: the server does not take the seed.
    """
    rollout = TrajectoryRun(trial.gym, channel, await known_trajectory(trial), habit)
    await rollout.step()
    ensure_opened(rollout.trajectory.row, reply_of(rollout.exchanges[0]))
    await rollout.finish()
    return rollout


async def play(trial: Trial, row: Row) -> Reply:
    """What verify answers to the first rollout recorded of the row, or to doing nothing, once its calls are made."""
    return await verify_recorded(await called(trial, row), row, trial.gym)


async def verify_recorded(session: Session, row: Row, gym: Gym) -> Reply:
    """What verify answers to the first rollout recorded of the row, or to doing nothing."""
    recorded = gym.recorded.get(row, ())
    return reply_of(await session.verify(response(recorded[0].output) if recorded else DO_NOTHING.response))


async def reward_of(session: Session, output: list[Item]) -> Any:
    """The reward of an output; None if it is not scored."""
    return StepOutcome.of_verify(reply_of(await session.verify(response(output)))).body


def an_answer(gym: Gym, row: Row) -> dict[str, Any]:
    """What was recorded of the row first, or else what may be an answer."""
    recorded = gym.recorded.get(row, ())
    return response(recorded[0].output if recorded else [message(_ANSWER)])


async def called(trial: Trial, row: Row, channel: Channel | None = None, output: list[Item] | None = None) -> Session:
    """A session on the row in which the calls of its first recorded rollout are made, where any would be, as `output` writes them."""
    session = await trial.open(row, channel=channel)
    for rollout in trial.gym.recorded.get(row, ())[:1]:
        written = rollout.output if output is None else output
        own = replace(rollout, data={**rollout.data, "response": {**rollout.response, "output": written}})
        await TrajectoryRun(trial.gym, trial.channel, followed(row, own), session=session).make_calls()
    return session


def recorded_trajectory(trial: Trial) -> Trajectory:
    """The calls of the longest recorded rollout, on its row, with the ids that are given now; none where nothing is recorded."""
    if trial.learned.replayed is None:  # found once: chance takes many replays to exclude
        longest = next(iter(recorded_trajectories(trial.gym)), Trajectory(trial.gym.row))
        trial.learned.replayed = replace(longest, calls=longest.calls[:_CALLS])
    return trial.learned.replayed


async def known_trajectory(trial: Trial) -> Trajectory:
    """The recorded trajectory, or, where nothing is recorded, calls that the tools are known to accept."""
    recorded = recorded_trajectory(trial)
    made_up = () if recorded.calls else known(await knowledge_of(trial))
    return next((replace(one, calls=one.calls[:_CALLS]) for one in made_up if one.calls), recorded)
