"""Does an environment count refused calls, as a game counts wrong moves? It may take a part of the reward for each, or a turn.

What a refused call has written, on the other hand, no rule of a game explains.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import isclose
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.trajectories.execute import TrajectoryRun, run_each
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.generate import is_read
from gym_conformance.trajectories.outcome import Difference, Outcome, differences, said_at, varying
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.ending import NotApplicable
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial
from gym_schemas import properties_of
from gym_schemas.json_values import text

#: Runs without the refused calls: what differs among them is left out.
_PLAIN = 8

#: A number of tries or turns.
_NUMBER: Final = re.compile(r"(?<![\w.])[0-9]{1,6}(?![\w.][0-9])", re.ASCII)

#: Replies that must say a number for it to count all calls, of tools one of which only reads.
_REPLIES: Final = 3


async def expect_uncounted(trial: Trial, noisy: Trajectory) -> None:
    """Raise NotApplicable where refused calls are counted."""
    if await _counted(trial, noisy):
        raise NotApplicable("refused calls are counted, as a game counts wrong moves")


async def _counted(trial: Trial, noisy: Trajectory) -> bool:
    """Whether what differs after the refused calls of a trajectory is no more than that they were counted.

    That is so where the reward alone falls, and falls further with twice as many, or by less with any one of them; where
    numbers alone move on, by as much for a refused call of another tool, and twice as far with twice as many, or as for any
    call that is taken, if only of those that are well formed; and where replies change after many, and not after one, but
    for such numbers: there are only so many calls in an episode, and it may say how many were made. And whatever differs
    where the refusals themselves count: who has three tries is told so.
    """
    if await _say_their_count(trial, noisy):
        return True
    once, twice, *runs = await _runs(trial, [noisy, noisy.repeating(noisy.noise), *[noisy.without_noise()] * _PLAIN])
    plain, mask = runs[0], varying(runs)
    found = list(differences(plain, once, mask))
    if all(each.step == VERIFY for each in found):
        return bool(found) and (
            falls(plain.reward, once.reward, twice.reward) or await _each_costs(trial, noisy, plain, once)
        )
    if await _counts_each_call(trial, noisy, _in_replies(found)):
        return True
    others = [tool for tool in noisy.row.tools if tool.name not in {noisy.calls[at].name for at in noisy.noise}]
    replies = _in_replies(found)
    numbers = all(is_number(each.expected) and is_number(each.actual) for each in replies)
    if numbers:
        elsewhere = await _of_another_tool(trial, noisy, others)
        if elsewhere is not None and all(_moves_on(each, elsewhere, twice) for each in replies):
            return True
    each_once = _each_once(noisy)
    changed = [
        (one, of_one)
        for one, alone in zip(each_once, await _runs(trial, each_once), strict=True)
        if (of_one := _in_replies(differences(plain, alone, mask)))
    ]
    if numbers and not changed:
        return False
    return len(noisy.noise) > 1 and all([await _is_counter(trial, one, of_one, others) for one, of_one in changed])


async def _each_costs(trial: Trial, noisy: Trajectory, plain: Outcome, once: Outcome) -> bool:
    """Whether each of the refused calls alone takes as much as any other, or nothing, and less than all: they may cost so much at most."""
    alone = [outcome.reward for outcome in await _runs(trial, _each_once(noisy))]
    costs = {reward for reward in alone if reward != plain.reward}
    return len(costs) == 1 and falls(plain.reward, costs.pop(), once.reward)


async def _say_their_count(trial: Trial, noisy: Trajectory) -> bool:
    """Whether each of the refused calls, made twice in a fresh session, is answered alike but for one number, which is one more or less."""
    calls = {repr(call): call for call in (noisy.calls[at] for at in noisy.noise)}
    twice = [Trajectory(noisy.row, (call, call)) for call in calls.values()]
    replies = [outcome.calls for outcome in await _runs(trial, twice)]
    return all(one.is_refused and two.is_refused and _counts(text(one.body), text(two.body)) for one, two in replies)


def _counts(one: str, two: str) -> bool:
    steps = [abs(int(a) - int(b)) for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(two), strict=False)]
    return _NUMBER.sub("", one) == _NUMBER.sub("", two) and sorted(steps)[-1:] == [1] and sum(steps) == 1


async def _counts_each_call(trial: Trial, noisy: Trajectory, found: Sequence[Difference]) -> bool:
    """Whether what differs are numbers and times that each call moves on by as much, refused or taken, of whatever tool."""
    shifts = [_shift(each.expected, each.actual) for each in found]
    if not shifts or None in shifts:
        return False
    rollouts = known(await knowledge_of(trial)) or [noisy.without_noise()]
    [played] = await _runs(trial, [max(rollouts, key=lambda one: min(_REPLIES + 1, _changes_of_tool(one)))])
    taken = [at for at in range(len(noisy.calls)) if at not in noisy.noise]
    refused = [sum(at < taken[int(each.place[0]) - 1] for at in noisy.noise) for each in found]
    counted = [
        shift is not None and before > 0 and _goes_by(played, each.place[1:], shift / before)
        for each, shift, before in zip(found, shifts, refused, strict=True)
    ]
    # a time that one tool alone tells, such as when a journey ends, may be reckoned from the one that all tell
    moved = {(each.place[0], shift) for each, shift, counts in zip(found, shifts, counted, strict=True) if counts}
    return all(
        counts or (isinstance(each.expected, str) and (each.place[0], shift) in moved)
        for each, shift, counts in zip(found, shifts, counted, strict=True)
    )


def _changes_of_tool(rollout: Trajectory) -> int:
    return sum(one.name != two.name for one, two in pairwise(rollout.calls))


def _goes_by(played: Outcome, way: tuple[Any, ...], step: float) -> bool:
    """Whether what the replies of several tools say in one place moves on by that step with each call, a read too."""
    told = [(at, said[0]) for at in range(1, len(played.calls) + 1) if (said := said_at(played, (at, *way)))]
    names = {played.steps[at].name for at, _ in told}
    shifts = [(later - at, _shift(one, two)) for (at, one), (later, two) in pairwise(told)]
    return (
        len(told) >= _REPLIES
        and len(names) > 1
        and any(map(is_read, names))
        and all(shift is not None and isclose(shift, step * calls) for calls, shift in shifts)
    )


def _shift(one: Any, two: Any) -> float | None:
    """By how much a number, or the seconds of a time, has moved on; None where it is neither."""
    if is_number(one) and is_number(two):
        return float(two - one)
    try:
        return (_moment(two) - _moment(one)).total_seconds()
    except (TypeError, ValueError):
        return None


def _moment(said: str) -> datetime:
    moment = datetime.fromisoformat(said)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _in_replies(found: Iterable[Difference]) -> list[Difference]:
    return [each for each in found if each.step != VERIFY]


async def _is_counter(trial: Trial, alone: Trajectory, changed: Sequence[Difference], others: Sequence[Tool]) -> bool:
    """Whether what changed after one refused call are numbers that count calls, or refused ones of any tool."""
    if await _counts_each_call(trial, alone, changed):
        return True
    if not all(is_number(each.expected) and is_number(each.actual) for each in changed):
        return False
    elsewhere = await _of_another_tool(trial, alone, others)
    [twice] = await _runs(trial, [alone.repeating(alone.noise)])
    return elsewhere is not None and all(_moves_on(each, elsewhere, twice) for each in changed)


async def _runs(trial: Trial, trajectories: Iterable[Trajectory]) -> list[Outcome]:
    """Run each for a client that keeps each cookie: a refusal that sets none is another check's matter."""
    return await run_each(trial.gym, trajectories, CookieHabit.COLLECTING)


