"""Probes before and after other sessions: they show what an earlier session leaves behind, even if it shows only once.

The probes are reads and a verify. They run many times on the untouched server, before anything about it is known; then
recorded rollouts run, each in its own session; then the probes run again. Whatever was the same in all runs before, and
is the same in all runs after, but differs between the two, was changed by a session in between: of all the orders of
that many runs, only one looks like this, and chance is what `evidence` allows.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import is_error
from gym_conformance.contract.verify_reply import is_number, rounded
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.first_sessions import noted
from gym_conformance.scouting.learn import recorded_rows
from gym_conformance.scouting.words import NOTHING_ASKED, KnownWords, known_arguments
from gym_conformance.session.channel import Channel, NoRoom, PathHangs
from gym_conformance.session.exchange import Exchange, reply_of
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import Knowledge, is_reading, may_read, writes_in
from gym_conformance.trajectories.known import reading_again
from gym_conformance.trajectories.languages import lists_of
from gym_conformance.trajectories.made_up import bare_reads, made_up
from gym_conformance.trajectories.names_of_ids import ends_in_id
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, varying
from gym_conformance.trajectories.trajectory import FirstSession, Schedule, Trajectory, is_linked

#: Runs before, and as many after: one order in C(34, 17) = 2.3 billion.
RUNS: Final = 17

#: Concurrent runs of a probe, which writes nothing.
_AT_ONCE = 16

#: Runs after, one by one, paced to take as long as the fastest run before. They count if they take at most this many
#: times as long as three in four of those: a run of many steps never takes exactly as long as another one.
_PACED, _NEARLY = 5, 1.05

#: Bounds, in seconds, of a pause in which what changes by itself may do so: twice as long as what came in between.
_LEAST_PAUSE, _LONGEST_PAUSE = 0.3, 2.0

#: Seconds of waiting for replies up to which a recorded rollout is run as often as a probe.
_BRIEF: Final = 2.0

#: Errors kept from the runs before.
_FAILURES = 8

#: Rows that are probed.
_ROWS = 3

#: Reads of a probe: the row's own, those without arguments, those recorded on other rows (another session's data must
#: not be found), and more of tools that are not among them.
_READS, _BARE, _STRANGE, _MORE = 4, 4, 2, 4

#: Calls of a probe that were found by asking, if none is recorded.
_KNOWN = 6

#: Names of what sound servers share between sessions, but for ids: clocks and running numbers, and what is cached.
_SHARED = re.compile(
    r"uptime|time|date|elapsed|took|since|latency|version|sessions|clients|connections|load|(^|_)(ids|number|no|seq|sequence|serial|counter|requests?)$",
    re.IGNORECASE,
)
_CACHED = re.compile("cache", re.IGNORECASE)


@dataclass(frozen=True)
class ChangedAnswer:
    """A probe whose answer changed after other sessions: the difference, what was run, and the requests."""

    difference: Difference
    schedule: Schedule
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True)
class Played:
    """The outcome of a trajectory on the untouched server, and the seconds spent waiting for replies."""

    trajectory: Trajectory
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class FirstLook:
    """What an untouched server answered, and what changed after other sessions had come and gone.

    Attributes:
        probes: what was run before and after.
        before: for each probe, the outcomes of all its runs.
        played: the outcomes of the first recorded rollouts, or of made-up ones and of calls that were found if none is recorded.
        repeated: for each of these, the outcomes of as many runs as of a probe, if all of them earned what was recorded, or
            its calls were found.
        change: what changed permanently, or None.
        words: what tools that read know of the rows without a recorded rollout.
        failures: the first errors of the untouched server, which may name a missing dependency only once.
        crowded: what the look would have needed, if there was no room for that many concurrent runs; otherwise ''.
    """

    probes: tuple[Trajectory, ...] = ()
    before: tuple[tuple[Outcome, ...], ...] = ()
    played: tuple[Played, ...] = ()
    repeated: tuple[Sequence[Outcome], ...] = ()
    change: ChangedAnswer | None = None
    words: KnownWords = NOTHING_ASKED
    failures: tuple[Exchange, ...] = ()
    crowded: str = ""

    @property
    def first_sessions(self) -> Iterator[FirstSession]:
        """What was played, with the calls that each time were granted, and what it earned each time."""
        for played, repeated in zip(self.played, self.repeated, strict=True):
            if played.outcome.calls:  # a server that only grades is sent none
                yield noted(played.trajectory, (played.outcome, *repeated))


def reads_on(gym: Gym, row: Row) -> Trajectory:
    """Reads on a row: its recorded ones, some recorded on other rows, and the tools that take no arguments."""
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
    """The reads of the row's first rollout that need no earlier reply; those that follow a write come first."""
    recorded = [call for rollout in gym.recorded.get(row, ())[:1] for call in followed(row, rollout).calls]
    wrote = next(iter(writes_in(recorded)), len(recorded))
    reads = [call for call in (*recorded[wrote:], *recorded[:wrote]) if is_reading(call)]
    return [call for call in reads if not is_linked(call.arguments)]


