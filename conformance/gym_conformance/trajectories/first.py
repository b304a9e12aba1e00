"""The examples tried before any is drawn: a few that reach the usual faults at once, however long they take."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from random import Random

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.grouping import first_of_each, round_robin
from gym_conformance.trajectories.generate import Knowledge, crowded_by, is_reading, reads_in, writes_in
from gym_conformance.trajectories.known import AGAIN, KNOWN, calling_more, first_calls, known
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.other_values import with_other_members, with_other_numbers
from gym_conformance.trajectories.renaming import names_in, new_names, renamed
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_linked, needs_from, of_first

#: Rows on which nothing is done.
_UNTOUCHED = 8

#: Calls that another session makes first with values returned to this one.
_FORESTALLED = 6

#: Trajectories that write and are run against themselves, and variants of them with other enum values.
_WRITING, _EXCHANGED = 3, 2

#: Concurrent rollouts: of different kinds, and of one kind; and how often those of different kinds verify at the same
#: moment.
_MIXED_AT_ONCE, _ALIKE_AT_ONCE, _MEETINGS = 15, 4, 4


def known_alone(knowledge: Knowledge) -> list[Schedule]:
    """A few known trajectories, each alone."""
    return [Schedule((trajectory,)) for trajectory in known(knowledge)[:KNOWN]]


def known_and_less(knowledge: Knowledge) -> list[Schedule]:
    """The same, then the first ones without one of their last writes: what earns a part may hang on chance where the top does not."""
    found = known(knowledge)[:KNOWN]
    less = ((one.without([at]) for at in reversed(writes_in(one.calls))) for one in found[: KNOWN // 2])
    return [Schedule((one,)) for one in (*found, *islice(round_robin(less), KNOWN))]


def known_in_part(knowledge: Knowledge) -> list[Schedule]:
    """The same, then their answers without any calls, their first halves, and rows on which nothing is done."""
    found = known(knowledge)[:KNOWN]
    undone = [one.without(range(len(one.calls))) for one in found if one.calls]
    half = [one.without(range(len(one.calls) // 2, len(one.calls))) for one in found if len(one.calls) > 1]
    nothing = [Trajectory(row) for row in knowledge.rows[:_UNTOUCHED]]
    return [Schedule((one,)) for one in (*found, *undone, *half[: KNOWN // 2], *nothing)]


def side_by_side(knowledge: Knowledge) -> list[Schedule]:
    """Two known trajectories in alternation; one against itself, and against a variant with other values.

    Then one for each tool that writes against itself, also with other enum values, since only one of several rooms may
    be shared. Then one nested in another or in itself; one after a busy one; and one whose returned values, such as the
    id of a draft, another session uses up first.
    """
    found = known(knowledge)
    if not found:
        return []
    one, two = found[0], found[1 % len(found)]
    begun = (0,) * (1 + len(one.calls) // 2)
    within = [Schedule((one, other), begun + (1,) * other.steps) for other in (two, one)]
    pairs = [Schedule((one, two), tuple(in_turn((one, two)))), Schedule((one, one), tuple(in_turn((one, one))))]
    pairs += [Schedule((one, other), tuple(in_turn((one, other)))) for other in _with_other_values(one)]
    calling = (each for each, _ in first_calls(found, lambda call: not is_reading(call)))
    writing = list(first_of_each(id, calling).values())[:_WRITING]
    elsewhere = round_robin(map(with_other_members, writing))
    twice = [each for each in (*writing, *islice(elsewhere, _EXCHANGED)) if each is not one]
    pairs += [Schedule((each, each), tuple(in_turn((each, each)))) for each in twice]
    busy = _busy(two)
    beside_busy = Schedule((busy, one), (0,) * (busy.steps - 1) + (1,) * one.steps)
    return [*pairs, *within, beside_busy, *islice(_forestalled(found), _FORESTALLED)]


def _with_other_values(one: Trajectory) -> Iterator[Trajectory]:
    """The trajectory on the same row with other words and numbers: shared state shows only if two sessions differ.

    And with other numbers alone, since a new name may be refused.
    """
    names = next(iter(names_in(one)), frozenset())
    other = replace(renamed(one, new_names(names, Random(0))), row=one.row)
    others = (with_other_numbers(other) or other, with_other_numbers(one) or one)
    yield from (
        each for each in first_of_each(lambda each: repr(each.calls), others).values() if each.calls != one.calls
    )


def _forestalled(found: Sequence[Trajectory]) -> Iterator[Schedule]:
    """Another session uses a returned value just before the trajectory does, or as soon as it is returned; for each tool, the first such call.

    Those come first that sound like using it up; a status that is asked for may move on, too.
    """
    linked = first_calls(found, lambda call: is_linked(call.arguments))
    for one, at in sorted(linked, key=lambda each: is_reading(each[0].calls[each[1]])):
        call = one.calls[at]
        other = Trajectory(one.row, (Call(call.name, of_first(call.arguments)),))
        returned = next((number for number in reversed(range(at)) if needs_from(call.arguments, number)), at - 1)
        for begun in {1 + at, 2 + returned}:
            yield Schedule((one, other), (0,) * begun + (1,) * other.steps)


def _busy(trajectory: Trajectory) -> Trajectory:
    """The trajectory with each write twice, as policies repeat themselves, and then all reads."""
    writes = (number for number in writes_in(trajectory.calls) for _ in range(2))
    return trajectory.chosen([*writes, *reads_in(trajectory.calls)])


def at_once(knowledge: Knowledge) -> list[Schedule]:
    """Two known trajectories and one that does nothing, and so earns another reward, concurrently and many times each.

    Then a few copies of one trajectory, and of others that call what these two do not, since a handler may lose its
    session where no other does. Then the first schedule a few more times with all verifies at the same moment, since
    they spread out otherwise if the calls before them vary in length.
    """
    found = known(knowledge)
    if not found:
        return []
    first, second = found[0], found[1 % len(found)]
    mixed = (first, second, Trajectory(first.row)) * (_MIXED_AT_ONCE // 3)
    others = calling_more(found, [first, second])[: _MIXED_AT_ONCE // 3]
    alike, meeting = (
        Schedule((found[0],) * _ALIKE_AT_ONCE, concurrent=True),
        Schedule(mixed, concurrent=True, meeting=True),
    )
    further = Schedule(tuple(islice(cycle(others), _MIXED_AT_ONCE)), concurrent=True)
    return [replace(meeting, meeting=False), alike, *([further] if others else []), *[meeting] * _MEETINGS]


def around(knowledge: Knowledge, crowd: int) -> list[Schedule]:
    """After a trajectory's calls, a crowd of sessions that make one call each; then its reads again, and its verify."""
    found = known(knowledge)
    if not found:
        return []
    patient, other = found[0], found[1 % len(found)]
    reads = [call for call in patient.calls if is_reading(call)] or bare_reads(patient.row)
    whole = replace(patient, calls=(*patient.calls, *reads[-AGAIN:]))
    return [crowded_by(whole, other.without(range(1, len(other.calls))), crowd, 1 + len(patient.calls))]


def in_turn(trajectories: Sequence[Trajectory]) -> Iterator[int]:
    """The order that takes one step of each trajectory in turn until all have ended."""
    for step in range(max(trajectory.steps for trajectory in trajectories)):
        yield from (turn for turn, trajectory in enumerate(trajectories) if step < trajectory.steps)
