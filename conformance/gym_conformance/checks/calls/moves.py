"""Does an environment count refused calls, as a game counts wrong moves? It may take a part of the reward for each, or a turn.

Or it may list them, as a log of all that was tried. What a refused call has written besides, no rule of a game explains.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, islice
from math import isclose
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.findings import Cause
from gym_conformance.grouping import first_of_each, grouped
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.trajectories.disturbed import known_disturbed
from gym_conformance.trajectories.execute import TrajectoryRun, run, run_each
from gym_conformance.trajectories.generate import is_reading
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.listed_refusals import beside_lists
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.outcome import (
    Difference,
    Outcome,
    Place,
    differences,
    masked,
    values_at,
    varying,
    volatile,
)
from gym_conformance.trajectories.trajectory import STRANGE, Trajectory, is_linked, passed
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial
from gym_schemas import boundary_values, properties_of
from gym_schemas.json_values import text

#: Runs without the refused calls: what differs among them is left out.
_PLAIN = 8

#: Further runs with them, for the same reason.
_AGAIN = 2

#: A number of tries or turns.
_NUMBER: Final = re.compile(r"(?<![\w.])[0-9]{1,6}(?![\w.][0-9])", re.ASCII)

#: What a value is called that tells one thing from the next. A database's sequence goes on after a failed insert, too.
_ID: Final = re.compile(r"(^|_)(id|no|number|seq|serial)$|[a-z]I[dD]$")

#: Reads that are tried in the place of a refused call.
_READS: Final = 3

#: Refused calls of another tool that are tried in its place.
_OTHERS: Final = 8

#: A call that is made so often shows whether every few calls are answered otherwise; so many calls are.
_TIMES, _TIMED = 12, 3

#: So often an answer comes again after another one where each call is a turn.
_RETURNS: Final = 2


async def expect_uncounted(trial: Trial, noisy: Trajectory) -> None:
    """Raise NotApplicable where refused calls are counted."""
    if await _counted(trial, noisy):
        raise NotApplicable("refused calls are counted, as a game counts wrong moves")


async def expect_own_cookie(trial: Trial, solo: Solo, noisy: Trajectory) -> None:
    """Require of the refusals of a trajectory, after which something differs, that they leave the client in its session.

    Raises:
        Violation: they set another cookie: nothing differs for a client that keeps the one of the seed.
    """
    channel = Channel(trial.gym.endpoint)
    if not await solo.difference(await run(trial.gym, channel, noisy, habit=CookieHabit.KEEPING)):
        raise Violation(
            "the cookie of its own session on a refusal",
            "one of another session: nothing differs for a client that keeps the seed's",
            "A refusal opens a new session and sets its cookie, so simple_agent, which replaces its cookies with those of each "
            "reply, goes on in that one. Set the cookie that came with the request again.",
            Cause.LOST_SESSION,
        )


async def _counted(trial: Trial, noisy: Trajectory) -> bool:
    """Whether what differs after the refused calls of a trajectory is no more than that they were counted.

    That is so where the reward alone falls, and falls further with twice as many, or by less with any one of them, or
    as far with reads in their place; where numbers alone move on, by as much for a refused call of another tool, and
    twice as far with twice as many; or where no other tool refuses any, for another refused call, and not for one
    that is taken; where replies change as though a read had been made in its place, since each call is a turn, if
    only of those that are well formed; and where they change after many, and not after one: there are only so many
    calls in an episode. And whatever differs where the refusals themselves count: who has three tries is told so; or where
    every few calls are answered otherwise, such as those that fail on purpose. Nor does it matter which numbers things
    get, if nothing else differs; nor what comes of calls that are told of the count; nor what a list says of the refused
    calls, as a log does.
    """
    if await _say_their_count(trial, noisy) or await takes_turns(trial, noisy):
        return True
    if await _is_no_more_than_counted(trial, noisy):
        return True
    settled = await _settled(trial, noisy)
    return settled is not None and await _is_no_more_than_counted(trial, settled)


async def _settled(trial: Trial, noisy: Trajectory) -> Trajectory | None:
    """The same with the arguments as they are without the refused calls where these change what a call takes from a reply; or None."""
    own = [at for at in range(len(noisy.calls)) if at not in noisy.noise]
    if not any(is_linked(noisy.calls[at].arguments) for at in own):
        return None
    rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), noisy.without_noise(), CookieHabit.COLLECTING)
    [disturbed] = await _runs(trial, [noisy])
    moved = volatile(await rollout.finish(), disturbed)
    calls = list(noisy.calls)
    for at, call, made in zip(own, rollout.trajectory.calls, rollout.made, strict=True):
        taken = [(number + 1, "body", *way) for number, way in passed(call.arguments)]
        if any(masked(way, moved) or any(place[: len(way)] == way for place in moved) for way in taken):
            calls[at] = made
    return replace(noisy, calls=tuple(calls)) if calls != list(noisy.calls) else None


async def _is_no_more_than_counted(trial: Trial, noisy: Trajectory) -> bool:
    """The same of one trajectory, whose refusals do not say their count."""
    once, twice, *runs = await _runs(trial, [noisy, noisy.repeating(noisy.noise), *[noisy.without_noise()] * _PLAIN])
    plain, mask = runs[0], varying(runs)
    found, listed = beside_lists(noisy, plain, once, mask)
    if listed and not found:
        return True
    if found and _numbered_otherwise(found, noisy.without_noise()):
        return True
    if all(each.step == VERIFY for each in found):
        return bool(found) and (
            falls(plain.reward, once.reward, twice.reward)
            or await _each_costs(trial, noisy, plain, once)
            or not all(await _unlike_reads(trial, noisy, once, mask))
        )
    replies = _in_replies(found)
    numbers = all(is_number(each.expected) and is_number(each.actual) for each in replies)
    if numbers and await _all_move_on(trial, noisy, replies, twice):
        return True
    each_once = _each_once(noisy)
    changed = [
        (one, alone, of_one)
        for one, alone in zip(each_once, await _runs(trial, each_once), strict=True)
        if (of_one := _in_replies(beside_lists(one, plain, alone, mask)[0]))
    ]
    if not changed:
        return not numbers and len(noisy.noise) > 1
    return all([await _is_counter(trial, *each, mask) for each in changed])


async def takes_turns(trial: Trial, noisy: Trajectory) -> bool:
    """Whether a call that is made again and again is refused, or in other words, only now and then: each call is a turn.

    One that is taken, refused, and answered otherwise once the episode is over shows nothing. Nor do the refused calls
    themselves: what one has left behind, the next may take back.
    """
    plain = noisy.without_noise()
    first = {repr(call): at for at, call in reversed(list(enumerate(plain.calls)))}
    again = [plain.chosen([*range(at), *[at] * _TIMES]) for at in sorted(first.values())[:_TIMED]]
    for outcome in await _runs(trial, again):
        answers = (text(step.body) if step.is_refused else "" for step in outcome.calls[-_TIMES:])
        kinds = [kind for kind, _ in groupby(answers)]
        if len(kinds) - len(set(kinds)) >= _RETURNS:
            return True
    return False


def _numbered_otherwise(found: Iterable[Difference], plain: Trajectory) -> bool:
    """Whether all that differs are numbers within ids: what is named so, or is passed to a later call."""
    names = {way[-1] for call in plain.calls for _, way in passed(call.arguments) if way}
    return all(
        any(isinstance(key, str) and (key in names or _ID.search(key)) for key in each.place[2:])
        and _NUMBER.sub("", text(each.expected)) == _NUMBER.sub("", text(each.actual))
        for each in found
    )


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


def _in_replies(found: Iterable[Difference]) -> list[Difference]:
    """What differs in replies, but for the times that they tell."""
    return [each for each in found if each.step != VERIFY and not each.of_time]


async def _is_counter(
    trial: Trial, once: Trajectory, outcome: Outcome, changed: Sequence[Difference], mask: frozenset[Place]
) -> bool:
    """Whether what changed after one refused call is what a read changes, or are numbers that count refused ones of any tool."""
    if not all(map(_in_replies, await _unlike_reads(trial, once, outcome, mask))):
        return True
    if not all(is_number(each.expected) and is_number(each.actual) for each in changed):
        return False
    [twice] = await _runs(trial, [once.repeating(once.noise)])
    return await _all_move_on(trial, once, changed, twice)


async def _all_move_on(trial: Trial, noisy: Trajectory, changed: Sequence[Difference], twice: Outcome) -> bool:
    """Whether all these numbers move on with any refused call, of whatever tool refuses one, and with no other."""
    own = {noisy.calls[at].name for at in noisy.noise}
    elsewhere = await _of_other_tools(trial, noisy, [tool for tool in noisy.row.tools if tool.name not in own])
    if not elsewhere and not any([await _moved_by_a_taken_call(trial, noisy, own, each) for each in changed]):
        elsewhere = await _of_other_tools(trial, noisy, [tool for tool in noisy.row.tools if tool.name in own])
    return any(all(_moves_on(each, other, twice) for each in changed) for other in elsewhere)


async def _moved_by_a_taken_call(trial: Trial, noisy: Trajectory, names: set[str], number: Difference) -> bool:
    """Whether a number that a reply says is another one after a recorded call of these tools, or that cannot be tried."""
    at, *way = number.place
    read = noisy.without_noise().calls[int(at) - 1]
    recorded = [call for one in known(await knowledge_of(trial)) if one.row is noisy.row for call in one.calls]
    taken = next((call for call in recorded if call.name in names and not is_linked(call.arguments)), None)
    if taken is None or is_linked(read.arguments):
        return True
    plain, after = await _runs(trial, [Trajectory(noisy.row, (read,)), Trajectory(noisy.row, (taken, read))])
    return after.calls[0].is_refused or values_at(plain, (1, *way)) != values_at(after, (2, *way))


async def _unlike_reads(
    trial: Trial, noisy: Trajectory, refused: Outcome, mask: frozenset[Place]
) -> list[list[Difference]]:
    """What differs where a read is made, and taken, instead of each refused call; nothing, if each call is a turn.

    That is told for each of a few reads. What turns bring to light may have an id that is another one in each run, and
    is not there without them.
    """
    mask |= varying([refused, *await _runs(trial, [noisy] * _AGAIN)])
    recorded = [call for one in known(await knowledge_of(trial)) if one.row is noisy.row for call in one.calls]
    reads = [call for call in recorded if is_reading(call) and not is_linked(call.arguments)]
    found = []
    for read in list(first_of_each(repr, [*bare_reads(noisy.row), *reads]).values())[:_READS]:
        rollout = await _with_another(trial, noisy, read)
        if not any(step.is_refused for step in rollout.refusals):
            found.append([each for each in differences(rollout.outcome, refused, mask) if not each.of_time])
    return found


async def _with_another(trial: Trial, noisy: Trajectory, call: Call) -> TrajectoryRun:
    """A run that makes another call in the place of each refused one."""
    calls = tuple(call if at in noisy.noise else own for at, own in enumerate(noisy.calls))
    instead = replace(noisy, calls=calls)
    rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), instead, CookieHabit.COLLECTING)
    await rollout.finish()
    return rollout


async def _runs(trial: Trial, trajectories: Iterable[Trajectory]) -> list[Outcome]:
    """Run each for a client that keeps each cookie: a refusal that sets none is another check's matter."""
    return await run_each(trial.gym, trajectories, CookieHabit.COLLECTING)


