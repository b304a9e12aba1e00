"""What is tried before anything is drawn: the few examples that reach the usual faults at once, whatever the clock says."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from random import Random
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.grouping import first_of_each, grouped
from gym_conformance.trajectories.crossing import crossed, with_crossed
from gym_conformance.trajectories.damage import damaged
from gym_conformance.trajectories.generate import Knowledge, crowded_by, is_read, reads_in, references, writes_in
from gym_conformance.trajectories.other_values import with_other_members, with_other_numbers
from gym_conformance.trajectories.renaming import names_in, new_names, renamed
from gym_conformance.trajectories.trajectory import (
    PLAIN_ANSWER,
    Schedule,
    Trajectory,
    is_linked,
    is_reference,
    of_first,
    resolve,
)
from gym_schemas import NoValue, admits, boundary_values, minimal, properties_of, whole

#: Trajectories that are known to mean something, for the properties of one session.
_KNOWN = 4

#: Rows on which nothing is done.
_UNTOUCHED = 8

#: The same where each row may show something of its own.
_WHOLE = 16

#: Writes, and reads, of one that is made up.
_MADE_UP = 5

#: Arguments at the bounds of a tool's definition, and tools of which they are tried.
_BOUNDS, _BOUND_TOOLS = 8, 12

#: Trajectories whose values are combined.
_MIXED = 2

#: Values of one argument of a known call, and calls that may come before it.
_VARIED, _BEFORE = 4, 12

#: Trajectories whose calls are repeated with texts that cannot be read, and so many of these calls, and of those with a
#: name that is not there.
_STRANGE_ONES, _STRANGE_CALLS = 3, 24

#: Calls of one tool after which another with a text that cannot be read may come.
_PLACES = 3

#: Calls that another session makes first, with what only this one was given.
_FORESTALLED = 4

#: Tools that write of which one trajectory meets itself, and those of these with other listed values.
_WRITING, _EXCHANGED = 3, 2

#: Reads that are made again in the end.
_AGAIN = 3

#: No environment knows it.
_NOBODY = "Qzxvwkj"

#: Numbers beyond any bound: past 64 bits, past the 28 digits of a `Decimal`, and where one more makes it infinite.
_VAST = (10**27, -(10**27), 1e308)

#: What stands in the place of a number, and of a text.
_WRONG: dict[Collection[type], tuple[Any, ...]] = {(int, float): (*_VAST, "many", None), (str,): (7, None, [])}

#: Rollouts that run at once: of different kinds, and of one; and how often those of different kinds meet at their verify.
_MIXED_AT_ONCE, _ALIKE_AT_ONCE, _MEETINGS = 15, 4, 4


def known(knowledge: Knowledge) -> list[Trajectory]:
    """Trajectories that are known to mean something, of as many rows as possible: recorded ones, else made-up ones.

    The first ones are of different rows, and call between them as many tools as any could. Of rows of which nothing is
    recorded those come first that have a shape of their own: they may be scored by other means, such as a sandbox.
    """
    recorded = list(knowledge.known_trajectories)
    rows = [row for row in knowledge.rows if row not in {trajectory.row for trajectory in recorded}]
    unlike = first_of_each(Row.shape, rows)
    rows.sort(key=lambda row: unlike[row.shape()] is not row)
    other = (made for row in rows for made in [made_up(knowledge, row)] if made.calls or made.answer != PLAIN_ANSWER)
    found = [*recorded, *(made for _, made in zip(range(_KNOWN), other, strict=False))]
    different = by_tools(list(first_of_each(lambda trajectory: trajectory.row, found).values()))
    return [*different, *(trajectory for trajectory in found if trajectory not in different)]


def by_tools(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The same, each time the one next that calls the most tools that those before it do not."""
    left, chosen, called = list(trajectories), list[Trajectory](), set[str]()
    while left:
        news = [len({call.name for call in each.calls} - called) for each in left]
        chosen.append(left.pop(news.index(max(news)) if chosen else 0))
        called |= {call.name for call in chosen[-1].calls}
    return chosen


def known_alone(knowledge: Knowledge) -> list[Schedule]:
    """A few of them, each alone."""
    return [Schedule((trajectory,)) for trajectory in known(knowledge)[:_KNOWN]]


