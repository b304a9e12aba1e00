"""What one and the same session comes to, again and again: what all sessions count, or use up, shows in that alone."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from random import Random
from typing import Any, Final

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.evidence import allowed
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.generate import is_reading
from gym_conformance.trajectories.other_values import has_number, with_more_zeros, with_the_most
from gym_conformance.trajectories.outcome import Difference, Outcome, differences, values_at, varying, volatile
from gym_conformance.trajectories.renaming import ids_of, names_in, new_names, renamed, texts_of, words_of_answer
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Schedule, Trajectory
from gym_conformance.trials.before_and_after import is_by_design
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial

#: So often an answer is given, and so many answers are, none of which was given before; trajectories whose calls are made.
_TIMES: Final = 17
_ANSWERS: Final = 12
_MADE: Final = 2

#: Places where the first and the last may differ.
_PLACES: Final = 8

#: Zeros that may follow a number.
_ZEROS: Final = range(1, 37)

#: Where a turn may be. The first may be anywhere, and by chance each further one is after as many with one in so many: a
#: clock that ticks once in the time of 17 runs makes a turn each time.
_STEPS: Final = _TIMES - 1

#: Seconds that it may take to do so.
_SECONDS: Final = 8.0

_COUNTED: Final = (
    "Answers are counted or remembered across all sessions, such as for a novelty bonus: a score must depend on the row and "
    "the response alone."
)

_USED_UP: Final = (
    "All sessions use up the same thing, such as seats or beds stored under a name of the row, or an iterator: store it "
    "under the session's id, and create it anew with each seed."
)


async def expect_the_same_each_time(trial: Trial, found: Sequence[Trajectory], at_once: int) -> None:
    """Give the same answer 17 times, and make the same calls 17 times, each time in a fresh session.

    Where they come to one thing or several, and then to another for good, so must other answers, or calls with other
    names, each after as many times, until no order of noise explains it. Where each time earns another reward, other answers
    must earn the very same ones in turn, which neither a clock nor noise does. Most of the first 17 are run so many at once, and
    nothing more is done where the first and the last of them come to the same.

    Raises:
        Violation: they do.
    """
    made = [one for one in found if names_in(one) and not all(is_reading(call) for call in one.calls)][:_MADE]
    named = [(one, names_in(one)[0]) for one in made]
    named += [(most, names) for one, names in named[:1] if (most := with_the_most(one))]
    # what is kept for a row whose calls say nothing, such as hints that are given one after the other
    unsaid = [one for one in found if one.calls and not names_in(one)][:1]
    named += [(one, texts) for one in unsaid if (texts := texts_of(one.row))]
    # what is kept for a task is kept under its id
    named += [(one, names | ids) for one, names in named[:1] if (ids := ids_of(one.row)) - names]
    answers = ((each(found), _COUNTED) for each in (_never_given, _never_said))
    tried = [*answers, *((_never_made(*each), _USED_UP) for each in named)]
    turning = await beside([partial(_may_turn, trial, next(each, None), at_once) for each, _ in tried], at_once)
    for (each, hint), may_turn in zip(tried, turning, strict=True):
        if may_turn:
            await _expect_no_turn(trial, each, hint)


async def _may_turn(trial: Trial, one: Trajectory | None, at_once: int) -> bool:
    """Whether it comes to another thing at the end than at the beginning of so many runs."""
    if one is None:
        return False

    async def again() -> Outcome:
        return await run(trial.gym, Channel(trial.gym.endpoint), one)

    first = [await again(), await again()]
    await beside([again] * (_TIMES - 4), at_once)
    return _turn([*first, await again(), await again()]).difference is not None


async def _expect_no_turn(trial: Trial, tried: Iterable[Trajectory], hint: str) -> None:
    trial.tried.comparisons += 1
    turns: list[Any] = []
    draw, seconds = Random(), 0.0
    for one in tried:
        await asyncio.sleep(seconds * draw.random())  # so that no clock that ticks once in each of them does so in step
        began = time.monotonic()
        channels = [Channel(trial.gym.endpoint) for _ in range(_TIMES)]
        outcomes = [await run(trial.gym, channels[0], one)]
        if (time.monotonic() - began) * _TIMES > _SECONDS and not turns:
            return  # the tools are slow
        outcomes += [await run(trial.gym, channel, one) for channel in channels[1:]]
        turn = _turn(outcomes)
        difference = turn.difference
        if difference is None and turns:
            continue  # somebody has given it before
        if difference is None or turns not in ([], [turn.likewise] * len(turns)):
            return
        turns.append(turn.likewise)
        seconds = time.monotonic() - began
        if _STEPS ** (1 - len(turns)) <= allowed(trial.tried.comparisons):
            trial.schedule = Schedule((one,) * (turn.after + 1))
            trial.channel.exchanges[:] = [each for channel in channels[: turn.after + 1] for each in channel.exchanges]
            raise Violation(
                f"{difference.step} answers {difference.expected!r}, as the first {turn.times}, each in a fresh session",
                f"{difference.actual!r} {turn.since}, and likewise for {len(turns) - 1} others",
                hint,
                Cause.OUTLIVING_STATE,
            )
        if turn.falls:
            for _ in range(draw.randrange(_TIMES)):  # so that no cycle of all sessions begins anew with each answer
                await run(trial.gym, Channel(trial.gym.endpoint), one)


@dataclass(frozen=True)
class _Turn:
    """How one session, run again and again, comes to another thing.

    Attributes:
        after: after how many runs.
        difference: how it is other than the first; None where it is not.
        likewise: what is the same of others that turn likewise: which runs come to the same, or each of the rewards.
        falls: whether each run changes the reward, instead of one turn for good.
    """

    after: int = _TIMES
    difference: Difference | None = None
    likewise: tuple[Any, ...] = ()
    falls: bool = False

    @property
    def times(self) -> str:
        return f"{self.after} times" if self.after > 1 and not self.falls else "time"

    @property
    def since(self) -> str:
        return f"the time no. {self.after + 1}" if self.falls else "from then on"


def _turn(outcomes: Sequence[Outcome]) -> _Turn:
    """Where it was one other thing for good, after none or a few in between, or another reward nearly each time."""
    first, last = outcomes[0], outcomes[-1]
    noise = volatile(first, outcomes[1]) & volatile(*outcomes[-2:])  # not both of them have a turn
    for told in islice(differences(first, last, noise), _PLACES):
        # what goes on changing, such as a price that follows the clock, is no turn
        lasting = (at for at in range(1, len(outcomes) - 1) if not told.hidden(varying(outcomes[at:])))
        if not told.of_time and not is_by_design(told) and (after := next(lasting, 0)):
            came = [values_at(each, told.place) for each in outcomes]
            return _Turn(after, told, (after, *map(came.index, came)))
    paid = (one for one in differences(first, last) if one.step == VERIFY and is_number(one.actual))
    rewards = tuple(one.reward for one in outcomes)
    return _Turn(len(outcomes) - 1, next(paid, None), rewards, falls=True)


def _never_given(found: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """Answers with zeros behind their first number, fewer than others try, so that nobody has given them yet."""
    graded = [one for one in found if one.answer != PLAIN_ANSWER and not one.calls and has_number(one.answer)]
    zeros = Random().sample(_ZEROS, _ANSWERS)
    for many, one in zip(zeros, graded * _ANSWERS, strict=False):
        yield replace(one, answer=with_more_zeros(one.answer, many))


def _never_said(found: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """Right answers whose words are new, and so are their rows'."""
    right = [(one, old) for one in found if not one.calls for old in islice(words_of_answer(one), 1)]
    for one, old in islice(cycle(right), _ANSWERS):
        names = new_names(frozenset([old]))
        yield replace(renamed(one, names), answer=one.answer.replace(old, names[old]))


def _never_made(trajectory: Trajectory, names: frozenset[Any]) -> Iterator[Trajectory]:
    """The trajectory with others in the place of these names, which nobody has used yet, in its calls and its row."""
    for _ in range(_ANSWERS):
        yield renamed(trajectory, new_names(names))