def _each_once(noisy: Trajectory) -> list[Trajectory]:
    """For each of the calls that are to be refused, the trajectory with it alone, made once, in its midst."""
    places = grouped(lambda at: repr(noisy.calls[at]), sorted(noisy.noise))
    return [noisy.without(noisy.noise - {found[len(found) // 2]}) for found in places.values()]


def falls(plain: Any, once: Any, twice: Any) -> bool:
    """Whether a reward is lower after something was done, and lower still after it was done twice as often."""
    return all(map(is_number, (plain, once, twice))) and plain > once > twice


async def _of_other_tools(trial: Trial, noisy: Trajectory, others: Sequence[Tool]) -> list[Outcome]:
    """What comes of as many refused calls of each of these tools: malformed ones, and some that the state refuses."""
    found = []
    disturbed = [one for each in known_disturbed(await knowledge_of(trial)) for one in each.trajectories]
    untimely = [one.calls[at] for one in disturbed if one.row is noisy.row for at in sorted(one.noise)]
    for tool in others:
        wrong = Call(tool.name, dict.fromkeys(properties_of(tool.parameters) or ("unknown",), STRANGE))
        bounds = (Call(tool.name, value) for value in boundary_values(tool.parameters) if isinstance(value, dict))
        calls = [wrong, *(call for call in untimely if call.name == tool.name), *islice(bounds, _OTHERS)]
        alone = first_of_each(repr, (call for call in calls if not is_linked(call.arguments)))
        for call in islice(alone.values(), _OTHERS):
            rollout = await _with_another(trial, noisy, call)
            if all(step.is_refused for step in rollout.refusals):
                found.append(rollout.outcome)
    return found


def _moves_on(difference: Difference, elsewhere: Outcome, twice: Outcome) -> bool:
    """Whether a number is as it is after a refused call of another tool, and moves on by as much with twice as many."""
    there, further = (values_at(outcome, difference.place) for outcome in (elsewhere, twice))
    step = difference.actual - difference.expected
    return (
        there == (difference.actual,)
        and len(further) == 1
        and is_number(further[0])
        and isclose(further[0] - difference.actual, step)
    )