def known_in_part(knowledge: Knowledge) -> list[Schedule]:
    """The same, their last words where nothing was done of what they say, or the first half of it, and nothing on other rows."""
    found = known(knowledge)[:_KNOWN]
    undone = [one.without(range(len(one.calls))) for one in found if one.calls]
    half = [one.without(range(len(one.calls) // 2, len(one.calls))) for one in found if len(one.calls) > 1]
    nothing = [Trajectory(row) for row in knowledge.rows[:_UNTOUCHED]]
    return [Schedule((one,)) for one in (*found, *undone, *half[: _KNOWN // 2], *nothing)]


def with_bounds(knowledge: Knowledge) -> list[Schedule]:
    """Those of many rows, and then each tool's arguments at their bounds, and all that it is known to take, in a session each.

    A call that is known to mean something is varied in one argument at a time, in its place; others as a whole. And all
    values that a rollout says are combined: what it has never put together meets what is full, or taken.
    """
    tools: dict[str, tuple[Row, Tool]] = {}
    for row in knowledge.rows:
        for tool in row.tools:
            tools.setdefault(json.dumps([tool.name, tool.parameters], sort_keys=True), (row, tool))
    found = []
    for row, tool in islice(tools.values(), _BOUND_TOOLS):
        arguments = map(whole, islice(boundary_values(tool.parameters), _BOUNDS))
        calls = tuple(Call(tool.name, each) for each in arguments)
        words = (Call(tool.name, each) for each in knowledge.meaningful.get(tool.name, ()))
        said = tuple(islice((call for call in words if admits(tool.parameters, call.arguments)), _BOUNDS))
        found += [Trajectory(row, calls), Trajectory(row, said), *_varied(knowledge, tool)]
    whole_ones = known(knowledge)[:_WHOLE]
    mixed = (each for one in whole_ones[:_MIXED] for each in with_crossed(one))
    return [Schedule((each,)) for each in (*knowledge.crashing, *whole_ones, *mixed, *found) if each.calls]


def _varied(knowledge: Knowledge, tool: Tool) -> Iterator[Trajectory]:
    """The first known trajectory up to its call of the tool, and then that call with each argument at its bounds."""
    for trajectory in knowledge.known_trajectories:
        at = next((at for at, call in enumerate(trajectory.calls) if call.name == tool.name), None)
        properties = properties_of(tool.parameters)
        if at is None or at >= _BEFORE or not properties:
            continue
        base = trajectory.calls[at].arguments
        varied = [
            {**base, key: whole(value)}
            for key, schema in properties.items()
            for value in islice(boundary_values(schema), _VARIED)
        ]
        allowed = [Call(tool.name, each) for each in varied if admits(tool.parameters, resolve(each, []))]
        yield replace(trajectory, calls=(*trajectory.calls[:at], *allowed[: 2 * _BOUNDS]))
        return


def known_disturbed(knowledge: Knowledge) -> list[Schedule]:
    """A few of them, each with a call of each kind in its midst that lacks all its arguments, or has a wrong one more.

    Then calls that are as they were, but speak of something that is not there: what is checked last may come too late.
    And calls whose texts cannot be read any more, such as a formula that lacks its end, and calls with values of each other,
    such as a transfer to what is full by then.
    """
    found = []
    for trajectory in filter(lambda each: each.calls, known(knowledge)[:_KNOWN]):
        at = len(trajectory.calls) // 2
        call = trajectory.calls[min(at + 1, len(trajectory.calls)) - 1]
        spoilt = {**call.arguments, next(iter(call.arguments), "unknown"): {"unexpected": []}}
        found += [Schedule((trajectory.with_noise(at, Call(call.name, wrong)),)) for wrong in ({}, spoilt)]
    writing = _of_many_kinds(one for one in known(knowledge) if not all(is_read(call.name) for call in one.calls))
    seen = set[tuple[str, str, bool]]()
    strange = islice((each for one in writing for each in _with_strange_names(one, seen)), _STRANGE_CALLS)
    writing = writing[:_STRANGE_ONES]
    damaged = islice((each for one in writing for each in _with_damaged_texts(one)), _STRANGE_CALLS)
    mixed = islice((each for one in writing for each in _with_crossed(one)), _STRANGE_CALLS)
    return [*found, *(Schedule((trajectory,)) for trajectory in (*strange, *damaged, *mixed))]


def _of_many_kinds(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    """The same, those first that call other tools, or in another order, than those before them."""
    kinds = grouped(lambda one: tuple(call.name for call in one.calls), trajectories)
    return [*(several[0] for several in kinds.values()), *(one for several in kinds.values() for one in several[1:])]


def _with_crossed(trajectory: Trajectory) -> Iterator[Trajectory]:
    """The trajectory, and then calls of a tool with values that others of it had, for each; what it has read it reads again.

    They come after the last call of that tool, too: a later one may end the episode, so that all are refused alike.
    """
    for name, calls in crossed(trajectory):
        end = len(trajectory.calls)
        last = max(at for at, call in enumerate(trajectory.calls) if call.name == name)
        linked = any(is_linked(call.arguments) for call in calls)
        for at in {end, end if linked else last + 1}:
            longer = reading_again(trajectory)
            for call in reversed(calls):
                longer = longer.with_noise(at, call)
            yield longer


def _with_strange_names(trajectory: Trajectory, seen: set[tuple[str, str, bool]]) -> Iterator[Trajectory]:
    """The trajectory with a tool's last call repeated just after it, one of its texts a name that nobody knows, for each.

    Those that are seen, by tool, argument and whether it is a path, are left out: others have had them.

    And up to that call, with all of these in its place: whatever else it did, such as to set a flag, the call itself would
    hide. What it has read it reads again in the end.
    """
    reads = reads_in(trajectory.calls)[-_AGAIN:]
    for at, call in reversed(list(enumerate(trajectory.calls))):
        several = list[Call]()
        for name, strange in () if is_read(call.name) else _saying(_nobody, call.arguments):
            key = (call.name, name, f"{_NOBODY}/" in str(strange))
            if key not in seen and admits(trajectory.row.parameters_of(call.name), resolve(strange, [])):
                several.append(Call(call.name, strange))
                yield reading_again(trajectory).with_noise(at + 1, several[-1])
            seen.add(key)
        if several and reads:
            instead = trajectory.chosen([*range(at), *reads])
            for each in reversed(several):
                instead = instead.with_noise(at, each)
            yield instead


def _with_damaged_texts(trajectory: Trajectory) -> Iterator[Trajectory]:
    """The trajectory with a tool's last calls repeated, each just after it, for each of their texts once in each damaged form."""
    texts = damaged(trajectory)
    for at, call in _last_calls(trajectory):
        said: dict[str, list[Any]] = {}
        for text in texts:
            for name, arguments in _saying(_always(text), call.arguments):
                if admits(trajectory.row.parameters_of(call.name), resolve(arguments, [])):
                    said.setdefault(name, []).append(arguments)
        for several in said.values():
            longer = reading_again(trajectory)
            for arguments in reversed(several):
                longer = longer.with_noise(at + 1, Call(call.name, arguments))
            yield longer


def _last_calls(trajectory: Trajectory) -> Iterator[tuple[int, Call]]:
    """The last calls of each tool, with their numbers: the last one of each first, since others may only follow a read."""
    by_tool = grouped(lambda each: each[1].name, reversed(list(enumerate(trajectory.calls))))
    in_turn = zip_longest(*(calls[:_PLACES] for calls in by_tool.values()))
    return (each for each in chain.from_iterable(in_turn) if each)


def reading_again(trajectory: Trajectory) -> Trajectory:
    """The trajectory that makes its last reads again in the end, when it has written."""
    reads = [call for call in trajectory.calls if is_read(call.name)]
    return replace(trajectory, calls=(*trajectory.calls, *reads[-_AGAIN:]))


def _nobody(text: str) -> str:
    """A name that nobody knows; of a path in a folder that is not there, where what is in order until then is refused."""
    return f"{_NOBODY}/{text.rpartition('/')[2]}" if "/" in text else _NOBODY


def _always(other: Any) -> Callable[[Any], Any]:
    return lambda _: other


def _saying(
    other: Callable[[Any], Any], value: Any, name: str = "", kinds: Collection[type] = (str,)
) -> Iterator[tuple[str, Any]]:
    """The value with one of its texts, or values of these kinds, replaced by another one, for each, and what it is called."""
    if type(value) in kinds:
        yield name, other(value)
    elif isinstance(value, dict) and not is_reference(value):
        for key, inner in value.items():
            yield from ((found, {**value, key: told}) for found, told in _saying(other, inner, key, kinds))
    elif isinstance(value, list) and value:
        yield from ((found, [told, *value[1:]]) for found, told in _saying(other, value[0], name, kinds))


def with_each_tool_spoilt(knowledge: Knowledge) -> list[Schedule]:
    """What `known_disturbed` makes, and in one session a call of each tool that lacks all its arguments.

    And calls with numbers far beyond what their definitions allow, or with one value of another type.
    """
    found = known_disturbed(knowledge)
    for plain in known(knowledge)[:1]:
        at, spoilt = len(plain.calls) // 2, plain
        for tool in plain.row.tools:
            spoilt = spoilt.with_noise(at, Call(tool.name, {}))
        found.append(Schedule((spoilt,)))
    seen = set[tuple[str, str]]()
    wrong = (each for one in known(knowledge) for each in _with_one_wrong(one, seen))
    return [*found, *(Schedule((each,)) for each in islice(wrong, _STRANGE_CALLS))]


def _with_one_wrong(trajectory: Trajectory, seen: set[tuple[str, str]]) -> Iterator[Trajectory]:
    """The trajectory with a call repeated just after it, with one of its numbers or texts wrong, for each.

    A number is far out of its bounds; where nothing is said of them it may count on: to wait, or to throw dice, so often.
    """
    for at, call in enumerate(trajectory.calls):
        wrong: dict[str, list[Call]] = {}
        for kinds, values in _WRONG.items():
            for name, arguments in chain.from_iterable(
                _saying(_always(each), call.arguments, kinds=kinds) for each in values
            ):
                if not admits(trajectory.row.parameters_of(call.name), resolve(arguments, [])):
                    wrong.setdefault(name, []).append(Call(call.name, arguments))
        for name, calls in wrong.items():
            if (call.name, name) not in seen:
                spoilt = trajectory
                for each in reversed(calls):
                    spoilt = spoilt.with_noise(at + 1, each)
                yield spoilt
            seen.add((call.name, name))


def side_by_side(knowledge: Knowledge) -> list[Schedule]:
    """Two different ones side by side, a step of each in turn; one twice, and beside the same in other words.

    Then one for each tool that writes, twice, and with others of the values that its tools list: of several rooms one alone
    may be shared. Then one within the other, or itself; one beside a busy one; and one from which another takes what it
    was given, such as the id of a draft, and uses it up first.
    """
    found = known(knowledge)
    if not found:
        return []
    one, two = found[0], found[1 % len(found)]
    begun = (0,) * (1 + len(one.calls) // 2)
    within = [Schedule((one, other), begun + (1,) * other.steps) for other in (two, one)]
    pairs = [Schedule((one, two), tuple(in_turn((one, two)))), Schedule((one, one), tuple(in_turn((one, one))))]
    pairs += [Schedule((one, other), tuple(in_turn((one, other)))) for other in _saying_otherwise(one)]
    calling = (each for each, _ in first_calls(found, lambda call: not is_read(call.name)))
    writing = list(first_of_each(id, calling).values())[:_WRITING]
    elsewhere = filter(None, chain.from_iterable(zip_longest(*map(with_other_members, writing))))
    twice = [each for each in (*writing, *islice(elsewhere, _EXCHANGED)) if each is not one]
    pairs += [Schedule((each, each), tuple(in_turn((each, each)))) for each in twice]
    busy = _busy(two)
    beside_busy = Schedule((busy, one), (0,) * (busy.steps - 1) + (1,) * one.steps)
    return [*pairs, *within, beside_busy, *islice(_forestalled(found), _FORESTALLED)]


def first_calls(
    found: Iterable[Trajectory], wanted: Callable[[Call], bool], most: int | None = None
) -> Iterator[tuple[Trajectory, int]]:
    """Of each tool the first call that is wanted, as its trajectory and its number there, which is below `most`."""
    seen = set[str]()
    for one in found:
        for at, call in enumerate(one.calls[:most]):
            if call.name not in seen and wanted(call):
                seen.add(call.name)
                yield one, at


def _saying_otherwise(one: Trajectory) -> Iterator[Trajectory]:
    """The same on the same row with other words and numbers: what two share shows only where they say different things."""
    names = next(iter(names_in(one)), frozenset())
    other = replace(renamed(one, new_names(names, Random(0))), row=one.row)
    other = with_other_numbers(other) or other
    if other.calls != one.calls:
        yield other


def _forestalled(found: Sequence[Trajectory]) -> Iterator[Schedule]:
    """Just before a trajectory uses what a call has returned, another session does so; of each tool the first such call."""
    for one, at in first_calls(found, lambda call: not is_read(call.name) and is_linked(call.arguments)):
        call = one.calls[at]
        other = Trajectory(one.row, (Call(call.name, of_first(call.arguments)),))
        yield Schedule((one, other), (0,) * (1 + at) + (1,) * other.steps)


def _busy(trajectory: Trajectory) -> Trajectory:
    """Each write twice, as policies repeat themselves, and then all reads."""
    writes = (number for number in writes_in(trajectory.calls) for _ in range(2))
    return trajectory.chosen([*writes, *reads_in(trajectory.calls)])


def at_once(knowledge: Knowledge) -> list[Schedule]:
    """Two different ones and one that does nothing, and so earns something else, at the same time, many times each.

    And one and the same a few times. Then as many of the first again, whose verifies come at the same moment, a few times:
    they scatter where the calls before them take longer or shorter.
    """
    found = known(knowledge)
    if not found:
        return []
    mixed = (found[0], found[1 % len(found)], Trajectory(found[0].row)) * (_MIXED_AT_ONCE // 3)
    alike, meeting = (
        Schedule((found[0],) * _ALIKE_AT_ONCE, concurrent=True),
        Schedule(mixed, concurrent=True, meeting=True),
    )
    return [replace(meeting, meeting=False), alike, *[meeting] * _MEETINGS]


def around(knowledge: Knowledge, crowd: int) -> list[Schedule]:
    """The whole crowd after a trajectory's calls, of sessions that make a call each; then its reads again, and its verify."""
    found = known(knowledge)
    if not found:
        return []
    patient, other = found[0], found[1 % len(found)]
    reads = [call for call in patient.calls if is_read(call.name)] or bare_reads(patient.row)
    whole = replace(patient, calls=(*patient.calls, *reads[-_AGAIN:]))
    return [crowded_by(whole, other.without(range(1, len(other.calls))), crowd, 1 + len(patient.calls))]


def in_turn(trajectories: Sequence[Trajectory]) -> Iterator[int]:
    """A step of each in turn, until all are at their end."""
    for step in range(max(trajectory.steps for trajectory in trajectories)):
        yield from (turn for turn, trajectory in enumerate(trajectories) if step < trajectory.steps)


def bare_reads(row: Row) -> list[Call]:
    """Calls of the tools that need not be told anything of what is there, if they read or take no arguments at all."""
    tools = [tool for tool in row.tools if is_read(tool.name) or not properties_of(tool.parameters)]
    calls = ((tool, plain_arguments(tool)) for tool in tools)
    return [
        Call(tool.name, plain)
        for tool, plain in calls
        if plain is not None and not any(_told(tool, key, value) for key, value in plain.items())
    ]


#: Where a definition says one of these of a text, its plainest value means something.
_SAYS_WHICH = frozenset({"enum", "const", "pattern"})


def _told(tool: Tool, key: str, value: Any) -> bool:
    """Whether an argument is a text or a list, of which the plainest means nothing."""
    schema = properties_of(tool.parameters).get(key)
    says_which = isinstance(schema, dict) and not _SAYS_WHICH.isdisjoint(schema)
    return isinstance(value, str | list) and not (isinstance(value, str) and says_which)


def plain_arguments(tool: Tool) -> dict[str, Any] | None:
    """The plainest call of a tool: what may be left out is, and what may be null is; None where none is known."""
    try:
        least = minimal(tool.parameters)
    except NoValue:
        return None
    if not isinstance(least, dict):
        return None
    required = tool.parameters.get("required")
    kept = {key: value for key, value in least.items() if isinstance(required, list) and key in required}
    for arguments in (kept, least):
        nulls = {key: None for key in arguments if admits(tool.parameters, {**arguments, key: None})}
        if admits(tool.parameters, {**arguments, **nulls}):
            return {**arguments, **nulls}
    return least


def made_up(knowledge: Knowledge, row: Row) -> Trajectory:
    """The smallest call of each tool, writes before reads, with what earlier calls return in the place of ids."""
    writes, reads = list[Call](), list[Call]()
    for tool in row.tools:
        known = [each for each in knowledge.meaningful.get(tool.name, ()) if admits(tool.parameters, each)]
        try:
            arguments = known[0] if known else minimal(tool.parameters)
        except NoValue:
            continue
        (reads if is_read(tool.name) else writes).append(Call(tool.name, arguments))
    tools = {tool.name: tool for tool in row.tools}
    calls: list[Call] = []
    for call in (*writes[:_MADE_UP], *reads[:_MADE_UP]):
        calls.append(_followed(call, tools[call.name], calls, knowledge))
    return Trajectory(row, tuple(calls), answer=next(iter(knowledge.answers.get(row, ())), PLAIN_ANSWER))


def _followed(call: Call, tool: Tool, calls: Sequence[Call], knowledge: Knowledge) -> Call:
    arguments = dict(call.arguments) if isinstance(call.arguments, dict) else {}
    for key, value in arguments.items():
        _, named = references(key, value, tool, calls, knowledge)
        if named:
            arguments[key] = named[-1].as_json()
    return Call(call.name, arguments)
