"""Whether a session shows what it has done itself: in a read that it has made before, and after calls made at once."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from typing import Final, TypeVar

from gym_conformance.checks.calls.calls_at_once import AtOnce, expect_none_lost
from gym_conformance.checks.calls.remembered_reads import ROUNDS, AroundWrite, expect_fresh
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.grouping import first_of_each
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.other_values import with_another_text, with_other_numbers
from gym_conformance.trajectories.renaming import names_in, new_names, renamed
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.trial import Trial
from gym_schemas import scalars

#: Writes, calls that may come before one, and reads.
_WRITES, _BEFORE, _READS = 6, 12, 4

#: Calls of one turn that are made at once: as many as `haystack_agent` makes.
_AT_ONCE: Final = 4

#: Seconds after which no further ones are looked at.
_SECONDS: Final = 8.0

#: Sessions that are looked at beside each other whose calls are made at once.
_BESIDE: Final = 2


def _writes(knowledge: Knowledge) -> Iterator[tuple[Trajectory, int, list[int]]]:
    """Known trajectories, each with the numbers of a tool's first call that writes, and of reads, which come after all else."""
    seen = set[str]()
    for trajectory in known(knowledge):
        reading = {tool.name for tool in trajectory.row.tools if knowledge.may_read(tool)}
        found = [*trajectory.calls[::-1], *bare_reads(trajectory.row)]
        reads = list(first_of_each(lambda call: call.name, (call for call in found if call.name in reading)).values())[
            :_READS
        ]
        whole = replace(trajectory, calls=(*trajectory.calls, *reads))
        numbers = list(range(len(trajectory.calls), len(whole.calls)))
        for at, call in enumerate(trajectory.calls[:_BEFORE]) if reads else ():
            if call.name not in reading | seen:
                seen.add(call.name)
                yield whole, at, numbers


def _others(knowledge: Knowledge, whole: Trajectory, at: int) -> list[Call]:
    """Calls of the same tool with other arguments: the trajectory's later ones, ones with other numbers, or known ones."""
    call = whole.calls[at]
    later = [each for each in whole.calls[at + 1 :] if each.name == call.name and each.arguments != call.arguments]
    if later:
        return later
    numbers = with_other_numbers(Trajectory(whole.row, (call,)))
    known_ones = (Call(call.name, each) for each in knowledge.meaningful.get(call.name, ()) if each != call.arguments)
    return list(numbers.calls if numbers else known_ones)


def _again(knowledge: Knowledge, whole: Trajectory, at: int, reads: Sequence[int]) -> Iterator[Call]:
    """A write that may follow the first one of the same tool: another one of those, one with another text, the same."""
    said = {value for read in reads for value, _ in scalars(whole.calls[read].arguments) if isinstance(value, str)}
    call = whole.calls[at]
    yield from islice(with_another_text(call, whole.row.parameters_of(call.name), said), 1)
    yield from (_others(knowledge, whole, at) or [call])[:1]


def _around_writes(knowledge: Knowledge) -> Iterator[AroundWrite]:
    """Reads around a tool's first write, and around another that follows it."""
    for whole, at, reads in islice(_writes(knowledge), _WRITES):
        again = list(_again(knowledge, whole, at, reads))
        longer = replace(whole, calls=(*whole.calls, *again))
        yield AroundWrite(longer, tuple(range(at)), at, tuple(reads))
        for number in range(len(whole.calls), len(longer.calls)):
            yield AroundWrite(longer, tuple(range(at + 1)), number, tuple(reads))


def _made_at_once(knowledge: Knowledge) -> Iterator[AtOnce]:
    """A tool's first write several times at once, others of it, and the same with names that are new.

    After the reads it is made once more: only its own reply may say how often it was made. Only on rows that let the policy make several calls in one turn.
    """
    allowed = (each for each in _writes(knowledge) if each[0].row.allows_calls_at_once)
    for whole, at, reads in islice(allowed, _WRITES):
        call = whole.calls[at]
        alone = Trajectory(whole.row, (call,))
        novel = names_in(alone)[-1:]
        named = [renamed(alone, new_names(names)).calls[0] for names in novel * (_AT_ONCE - 1)]
        several = [[call] * (_AT_ONCE - 1), _others(knowledge, whole, at)[: _AT_ONCE - 1], named]
        for more in filter(None, several):
            longer = replace(whole, calls=(*whole.calls, *more, call))
            *added, again = range(len(whole.calls), len(longer.calls))
            yield AtOnce(longer.chosen([*range(at + 1), *added, *reads, again]), at, 1 + len(more))


S = TypeVar("S", AroundWrite, AtOnce)


async def _suspected(trial: Trial, subjects: Sequence[S], at_once: int) -> list[S]:
    """What is to be looked into, so many beside each other; of the first ones, and of others for as long as there is time."""
    found, end = list[S](), time.monotonic() + _SECONDS
    for at in range(0, len(subjects), at_once):
        if at and time.monotonic() > end:
            break
        works = [partial(one.suspected, trial) for one in subjects[at : at + at_once]]
        found += [each for several in await beside(works, at_once) for each in several]
    return found


async def expect_own_writes(trial: Trial, knowledge: Knowledge) -> None:
    """Require that a session shows each of its writes, whatever it has read before, and several that were made at once."""
    for each in await _suspected(trial, list(_around_writes(knowledge)), knowledge.several):
        await expect_fresh(trial, each)
    # few beside each other: where all workers are busy, calls that are sent at once are made one after the other
    for one in await _suspected(trial, list(_made_at_once(knowledge)), min(_BESIDE, knowledge.several)):
        await expect_none_lost(trial, one)


async def found_again(trial: Trial, schedule: Schedule) -> bool:
    """Do what `--gym-replay` does with an example of these two, and say whether it is one."""
    [trajectory] = schedule.trajectories
    calls = trajectory.calls
    if schedule.concurrent:
        runs = [(name, len(list(several))) for name, several in groupby(call.name for call in calls)]
        last = max(at for at, (_, length) in enumerate(runs) if length > 1)
        await expect_none_lost(trial, AtOnce(trajectory, sum(length for _, length in runs[:last]), runs[last][1]))
        return True
    before = len(calls) - ROUNDS - 2
    if before < 0 or not all(call == calls[before] for call in calls[-ROUNDS:]):
        return False
    await expect_fresh(trial, AroundWrite(trajectory, tuple(range(before)), before + 1, (before,), ROUNDS))
    return True
