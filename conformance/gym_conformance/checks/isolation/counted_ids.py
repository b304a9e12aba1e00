"""Whether a session is served what another one has made, by an id that is counted: a policy that guesses finds it.

What it is told then need hold no word that could be recognised: a job's result is a number.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Final

from gym_conformance.checks.isolation.beside_others import FOUND_BY_ID
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.known import first_calls, known
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.trajectory import Trajectory, is_linked, resolve
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial
from gym_schemas import mapped

#: Tools that are looked at, calls that may come before one, and how often each is tried.
_TOOLS, _BEFORE, _TIMES = 4, 8, 4

#: A counted id: a few letters and a number. Nobody has come to so many more.
_COUNTED: Final = re.compile(r"\D{0,12}\d{1,9}")
_MANY_MORE: Final = 70_000_000


@dataclass(frozen=True)
class _Asked:
    """A call with a counted id that another session was given, and what it is answered there; and with an id of nobody's."""

    given: Any
    reply: StepOutcome
    of_nobody: StepOutcome

    @property
    def is_found(self) -> bool:
        """Whether the one is taken, and the other refused."""
        return not self.reply.is_refused and self.of_nobody.is_refused


async def expect_none_found(trial: Trial, knowledge: Knowledge) -> None:
    """Ask in a fresh session for what another one, which is still open, was given under an id that counts on each time.

    An id that two sessions are given alike is one of the world, or each session counts for itself; one that goes up by
    another number each time may be drawn from what all may read.

    Raises:
        Violation: it is found each time, and an id that nobody was given is refused.
    """
    uses = first_calls(known(knowledge), lambda call: is_linked(call.arguments), _BEFORE)
    for one, at in islice(uses, _TOOLS):
        asked: list[_Asked] = []
        while len(asked) < _TIMES and (each := await _asked(trial, one, at)) and each.is_found:
            asked.append(each)
        numbers = [int(re.sub(r"\D", "", str(each.given))) for each in asked]
        if len(numbers) == _TIMES and _counts_on(numbers):
            last = asked[-1]
            raise Violation(
                f"{last.reply.name} of a fresh session knows nothing of {last.given!r}, which another session was given",
                f"{str(last.reply.body)[:200]}, while an id that nobody was given is refused",
                FOUND_BY_ID,
                Cause.SHARED_STATE,
            )


def _counts_on(numbers: Sequence[int]) -> bool:
    """Whether each is by as many more than the one before."""
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    return len(steps) == 1 and min(steps) > 0


async def _asked(trial: Trial, one: Trajectory, at: int) -> _Asked | None:
    """One session is given something, and others ask for it; None where it is no counted id."""
    trial.channel.exchanges.clear()
    rollout = TrajectoryRun(trial.gym, trial.channel, one)
    await rollout.step(1 + at)
    call = one.calls[at]
    told, plain = rollout.arguments(call), resolve(call.arguments, [])
    ids = dict(_counted(told, plain))
    if not ids:
        return None
    reply = await _answered(trial, one, Call(call.name, told), trial.channel)
    unknown = Call(call.name, mapped(told, lambda each, _: ids.get(each, each) if type(each) in (str, int) else each))
    of_nobody = await _answered(trial, one, unknown, Channel(trial.gym.endpoint))
    await rollout.session.close()
    return _Asked(next(iter(ids)), reply, of_nobody)


async def _answered(trial: Trial, one: Trajectory, call: Call, channel: Channel) -> StepOutcome:
    session = await trial.open(one.row, channel=channel)
    outcome = StepOutcome.of_call(call, reply_of(await session.call(call)))
    await session.close()
    return outcome


def _counted(told: Any, plain: Any) -> Iterator[tuple[Any, Any]]:
    """The counted ids that were returned, each with one that nobody was given."""
    if isinstance(told, dict) and isinstance(plain, dict):
        for key, value in told.items():
            yield from _counted(value, plain.get(key))
    elif told != plain and isinstance(told, int) and not isinstance(told, bool):
        yield told, told + _MANY_MORE
    elif told != plain and isinstance(told, str) and _COUNTED.fullmatch(told):
        yield told, re.sub(r"\d+", lambda number: str(int(number[0]) + _MANY_MORE), told)
