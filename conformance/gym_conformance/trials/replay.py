"""A recorded rollout's calls, run again: the one trajectory that is known to mean something to the server."""

from dataclasses import dataclass, replace
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import DO_NOTHING, response
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, Session
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.learn import recorded_trajectories
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.trajectory import Trajectory, resolve
from gym_conformance.trials.trial import Trial

#: Enough to write and to read again.
_CALLS = 8


@dataclass(frozen=True)
class Replayed:
    """What came of a run: the answers to each step, and the id of the session that each was asked in."""

    answers: tuple[StepOutcome, ...]
    ids: tuple[str | None, ...]

    @property
    def kept_id(self) -> bool:
        """Whether all steps ran in one session, as far as a client can see."""
        return len(set(self.ids)) == 1

    @staticmethod
    def difference(first: "Replayed", second: "Replayed", tried: "Replayed") -> tuple[str, str] | None:
        """Where `tried` differs from two runs that are equal there: what they answered and what it did."""
        for one, two, three in zip(first.answers, second.answers, tried.answers, strict=True):
            if one == two != three:
                return f"{one.name} answers {one.status}, {one.body!r}", f"it answers {three.status}, {three.body!r}"
        return None


async def replay(
    trial: Trial, habit: CookieHabit, disturb: tuple[Call, ...] = (), channel: Channel | None = None
) -> Replayed:
    """Seed, call, verify as the longest recorded rollout does, with `disturb` called after each step.

    `channel` is the trial's own, unless another is given.

    Where no rollout is recorded, or no tool is served, only the seed and the verify remain.
    """
    recorded = recorded_trajectory(trial)
    session = await trial.open(recorded.row, habit, channel)
    ids, answers, said = [session.id], list[StepOutcome](), list[Any]()
    for call in recorded.calls:
        for disturbing in disturb:
            await session.call(disturbing)
        reply = reply_of(await session.call(Call(call.name, resolve(call.arguments, said))))
        answers.append(StepOutcome.of_call(call, reply))
        said.append(reply.said)
        ids.append(session.id)
    for disturbing in disturb:
        await session.call(disturbing)
    answers.append(StepOutcome.of_verify(reply_of(await session.verify(_response(trial, recorded.row)))))
    return Replayed(tuple(answers), tuple(ids))


async def play(trial: Trial, row: Row) -> Reply:
    """What verify answers to the first rollout recorded of the row, or to doing nothing, once its calls are made."""
    session = await called(trial, row)
    return reply_of(await session.verify(_response(trial, row)))


async def called(trial: Trial, row: Row, channel: Channel | None = None) -> Session:
    """A session on the row in which the calls of its first recorded rollout are made, where any would be."""
    session, said = await trial.open(row, channel=channel), list[Any]()
    rollouts = trial.gym.recorded.get(row, ()) if trial.gym.kind is not ServerKind.SINGLE_TURN else ()
    for call in (call for rollout in rollouts[:1] for call in followed(row, rollout).calls):
        said.append(reply_of(await session.call(Call(call.name, resolve(call.arguments, said)))).said)
    return session


def recorded_trajectory(trial: Trial) -> Trajectory:
    """The calls of the longest recorded rollout, on its row, with the ids that are given now; none where nothing is recorded."""
    if trial.learned.replayed is None:  # found once: chance takes many replays to exclude
        longest = next(iter(recorded_trajectories(trial.gym)), Trajectory(trial.gym.row))
        trial.learned.replayed = replace(longest, calls=longest.calls[:_CALLS])
    return trial.learned.replayed


def _response(trial: Trial, row: Row) -> Any:
    recorded = trial.gym.recorded.get(row, ())
    return response(recorded[0].output) if recorded else DO_NOTHING.response
