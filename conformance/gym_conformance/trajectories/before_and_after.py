"""A probe before other sessions and after them: what an earlier session leaves shows, also where it shows only once.

The probes are reads, and a verify. They are run many times on the untouched server, before anything of it is known;
then recorded rollouts are run, each in a session of its own; then the probes again. What was the same in all runs
before, and is the same in all runs after, and is not the same before and after, was changed by a session in between:
among so many runs no other order of theirs has this form, and chance is what `evidence` allows.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.statuses import is_error
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel, NoRoom, PathHangs
from gym_conformance.session.exchange import Exchange, reply_of
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.first import bare_reads, made_up, reading_again
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import Knowledge, is_read, writes_in
from gym_conformance.trajectories.learn import recorded_rows
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, varying
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_linked

#: So many runs before, and after: one order of 1 in C(34, 17) = 2.3 billion.
RUNS: Final = 17

#: Runs of a probe at once: nothing that it does is written.
_AT_ONCE = 16

#: Runs after, one by one, that take as long as the fastest before did; they count where they take at most so many times as
#: long as the slowest: a run of many steps never takes exactly as long as another one.
_PACED, _NEARLY = 5, 1.25

#: Seconds in which what changes by itself may show that it does: twice as long as what came in between took, within these.
_LEAST_PAUSE, _LONGEST_PAUSE = 0.3, 2.0

#: Errors that are kept of the runs before.
_FAILURES = 8

#: Rows that are probed.
_ROWS = 3

#: Reads of a probe: the row's own, those without arguments, and ones that other rows' rollouts made, since what another
#: session was given is not found; and more of tools that are not among them.
_READS, _BARE, _STRANGE, _MORE = 4, 4, 2, 4

#: Names of what sound servers share: ids that count on over all sessions, what says that it was in a cache, clocks.
_SHARED = re.compile(
    r"cache|uptime|time|date|elapsed|took|since|latency|version|sessions|clients|connections|load|(^|_)(id|ids|number|no|seq|sequence|serial|counter|requests?)$|Id$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ChangedAnswer:
    """What a probe was answered before and after other sessions: the difference, what was run, and the requests of it."""

    difference: Difference
    schedule: Schedule
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True)
class Played:
    """What came of a trajectory on the untouched server, and how many seconds its answers were waited for."""

    trajectory: Trajectory
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class FirstLook:
    """What an untouched server answered, and what changed when other sessions had come and gone.

    Attributes:
        probes: what was run before and after.
        before: the outcomes of each probe, of all its runs.
        played: what came of the first recorded rollouts on it; of what is made up where none is recorded.
        change: what changed permanently; None if nothing did.
        failures: the first errors of the untouched server: it may name a missing dependency only once.
        crowded: what it would have needed, where so many outcomes found no room beside each other; '' where they did.
    """

    probes: tuple[Trajectory, ...] = ()
    before: tuple[tuple[Outcome, ...], ...] = ()
    played: tuple[Played, ...] = ()
    change: ChangedAnswer | None = None
    failures: tuple[Exchange, ...] = ()
    crowded: str = ""


def reads_on(gym: Gym, row: Row) -> Trajectory:
    """Reads on a row: the recorded ones, ones of other rows, and the tools that take no arguments."""
    reads = _recorded_reads(gym, row)
    others = (call for other in gym.recorded if other is not row for call in _recorded_reads(gym, other))
    own = {tool.name for tool in row.tools}
    strange = [call for call in others if call.name in own and call not in reads]
    named = {call.name for call in reads}
    bare = [call for call in bare_reads(row)[:_BARE] if call.name not in named]
    chosen = [*reads[:_READS], *bare, *strange[:_STRANGE]]
    called = {call.name for call in chosen}
    more = first_of_each(lambda call: call.name, (call for call in (*reads, *strange) if call.name not in called))
    return Trajectory(row, (*chosen, *list(more.values())[:_MORE]))


def _recorded_reads(gym: Gym, row: Row) -> list[Call]:
    """Those of the row's first recorded rollout that need no earlier reply, those that follow a write first: they show it."""
    recorded = [call for rollout in gym.recorded.get(row, ())[:1] for call in followed(row, rollout).calls]
    wrote = next(iter(writes_in(recorded)), len(recorded))
    reads = [call for call in (*recorded[wrote:], *recorded[:wrote]) if is_read(call.name)]
    return [call for call in reads if not is_linked(call.arguments)]


def writing(gym: Gym, row: Row) -> Trajectory:
    """What may leave something behind: the row's first recorded rollout, or calls that are made up."""
    recorded = gym.recorded.get(row, ())
    return followed(row, recorded[0]) if recorded else made_up(Knowledge((row,)), row)


async def look(gym: Gym) -> FirstLook:
    """Take a first look; where the server does not answer, none, which other checks will find."""
    try:
        with gym.endpoint.forgiving():
            return await _look(gym)
    except (ServerFault, PathHangs):
        return FirstLook()
    except NoRoom as crowded:
        return FirstLook(crowded=str(crowded))


