"""What a session reads before another one comes and goes, and after it: in two sessions, or in one that lasts."""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, permutations

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import TrajectoryRun, run
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.outcome import Outcome, Place
from gym_conformance.trajectories.renaming import names_in, new_names, renamed
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, resolve
from gym_conformance.trials.suspicions import Anyway, Between, Maker, Told, Twice
from gym_conformance.trials.trial import Trial
from gym_schemas import scalars

#: Sessions that come and go between two reads of another, one after the other.
_BETWEEN = 2

#: What a session reads where it has come to.
_READS = 6

#: Pairs of sessions of which one asks for what the other was given.
_PAIRS = 4


def around(trial: Trial, probe: Trajectory, found: Sequence[Trajectory], differs: frozenset[Place]) -> Iterator[Maker]:
    """A probe in sessions before and after others, and in one that lasts while others come and go."""
    anyway = Anyway(differs)
    for writes in found:
        yield partial(Between, trial, _in_two(trial, probe), anyway, partial(anew, writes), _told_of(probe, writes))
    yield from steady(trial, replace(probe, calls=()), probe.calls, found[:_BETWEEN])


def _in_two(trial: Trial, probe: Trajectory) -> Twice:
    """A probe in two sessions, one after the other."""

    async def in_two(channel: Channel, between: Callable[[], Awaitable[object]]) -> tuple[Outcome, Outcome]:
        before = await run(trial.gym, channel, probe)
        await between()
        return before, await run(trial.gym, channel, probe)

    return in_two


def _told_of(probe: Trajectory, writes: Trajectory) -> Told:
    return Told(
        Schedule((probe, writes, probe)), ", as before another session came and went", " in a fresh session after it"
    )


def asking_for_others(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a session on one row is answered where it asks for what another row's session was given, around that one."""
    for one, other in islice(permutations(found, 2), _PAIRS):
        asked = {call.name: call for call in other.calls}
        words = json.dumps(one.row.data, ensure_ascii=False)
        strange = [Call(call.name, resolve(call.arguments, [])) for call in reversed(asked.values())]
        told = [call for call in strange if any(str(value) not in words for value, _ in scalars(call.arguments))]
        if told and one.row is not other.row:
            probe = Trajectory(one.row, tuple(told[:_READS]))  # last first: they lead to less
            told_of_it = _told_of(probe, other)
            yield partial(Between, trial, _in_two(trial, probe), Anyway(), partial(tuple, [other]), told_of_it)


def where_it_ends(trial: Trial, knowledge: Knowledge, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a session reads where it has come to, while another goes the same way, and while others come and go."""
    for lasting_one in found:
        asked = [call for call in lasting_one.calls if knowledge.is_reading(call)]
        asked += [call for call in bare_reads(lasting_one.row) if call not in asked]
        others = [] if lasting_one is found[0] else [found[0]]
        if asked:
            yield from steady(trial, lasting_one, asked[-_READS:], [lasting_one, *others])


def steady(
    trial: Trial, lasting_one: Trajectory, reads: Sequence[Call], between: Sequence[Trajectory]
) -> Iterator[Maker]:
    """A session that does something, and then reads twice, while another comes and goes in between.

    What is never the same in two sessions, such as a list that grows with each of them, is the same within one.
    """
    done = len(lasting_one.calls)
    whole = replace(lasting_one, calls=(*lasting_one.calls, *reads, *reads))
    before = (0,) * (1 + done + len(reads))

    async def in_one(channel: Channel, another: Callable[[], Awaitable[object]]) -> tuple[Outcome, Outcome]:
        rollout = TrajectoryRun(trial.gym, channel, whole)
        for _step in before:
            await rollout.step()
        await another()
        calls = (await rollout.finish()).calls[done:]
        await rollout.session.close()
        return Outcome(calls[: len(reads)]), Outcome(calls[len(reads) :])

    anyway = Anyway()
    for writes in between:
        told = Told(
            Schedule((whole, writes), before + (1,) * writes.steps),
            " again, as where no other session comes and goes in between",
            " after another session",
        )
        yield partial(Between, trial, in_one, anyway, partial(anew, writes), told)


def anew(trajectory: Trajectory) -> tuple[Trajectory, ...]:
    """The trajectory with new names that were never used, if it has names, and as it is.

    Some names are the world's own, such as a flight's, and nothing is done under others.
    """
    names = names_in(trajectory)
    return (*([renamed(trajectory, new_names(names[-1]))] if names else ()), trajectory)