def writing(gym: Gym, row: Row) -> Trajectory:
    """A trajectory that may leave something behind: the row's first recorded rollout, or made-up calls."""
    recorded = gym.recorded.get(row, ())
    return followed(row, recorded[0]) if recorded else made_up(Knowledge((row,)), row)


async def look(gym: Gym) -> FirstLook:
    """Take a first look; if the server does not answer, it is empty, and other checks report that."""
    try:
        with gym.endpoint.forgiving():
            return await _look(gym)
    except (ServerFault, PathHangs):
        return FirstLook()
    except NoRoom as crowded:
        return FirstLook(crowded=str(crowded))


async def _look(gym: Gym) -> FirstLook:
    rows = (recorded_rows(gym) or gym.rows or (gym.row,))[:_ROWS]
    unrecorded = [row for row in rows if not gym.recorded.get(row) and gym.kind is not ServerKind.SINGLE_TURN]
    words = await known_arguments(gym, unrecorded, lambda tool: may_read(tool) or bool(lists_of(tool)))
    probes = tuple(_asking(reads_on(gym, row), words.calls(row)) for row in rows)
    writes = tuple(writing(gym, row) for row in rows)
    return replace(await changed(gym, probes, writes, repeating=True), words=words)


async def look_again(gym: Gym, look: FirstLook, found: Sequence[Trajectory]) -> FirstLook:
    """The look, what has changed after what tools were found to accept, and what this itself comes to as often as a probe.

    Only its own reads show what has changed: while there is little of a thing, the others take all of it.
    """
    reads = {repr(one.calls): one for each in found if (one := each.without(writes_in(each.calls))).calls}
    if look.change or not reads:
        return look
    try:
        with gym.endpoint.forgiving():
            change = (await changed(gym, tuple(reads.values()), found)).change
            played = [await play(gym, Channel(gym.endpoint), one) for one in found] if change is None else []
            repeated = [await run_times(gym, one.trajectory, RUNS) if one.seconds <= _BRIEF else () for one in played]
    except (ServerFault, PathHangs, NoRoom):
        return look
    return replace(
        look, change=change, played=(*look.played, *played), repeated=(*look.repeated, *map(tuple, repeated))
    )


def _asking(reads: Trajectory, known: Sequence[Call]) -> Trajectory:
    return replace(reads, calls=(*reads.calls, *[call for call in known if call not in reads.calls][:_KNOWN]))


async def _repeated(gym: Gym, played: Played) -> Sequence[Outcome]:
    """What is played once more, as often as a probe; nothing if it takes long, or does not earn what was recorded each time."""
    recorded = [rounded(rollout.reward) for rollout in gym.recorded.get(played.trajectory.row, ())[:1]]
    earned = played.outcome.reward
    if not is_number(earned) or recorded != [earned] or played.seconds > _BRIEF:
        return ()
    runs = await run_times(gym, played.trajectory, RUNS)
    return runs if all(each.reward == earned for each in runs) else ()


async def changed(
    gym: Gym, probes: tuple[Trajectory, ...], writes: Sequence[Trajectory], *, repeating: bool = False
) -> FirstLook:
    """Run the probes, then the writes, each as often as a probe if `repeating`, then the probes again, and say what changed."""
    record = Channel(gym.endpoint)
    failures: list[Exchange] = []
    # All runs of a probe come before another row is seeded.
    before = [[*await run_times(gym, one, RUNS - 1, failures), await run(gym, record, one)] for one in probes]
    played = [await play(gym, record, one) for one in writes]  # all once, before one of them uses up what there is
    repeated = [await _repeated(gym, one) if repeating else () for one in played]
    for one in writes:
        if one.calls:  # a read after writes may leave its result in a cache
            await run(gym, record, reading_again(one))
    unchanged = FirstLook(probes, tuple(map(tuple, before)), tuple(played), tuple(repeated), failures=tuple(failures))
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
    """Run a trajectory alone and measure how long it takes."""
    before = len(channel.exchanges)
    outcome = await run(gym, channel, one)
    return Played(one, outcome, sum(reply_of(each).elapsed for each in channel.exchanges[before:]))