async def _look(gym: Gym) -> FirstLook:
    rows = (recorded_rows(gym) or gym.rows or (gym.row,))[:_ROWS]
    probes = tuple(reads_on(gym, row) for row in rows)
    writes = tuple(writing(gym, row) for row in rows)
    return await changed(gym, probes, writes)


async def changed(gym: Gym, probes: tuple[Trajectory, ...], writes: Sequence[Trajectory]) -> FirstLook:
    """Run the probes, then the writes, then the probes again, and say what changed."""
    record = Channel(gym.endpoint)
    failures: list[Exchange] = []
    # Each probe has all its runs before another row is seeded.
    before = [[*await run_times(gym, one, RUNS - 1, failures), await run(gym, record, one)] for one in probes]
    played = tuple([await play(gym, record, one) for one in writes])
    for one in writes:
        if one.calls:  # a read after writes may leave behind what a cache has kept of it
            await run(gym, record, reading_again(one))
    unchanged = FirstLook(probes, tuple(map(tuple, before)), played, failures=tuple(failures))
    for one, runs in zip(probes, before, strict=True):
        channel = Channel(gym.endpoint)
        after = [await run(gym, channel, one)]
        if next(lasting(runs, after), None) is None:
            continue
        after += await run_times(gym, one, RUNS - 1)
        if difference := next(await _lasting_as_fast(gym, one, runs, after), None):
            schedule = Schedule((one, *writes, one))
            change = ChangedAnswer(difference, schedule, (*record.exchanges, *channel.exchanges))
            return replace(unchanged, change=change)
    return unchanged


async def play(gym: Gym, channel: Channel, one: Trajectory) -> Played:
    """Run it alone, and say how long that took."""
    before = len(channel.exchanges)
    outcome = await run(gym, channel, one)
    return Played(one, outcome, sum(reply_of(each).elapsed for each in channel.exchanges[before:]))


async def changed_since(gym: Gym, look: FirstLook) -> ChangedAnswer | None:
    """What has changed since the first look, and is no number: those may count minutes."""
    for one, before in zip(look.probes, look.before, strict=True):
        channel = Channel(gym.endpoint)
        after = [await run(gym, channel, one)]
        if next(_no_numbers(lasting(before, after)), None):
            after += await run_times(gym, one, RUNS - 1)
            if difference := next(_no_numbers(await _lasting_as_fast(gym, one, before, after)), None):
                return ChangedAnswer(difference, Schedule((one,)), tuple(channel.exchanges))
    return None


async def _lasting_as_fast(
    gym: Gym, one: Trajectory, before: Sequence[Outcome], after: Sequence[Outcome]
) -> Iterator[Difference]:
    """What lasts where sessions take as long as they did before: one that is slower may earn less for it.

    Where none is as fast any more, nothing can be compared. Nor does what changes without a session in between, such as a
    price: all of many runs at once may see the same one, and all of the next ones another.
    """
    if next(lasting(before, after), None) is None:
        return iter(())
    between = min((one.began[0] for one in after), default=0.0) - max((one.began[-1] for one in before), default=0.0)
    await asyncio.sleep(min(max(_LEAST_PAUSE, 2 * between), _LONGEST_PAUSE))
    pace = min(before, key=lambda outcome: outcome.seconds).began
    slowest = _NEARLY * max(outcome.seconds for outcome in before)
    paced = [await run(gym, Channel(gym.endpoint), one, pace) for _ in range(_PACED)]
    as_fast = [outcome for outcome in paced if outcome.seconds <= slowest]
    return lasting(before, [*after, *as_fast]) if as_fast else iter(())


def _no_numbers(found: Iterator[Difference]) -> Iterator[Difference]:
    return (one for one in found if not all(isinstance(each, int | float) for each in (one.expected, one.actual)))


async def run_times(
    gym: Gym, trajectory: Trajectory, times: int, failures: list[Exchange] | None = None
) -> list[Outcome]:
    """Run it so many times, a few at once, and put the first errors into `failures`."""

    async def once() -> Outcome:
        channel = Channel(gym.endpoint)
        outcome = await run(gym, channel, trajectory)
        if failures is not None and len(failures) < _FAILURES:
            failures.extend(one for one in channel.exchanges if one.reply and is_error(one.reply.status))
        return outcome

    return await beside([once] * times, _AT_ONCE)


def lasting(before: Sequence[Outcome], after: Sequence[Outcome]) -> Iterator[Difference]:
    """Where all runs before are alike, and all runs after, and the two differ; no times, and nothing of a cache."""
    for difference in differences(before[0], after[0], varying(before) | varying(after)):
        if not difference.of_time and not by_design(difference.place):
            yield difference


def by_design(place: Place) -> bool:
    """Whether a place in a reply is named like something that sound servers share: running ids, caches, clocks."""
    return any(_SHARED.search(str(key)) for key in place)
