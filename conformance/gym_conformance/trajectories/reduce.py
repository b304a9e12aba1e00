"""Smaller versions of a schedule that broke a property, for after Hypothesis has shrunk it.

Hypothesis shrinks how a schedule was drawn, value by value, and knows nothing of calls, so in a few seconds against a
slow server it does not finish. Leaving out whole sessions and calls takes a few tries.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from gym_conformance.trajectories.trajectory import Schedule


def smaller(schedule: Schedule) -> Iterator[Schedule]:
    """The schedule without some of its sessions, then without some of its calls; the largest reductions first."""
    sessions = range(len(schedule.trajectories))
    if schedule.passing:  # the one that is watched stays
        sessions = sessions[1:]
        if any(schedule.trajectories[at].calls for at in sessions):
            yield _with_idle_crowd(schedule)
    for dropped in _chunks(sessions):
        if len(dropped) < len(schedule.trajectories):
            yield without_sessions(schedule, dropped)
    for at, trajectory in enumerate(schedule.trajectories):
        for dropped in _chunks(range(len(trajectory.calls))):
            yield without_calls(schedule, at, dropped)


def _with_idle_crowd(schedule: Schedule) -> Schedule:
    """The schedule whose passing sessions make no calls; turns that they no longer need are skipped."""
    patient, *crowd = schedule.trajectories
    idle = (passing.without(range(len(passing.calls))) for passing in crowd)
    return replace(schedule, trajectories=(patient, *idle))


def _chunks(places: range) -> Iterator[range]:
    """All ranges of neighbors: all of them, then halves, then quarters, down to single ones."""
    size = len(places)
    while size:
        for start in range(0, len(places), size):
            yield places[start : start + size]
        size //= 2


def without_sessions(schedule: Schedule, dropped: Collection[int]) -> Schedule:
    """The schedule without these trajectories."""
    kept = [at for at in range(len(schedule.trajectories)) if at not in dropped]
    numbers = {at: number for number, at in enumerate(kept)}
    order = tuple(numbers[turn] for turn in schedule.order if turn in numbers)
    return replace(schedule, trajectories=tuple(schedule.trajectories[at] for at in kept), order=order)


def without_calls(schedule: Schedule, at: int, dropped: Collection[int]) -> Schedule:
    """The schedule without these calls of trajectory `at`; everything else keeps its turns."""
    kept = [number for number in range(len(schedule.trajectories[at].calls)) if number not in dropped]
    places = {number: place for place, number in enumerate(kept)}
    trajectories = [trajectory.with_renumbered(at, places) for trajectory in schedule.trajectories]
    trajectories[at] = trajectories[at].without(dropped)
    order, step = [], 0
    for turn in schedule.order:
        # step 0 is the seed, so call number n is step n + 1
        if turn != at or step - 1 not in dropped:
            order.append(turn)
        step += turn == at
    return replace(schedule, trajectories=tuple(trajectories), order=tuple(order))