async def changed_since(gym: Gym, look: FirstLook) -> ChangedAnswer | None:
    """What has changed since the first look, but for numbers other than the reward, which may count minutes."""
    for one, before in zip(look.probes, look.before, strict=True):
        if change := await _changed_from(gym, one, before):
            return change
    for played, runs in zip(look.played, look.repeated, strict=True):
        if runs and (change := await _changed_from(gym, played.trajectory, runs)):
            return change
    return None


async def _changed_from(gym: Gym, one: Trajectory, before: Sequence[Outcome]) -> ChangedAnswer | None:
    channel = Channel(gym.endpoint)
    after = [await run(gym, channel, one)]
    if next(_no_numbers(lasting(before, after)), None) is None:
        return None
    after += await run_times(gym, one, RUNS - 1)
    difference = next(_no_numbers(await _lasting_as_fast(gym, one, before, after)), None)
    return ChangedAnswer(difference, Schedule((one,)), tuple(channel.exchanges)) if difference else None


async def _lasting_as_fast(
    gym: Gym, one: Trajectory, before: Sequence[Outcome], after: Sequence[Outcome]
) -> Iterator[Difference]:
    """Lasting differences in sessions that take no longer than most before: a slower session may earn less.

    If none is as fast any more, nothing can be compared. What changes without any session in between, such as a price,
    does not count either: all of many concurrent runs may see one price, and all of the next ones another.
    """
    if next(lasting(before, after), None) is None:
        return iter(())
    between = min((one.began[0] for one in after), default=0.0) - max((one.began[-1] for one in before), default=0.0)
    await asyncio.sleep(min(max(_LEAST_PAUSE, 2 * between), _LONGEST_PAUSE))
    pace = min(before, key=lambda outcome: outcome.seconds).began
    # of those that came first, a few may have been slow by chance, and for their client alone
    slowest = _NEARLY * sorted(outcome.seconds for outcome in before)[3 * len(before) // 4]
    paced = [await run(gym, Channel(gym.endpoint), one, pace) for _ in range(_PACED)]
    as_fast = [outcome for outcome in paced if outcome.seconds <= slowest]
    return lasting(before, [*after, *as_fast]) if as_fast else iter(())


def _no_numbers(found: Iterator[Difference]) -> Iterator[Difference]:
    """All but numbers in replies to calls."""
    return (one for one in found if one.step == VERIFY or not all(map(is_number, (one.expected, one.actual))))


async def run_times(
    gym: Gym, trajectory: Trajectory, times: int, failures: list[Exchange] | None = None
) -> list[Outcome]:
    """Run a trajectory this many times, and add the first errors to `failures`.

    The first run is alone, since a server on which it hangs may lose a thread to each; then a few run at once.
    """

    async def once() -> Outcome:
        channel = Channel(gym.endpoint)
        outcome = await run(gym, channel, trajectory)
        if failures is not None and len(failures) < _FAILURES:
            failures.extend(one for one in channel.exchanges if one.reply and is_error(one.reply.status))
        return outcome

    return [await once(), *await beside([once] * (times - 1), _AT_ONCE)]


def lasting(before: Sequence[Outcome], after: Sequence[Outcome]) -> Iterator[Difference]:
    """Where all runs before are alike, all runs after are alike, and the two differ; times and caches are ignored."""
    for difference in differences(before[0], after[0], varying(before) | varying(after)):
        if not difference.of_time and not is_by_design(difference):
            yield difference


def is_by_design(difference: Difference) -> bool:
    """Whether what differs is named like what sound servers share; see `by_design`."""
    return by_design(difference.place, difference.expected, difference.actual)


def by_design(place: Place, *values: object) -> bool:
    """Whether values at a place in replies are named like what sound servers share: running ids, caches, clocks.

    A flag is none of these, unless it says that something was cached. Neither is what a list of clients or sessions
    contains: these are the world's own.
    """
    names = _names_within(place)
    if any(map(_CACHED.search, names)):
        return True
    flags = bool(values) and all(isinstance(value, bool) for value in values)
    return not flags and any(ends_in_id(name) or _SHARED.search(name) for name in names)


def _names_within(place: Place) -> Sequence[str]:
    """The names on the way to a place, from the last list on: `id` for the id of the second client of `clients`."""
    names = list[str]()
    for key in reversed(place):
        if isinstance(key, str):
            names.append(key)
        elif names:
            break
    return names
