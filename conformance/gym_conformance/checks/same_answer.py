"""What one and the same answer earns, again and again: a count of answers that all sessions share shows in that alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import comb, prod
from typing import Final

from gym_conformance.checks.ending import Violation
from gym_conformance.checks.trial import Trial
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.evidence import allowed
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.renaming import has_number, with_more_zeros
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Schedule, Trajectory

#: So often an answer is given, and so many answers are, none of which was given before.
TIMES: Final = 17
_ANSWERS: Final = 8

_COUNTED: Final = (
    "Answers are counted or remembered over all sessions, such as for a bonus for new ones: a score must depend on the row "
    "and the response alone."
)


async def expect_earns_the_same(trial: Trial, found: Sequence[Trajectory]) -> None:
    """Give the same answer 17 times, each time in a fresh session.

    Where it earns one thing so many times, and then another for good, so must other answers after as many times, until
    no order of noise explains it.

    Raises:
        Violation: they do.
    """
    trial.tried.comparisons += 1
    changes: list[int] = []
    for answered in _never_given(found):
        rewards = [(await run(trial.gym, Channel(trial.gym.endpoint), answered)).reward for _ in range(TIMES)]
        same = next((at for at, reward in enumerate(rewards) if reward != rewards[0]), TIMES)
        if same == TIMES or len(set(map(str, rewards[same:]))) > 1 or changes not in ([], [same] * len(changes)):
            return
        changes.append(same)
        if prod(1 / comb(TIMES, each) for each in changes) <= allowed(trial.tried.comparisons):
            trial.schedule = Schedule((answered,) * (same + 1))
            raise Violation(
                f"a reward of {rewards[0]}, as the first {same} times that the answer was given, each in a fresh session",
                f"{rewards[-1]} from then on, for {len(changes)} answers alike",
                _COUNTED,
                Cause.OUTLIVING_STATE,
            )


def _never_given(found: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """Answers with zeros behind their first number, so that nobody has given them yet."""
    graded = [one for one in found if one.answer != PLAIN_ANSWER and not one.calls and has_number(one.answer)]
    for at, one in zip(range(_ANSWERS), graded * _ANSWERS, strict=False):
        yield replace(one, answer=with_more_zeros(one.answer, at + 2))
