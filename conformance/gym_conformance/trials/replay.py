"""A recorded rollout's calls, run again: the one trajectory that is known to mean something to the server."""

from dataclasses import dataclass
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import DO_NOTHING, response
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, Session
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.trajectory import Trajectory
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
    row, calls = _recorded(trial)
    session = await trial.open(row, habit, channel)
    ids, answers = [session.id], []
    for call in calls[:_CALLS]:
        for disturbing in disturb:
            await session.call(disturbing)
        answers.append(StepOutcome.of_call(call, reply_of(await session.call(call))))
        ids.append(session.id)
    for disturbing in disturb:
        await session.call(disturbing)
    answers.append(StepOutcome.of_verify(reply_of(await session.verify(_response(trial, row)))))
    return Replayed(tuple(answers), tuple(ids))


async def play(trial: Trial, row: Row) -> Reply:
    """What verify answers to the first rollout recorded of the row, or to doing nothing, once its calls are made."""
    session = await called(trial, row)
    return reply_of(await session.verify(_response(trial, row)))


async def called(trial: Trial, row: Row, channel: Channel | None = None) -> Session:
    """A session on the row in which the calls of its first recorded rollout are made, where any would be."""
    session = await trial.open(row, channel=channel)
    recorded = trial.gym.recorded.get(row, ())
    for call in recorded[0].calls if recorded and trial.gym.kind is not ServerKind.SINGLE_TURN else ():
        await session.call(call)
    return session


def recorded_trajectory(trial: Trial) -> Trajectory:
    """The calls of the longest recorded rollout, on its row; none where nothing is recorded."""
    row, calls = _recorded(trial)
    return Trajectory(row, calls[:_CALLS])


def _recorded(trial: Trial) -> tuple[Row, tuple[Call, ...]]:
    return next(iter(trial.gym.recorded_calls), (trial.gym.row, ()))


def _response(trial: Trial, row: Row) -> Any:
    recorded = trial.gym.recorded.get(row, ())
    return response(recorded[0].output) if recorded else DO_NOTHING.response