def _each_once(noisy: Trajectory) -> list[Trajectory]:
    """For each of the calls that are to be refused, the trajectory with it alone, made once, in its midst."""
    places: dict[str, list[int]] = {}
    for at in sorted(noisy.noise):
        places.setdefault(repr(noisy.calls[at]), []).append(at)
    return [noisy.without(noisy.noise - {found[len(found) // 2]}) for found in places.values()]


def falls(plain: Any, once: Any, twice: Any) -> bool:
    """Whether a reward is lower after something was done, and lower still after it was done twice as often."""
    return all(map(is_number, (plain, once, twice))) and plain > once > twice


async def _of_another_tool(trial: Trial, noisy: Trajectory, others: Sequence[Tool]) -> Outcome | None:
    """What comes of as many refused calls of the first of these tools that refuses them."""
    strange: dict[str, list[str]] = {"unexpected": []}
    for tool in others:
        wrong = Call(tool.name, dict.fromkeys(properties_of(tool.parameters) or ("unknown",), strange))
        other = noisy.without_noise()
        for at in sorted(noisy.noise):
            other = other.with_noise(at, wrong)
        rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), other, CookieHabit.COLLECTING)
        outcome = await rollout.finish()
        if all(step.is_refused for step in rollout.refusals):
            return outcome
    return None


def _moves_on(difference: Difference, elsewhere: Outcome, twice: Outcome) -> bool:
    """Whether a number is as it is after a refused call of another tool, and moves on by as much with twice as many."""
    there, further = (said_at(outcome, difference.place) for outcome in (elsewhere, twice))
    step = difference.actual - difference.expected
    return (
        there == (difference.actual,)
        and len(further) == 1
        and is_number(further[0])
        and isclose(further[0] - difference.actual, step)
    )
