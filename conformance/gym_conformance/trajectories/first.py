"""The examples tried before any is drawn: a few that reach the usual faults at once, however long they take."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, cycle, islice
from random import Random
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import each_kind_first, first_of_each, grouped, round_robin
from gym_conformance.trajectories.crossing import crossed, last_of_others, with_crossed
from gym_conformance.trajectories.damage import damaged
from gym_conformance.trajectories.generate import (
    Knowledge,
    crowded_by,
    is_read,
    is_reading,
    reads_in,
    references,
    writes_in,
)
from gym_conformance.trajectories.other_values import (
    with_letters_beyond_ascii,
    with_other_members,
    with_other_numbers,
)
from gym_conformance.trajectories.renaming import names_in, new_names, renamed
from gym_conformance.trajectories.trajectory import (
    PLAIN_ANSWER,
    STRANGE,
    Schedule,
    Trajectory,
    is_linked,
    is_reference,
    needs_from,
    of_first,
    passed,
    resolve,
    stand_in,
)
from gym_schemas import NoValue, Schema, Way, admits, boundary_values, is_numeric, mapped, minimal, properties_of, whole

#: Known trajectories that the properties of one session use.
_KNOWN = 4

#: Rows on which nothing is done.
_UNTOUCHED = 8

#: Known trajectories used if each row may behave in its own way.
_WHOLE = 16

#: Writes, and as many reads, of a made-up trajectory.
_MADE_UP = 5

#: Boundary values of a tool's arguments, and tools for which they are tried.
_BOUNDS, _BOUND_TOOLS = 8, 12

#: Keywords of a number's bounds, the one first that asks for the most.
_BOUNDED = ("maximum", "minimum")

#: Trajectories whose values are combined.
_MIXED = 2

#: Values of one argument of a known call, and calls that may precede it.
_VARIED, _BEFORE = 4, 12

#: Trajectories whose calls are repeated with damaged texts, and how many of these calls are made, as of those with
#: unknown names.
_STRANGE_ONES, _STRANGE_CALLS = 3, 24

#: Calls of one tool after each of which a damaged one is tried.
_PLACES = 3

#: Calls that another session makes first with values returned to this one.
_FORESTALLED = 6

#: Trajectories that write and are run against themselves, and variants of them with other enum values.
_WRITING, _EXCHANGED = 3, 2

#: Reads repeated at the end.
_AGAIN = 3

#: Calls alike after which one more may be too many.
_SEVERAL = 3

#: The end of a file's name.
_FILE = re.compile(r"\w\.[^\W\d]\w{0,4}\Z")

#: A name that no environment knows, and how far from a known number one hardly is.
_UNKNOWN_NAME, _FURTHER_ON = "Qzxvwkj", 97

#: Numbers beyond any bound: past 64 bits, past the 28 digits of a `Decimal`, and close to overflowing to infinity. What is
#: past that many a framework's parser answers with a 500 before its author's code sees it.
_VAST = (10**27, -(10**27), 1e308)

#: How days, times and versions are written.
_DIGITS_APART = re.compile(r"\d+(?:[-:./T ]\d+)+", re.ASCII)

#: The wrong values that replace a number, among them one by which nothing can be divided, and a text, and how far one lies from a whole number, as between two cells.
_WRONG: dict[Collection[type], tuple[Any, ...]] = {(int, float): (0, *_VAST, "many", None), (str,): (7, None, [])}
_BETWEEN = 0.5

#: A bound of a text's length above which none is made that is too long.
_LONGEST = 1_000

#: Concurrent rollouts: of different kinds, and of one kind; and how often those of different kinds verify at the same
#: moment.
_MIXED_AT_ONCE, _ALIKE_AT_ONCE, _MEETINGS = 15, 4, 4


def known(knowledge: Knowledge) -> list[Trajectory]:
    """Meaningful trajectories of as many rows as possible: recorded ones, then made-up ones.

    The first ones are of different rows, and together call as many tools as possible. Among rows without a recorded
    rollout, those of a new shape come first, since they may be scored differently, for example in a sandbox. Then come
    those that are answered otherwise than the rows before them: one scored in another's place earns something else.
    """
    recorded = list(knowledge.known_trajectories)
    rows = [row for row in knowledge.rows if row not in {trajectory.row for trajectory in recorded}]
    unlike = first_of_each(Row.shape, rows)
    answer = {row: knowledge.answers.get(row, ())[:1] for row in rows}
    first = first_of_each(answer.__getitem__, rows)
    rows.sort(key=lambda row: (unlike[row.shape()] is not row, first[answer[row]] is not row))
    other = (made for row in rows for made in [made_up(knowledge, row)] if made.calls or made.answer != PLAIN_ANSWER)
    found = [*recorded, *(made for _, made in zip(range(_KNOWN), other, strict=False))]
    different = by_tools(list(first_of_each(lambda trajectory: trajectory.row, by_tools(found)).values()))
    return [*different, *(trajectory for trajectory in found if trajectory not in different)]


def by_tools(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Order trajectories so that each calls as many tools as possible that those before it do not."""
    left, chosen, called = list(trajectories), list[Trajectory](), set[str]()
    while left:
        news = [len({call.name for call in each.calls} - called) for each in left]
        if chosen and not max(news):
            break
        chosen.append(left.pop(news.index(max(news)) if chosen else 0))
        called |= {call.name for call in chosen[-1].calls}
    return [*chosen, *left]


def known_alone(knowledge: Knowledge) -> list[Schedule]:
    """A few known trajectories, each alone."""
    return [Schedule((trajectory,)) for trajectory in known(knowledge)[:_KNOWN]]


def known_in_part(knowledge: Knowledge) -> list[Schedule]:
    """The same, then their answers without any calls, their first halves, and rows on which nothing is done."""
    found = known(knowledge)[:_KNOWN]
    undone = [one.without(range(len(one.calls))) for one in found if one.calls]
    half = [one.without(range(len(one.calls) // 2, len(one.calls))) for one in found if len(one.calls) > 1]
    nothing = [Trajectory(row) for row in knowledge.rows[:_UNTOUCHED]]
    return [Schedule((one,)) for one in (*found, *undone, *half[: _KNOWN // 2], *nothing)]


def with_bounds(knowledge: Knowledge) -> list[Schedule]:
    """Known trajectories of many rows, and each tool's boundary values and known arguments, each in its own session.

    A call that is known to mean something is varied in place, one argument at a time; other calls are made up whole.
    The values of a rollout are combined, so that combinations it never tried hit what is full or taken, calls without
    arguments are repeated, and texts have letters beyond ASCII.
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
        known_calls = tuple(islice((call for call in words if admits(tool.parameters, call.arguments)), _BOUNDS))
        found += [Trajectory(row, calls), Trajectory(row, known_calls), *_varied(knowledge, tool)]
    whole_ones = known(knowledge)[:_WHOLE]
    mixed = (each for one in whole_ones[:_MIXED] for each in with_crossed(one))
    foreign = map(with_letters_beyond_ascii, whole_ones)
    first = (*knowledge.crashing, *whole_ones, *mixed, *_to_the_end(whole_ones), *foreign)
    return [Schedule((each,)) for each in (*first, *found) if each.calls]


def _to_the_end(trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """For each tool that writes and is told nothing, a trajectory with its call repeated until there is nothing left to do.

    There may be as many things to take back, or to take off, as calls were made before it.
    """
    seen = set[str]()
    for trajectory in trajectories:
        for at, call in enumerate(trajectory.calls[:_BEFORE]):
            if not call.arguments and not is_reading(call) and call.name not in seen:
                seen.add(call.name)
                yield trajectory.chosen([*range(at), *[at] * (at + 2)])


def _varied(knowledge: Knowledge, tool: Tool) -> Iterator[Trajectory]:
    """The first known trajectory up to its call of the tool, followed by that call with each argument at its bounds.

    After each comes what may read what it has led to.
    """
    for trajectory in knowledge.known_trajectories:
        at = next((at for at, call in enumerate(trajectory.calls) if call.name == tool.name), None)
        if at is None or at >= _BEFORE or not properties_of(tool.parameters):
            continue
        base = trajectory.calls[at].arguments
        varied = _one_by_one(_at_bounds, tool.parameters, base)
        allowed = (Call(tool.name, each) for each in varied if admits(tool.parameters, resolve(each, [])))
        longer = replace(trajectory, calls=(*trajectory.calls, *islice(allowed, 3 * _BOUNDS)))
        after = [] if knowledge.reads(tool.name) else last_of_others(trajectory, tool.name)
        bounds = range(len(trajectory.calls), len(longer.calls))
        yield longer.chosen([*range(at), *(number for bound in bounds for number in (bound, *after))])
        return


def _at_bounds(schema: Schema, known: Any) -> Iterator[Any]:
    """Boundary values of a schema, and the known value with each value within it at its bounds, one at a time."""
    yield from map(whole, islice(boundary_values(schema), _VARIED))
    if isinstance(known, list) and known and isinstance(schema, dict) and "items" in schema:
        yield from ([inner, *known[1:]] for inner in _at_bounds(schema["items"], known[0]))
    elif isinstance(known, dict) and not is_reference(known):
        yield from _one_by_one(_at_bounds, schema, known)


def _one_by_one(
    make: Callable[[Schema, Any], Iterator[Any]], schema: Schema, known: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The known object with each of its properties as it is made from the property's schema and its known value."""
    for key, each in properties_of(schema).items():
        yield from ({**known, key: value} for value in make(each, known.get(key)))


def known_disturbed(knowledge: Knowledge) -> list[Schedule]:
    """A few known trajectories, each with an invalid call in its middle: without arguments, or with a wrong one."""
    found = []
    for trajectory in filter(lambda each: each.calls, known(knowledge)[:_KNOWN]):
        at = len(trajectory.calls) // 2
        call = trajectory.calls[min(at + 1, len(trajectory.calls)) - 1]
        invalid = {**call.arguments, next(iter(call.arguments), "unknown"): STRANGE}
        found += [Schedule((trajectory.with_noise(at, Call(call.name, wrong)),)) for wrong in ({}, invalid)]
    writing = _of_many_kinds(one for one in known(knowledge) if not all(is_reading(call) for call in one.calls))
    seen = set[tuple[str, str, bool]]()
    strange = islice((each for one in writing for each in _with_strange_names(one, seen)), _STRANGE_CALLS)
    writing = writing[:_STRANGE_ONES]
    spoilt = [each for one in writing for each in _with_one_spoilt(one)]
    damaged = islice((each for one in writing for each in _with_damaged_texts(one)), _STRANGE_CALLS)
    mixed = islice((each for one in writing for each in _with_crossed(one)), _STRANGE_CALLS)
    untimely = islice((each for one in writing for each in _at_a_wrong_time(one)), _STRANGE_CALLS)
    late = [each for one in writing for each in _once_all_is_done(knowledge, one)]
    own = [each for one in writing for each in _with_its_own_refused(one)]
    at_first = list(islice(_refused_at_first(knowledge), _KNOWN))
    return [
        *found,
        *(
            Schedule((trajectory,))
            for trajectory in (*spoilt, *untimely, *own, *at_first, *strange, *damaged, *mixed, *late)
        ),
    ]


def _of_many_kinds(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    """Reorder trajectories so that each new sequence of tools comes first."""
    return each_kind_first(lambda one: tuple(call.name for call in one.calls), trajectories)


def _with_one_spoilt(trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each tool that writes, the trajectory with its last call made before it, or after it, with each argument spoilt.

    What is left before it may be in its way, and what is left after it is not overwritten. In a list, a wrong member
    comes after right ones, since a tool may act on each before it reads the next.
    """
    last = {call.name: at for at, call in enumerate(trajectory.calls) if not is_reading(call)}
    for name, at in last.items():
        parameters, base = trajectory.row.parameters_of(name), trajectory.calls[at].arguments
        wrong = _one_by_one(_spoilt, parameters, base)
        spoilt = [Call(name, each) for each in wrong if not admits(parameters, resolve(each, []))]
        if spoilt:
            yield from (_reading_at(trajectory, place).with_noise(place, *spoilt) for place in (at, at + 1))


def _at_a_wrong_time(trajectory: Trajectory) -> Iterator[Trajectory]:
    """The trajectory with calls that the definitions allow, and the state may not.

    Each tool that writes is called right after the seed, just after its own call once more and after several like it, as
    where there are only so many of a thing, and before it with other members of its enums, and with numbers at their
    bounds. Those that are taken after all are left out once they are.
    """
    first = _first_writes(trajectory)
    early = [Call(name, resolve(trajectory.calls[at].arguments, [])) for name, at in first.items()]
    yield _reading_at(trajectory, 0).with_noise(0, *early)
    for name, at in first.items():
        parameters, base = trajectory.row.parameters_of(name), trajectory.calls[at].arguments
        yield _reading_at(trajectory, at + 1).with_noise(at + 1, trajectory.calls[at])
        several = trajectory.chosen([*range(at), *[at] * _SEVERAL, *range(at + 1, len(trajectory.calls))])
        yield _reading_at(several, at + _SEVERAL).with_noise(at + _SEVERAL, trajectory.calls[at])
        if others := [Call(name, each) for each in islice(_one_by_one(_others, parameters, base), _BOUNDS)]:
            yield _reading_at(trajectory, at).with_noise(at, *others)


def _first_writes(trajectory: Trajectory) -> dict[str, int]:
    """The first call of each tool that writes, by its number."""
    return {call.name: at for at, call in reversed(list(enumerate(trajectory.calls))) if not is_reading(call)}


def _with_its_own_refused(trajectory: Trajectory) -> Iterator[Trajectory]:
    """The trajectory with all writes on which no later call rests as ones to be refused, as some may have been before."""
    rested_on = {number for call in trajectory.calls for number, _ in passed(call.arguments)}
    free = {at for at, call in enumerate(trajectory.calls) if not is_reading(call) and at not in rested_on}
    if free:
        yield _reading_at(replace(trajectory, noise=trajectory.noise | free), len(trajectory.calls))


def _once_all_is_done(knowledge: Knowledge, trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each tool that writes, its first call once more at the end, as it was, and with one argument as other known calls have it.

    What was closed meanwhile can no longer be changed.
    """
    for name, at in _first_writes(trajectory).items():
        base, others = trajectory.calls[at].arguments, [trajectory.calls[at]]
        for other in knowledge.meaningful.get(name, ()):
            alike = base.keys() & other.keys() if isinstance(base, dict) and isinstance(other, dict) else ()
            calls = (Call(name, {**base, key: other[key]}) for key in sorted(alike) if other[key] != base[key])
            others += [call for call in calls if call not in others]
        end = len(trajectory.calls)
        yield _reading_at(trajectory, end).with_noise(end, *others[:_VARIED])


def _others(schema: Schema, known: Any) -> Iterator[Any]:
    """The other members of an enum, and the bounds of a number: there may be no such thing now, or not so much of it.

    A number that was left out is one that hardly anything has.
    """
    if isinstance(schema, dict):
        members = (*schema.get("enum", ()), *(schema[bound] for bound in _BOUNDED if bound in schema))
        yield from (member for member in members if member != known)
        if known is None and admits(schema, _FURTHER_ON) and not admits(schema, _UNKNOWN_NAME):
            yield _FURTHER_ON


def _refused_at_first(knowledge: Knowledge) -> Iterator[Trajectory]:
    """The sessions in which it was found out what tools accept, with what they refused then."""
    for one in (session.trajectory for session in knowledge.first_sessions):
        if one.noise and len(one.noise) < len(one.calls):
            yield _reading_at(one, len(one.calls))


def _reading_at(trajectory: Trajectory, at: int) -> Trajectory:
    """The trajectory with reads before call `at`, which the call may overwrite what they see of, and at its end.

    Some take no arguments, and others are its own, of what exists by then.
    """
    made, reads = len(trajectory.calls), bare_reads(trajectory.row)[:_AGAIN]
    there = (*reads, *trajectory.calls[at : at + 1])
    calls = enumerate(trajectory.calls)
    asking = {repr(call): number for number, call in calls if is_reading(call) and call not in there}
    own = [number for number in asking.values() if not needs_from(trajectory.calls[number].arguments, at)][-_AGAIN:]
    whole = reading_again(replace(trajectory, calls=(*trajectory.calls, *reads)))
    before = [*own, *range(made, made + len(reads))]
    return whole.chosen([*range(at), *before, *range(at, made), *range(made, len(whole.calls))])


def _spoilt(schema: Schema, known: Any) -> Iterator[Any]:
    """A wrong value, in a list after right ones, one of them new, and others that are nearly right.

    Those are a text that its enum has not, one that is too long or too short, and numbers just beyond the bounds, as of
    a place before the first.

    Then the known value with each value within it spoilt.
    """
    values = [known, *map(whole, islice(boundary_values(schema), _VARIED))]
    right = next((value for value in values if isinstance(value, list) and value), [])
    members = boundary_values(schema["items"]) if right and isinstance(schema, dict) and "items" in schema else ()
    new = [each for each in map(whole, islice(members, 2 * _VARIED)) if each not in right][:1]
    yield [*right, *new, STRANGE] if right else STRANGE
    if isinstance(schema, dict) and "enum" in schema and isinstance(known, str):
        yield _UNKNOWN_NAME
    if isinstance(schema, dict) and isinstance(text := resolve(known, []), str):
        yield from _of_wrong_length(schema, text)
    for bound, beyond in zip(_BOUNDED, (1, -1), strict=True):
        if isinstance(schema, dict) and is_number(schema.get(bound)):
            yield schema[bound] + beyond
    if isinstance(known, dict) and not is_reference(known):
        yield from _one_by_one(_spoilt, schema, known)


def _of_wrong_length(schema: Mapping[str, Any], known: str) -> Iterator[str]:
    """The text, made one character too long, and one too short."""
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(most, int) and 0 < most < _LONGEST:
        yield (known + "a" * most)[: most + 1]
    if isinstance(least, int) and 0 < least < _LONGEST:
        yield known[: least - 1]


def _with_crossed(trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each tool, the trajectory with calls that combine its values, repeating its reads at the end.

    The calls are also inserted after the last call of that tool, since a later one may end the episode, after which all
    calls are refused alike.
    """
    for name, calls in crossed(trajectory):
        end = len(trajectory.calls)
        last = max(at for at, call in enumerate(trajectory.calls) if call.name == name)
        linked = any(is_linked(call.arguments) for call in calls)
        for at in {end, end if linked else last + 1}:
            yield reading_again(trajectory).with_noise(at, *calls)


def _with_strange_names(trajectory: Trajectory, seen: set[tuple[str, str, bool]]) -> Iterator[Trajectory]:
    """For each text and number of a tool's last call, the trajectory with that call repeated with one that nobody knows.

    What is in `seen`, by tool, argument and whether it is a path, is left out, because another trajectory has tried it.

    Then the trajectory up to that call, with all of these in its place, because the call itself could hide a side
    effect such as a flag, or take away what they are about. Reads are repeated at the end.
    """
    reads, bare = reads_in(trajectory.calls)[-_AGAIN:], bare_reads(trajectory.row)[:_AGAIN]
    for at, call in reversed(list(enumerate(trajectory.calls))):
        several = list[Call]()
        for name, strange in () if is_reading(call) else _variants(_unknown, call.arguments, kinds=(str, int)):
            key = (call.name, name, f"{_UNKNOWN_NAME}/" in str(strange))
            if key not in seen and admits(trajectory.row.parameters_of(call.name), resolve(strange, [])):
                several.append(Call(call.name, strange))
                yield reading_again(trajectory).with_noise(at + 1, several[-1])
                seen.add(key)
        if several:
            before = trajectory.chosen([*range(at), *reads])
            yield replace(before, calls=(*before.calls, *bare)).with_noise(at, *several)


def _with_damaged_texts(trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each text of a tool's last calls, the trajectory with that call repeated once in each damaged form."""
    texts = damaged(trajectory)
    for at, call in _last_calls(trajectory):
        by_name: dict[str, list[Call]] = {}
        for text in texts:
            for name, arguments in _variants(_always(text), call.arguments):
                if admits(trajectory.row.parameters_of(call.name), resolve(arguments, [])):
                    by_name.setdefault(name, []).append(Call(call.name, arguments))
        yield from (reading_again(trajectory).with_noise(at + 1, *several) for several in by_name.values())


def _last_calls(trajectory: Trajectory) -> Iterator[tuple[int, Call]]:
    """The last calls of each tool with their indices, the very last first, since earlier ones may follow no read."""
    by_tool = grouped(lambda each: each[1].name, reversed(list(enumerate(trajectory.calls))))
    return round_robin(calls[:_PLACES] for calls in by_tool.values())


def reading_again(trajectory: Trajectory) -> Trajectory:
    """The trajectory with its last reads repeated at the end."""
    reads = [call for call in trajectory.calls if is_reading(call)]
    return replace(trajectory, calls=(*trajectory.calls, *reads[-_AGAIN:]))


def _unknown(value: str | int) -> str | int:
    """A name or number that nobody knows; for a path or a file, one in a folder that does not exist, so that earlier checks pass.

    The number is not far from the known one, which may say how long to wait.
    """
    if isinstance(value, int):
        return value + _FURTHER_ON
    return f"{_UNKNOWN_NAME}/{value.rpartition('/')[2]}" if "/" in value or _FILE.search(value) else _UNKNOWN_NAME


def _always(other: Any) -> Callable[[Any], Any]:
    return lambda _: other


def _variants(
    other: Callable[[Any], Any], value: Any, name: str = "", kinds: Collection[type] = (str,)
) -> Iterator[tuple[str, Any]]:
    """The variants of a value with one scalar of these types replaced, each with the name of its property.

    In a list, the changed member comes after the right ones, since a tool may act on each before it reads the next, and
    then in place of the first.
    """
    plain = stand_in(value) if is_reference(value) else value
    if type(plain) in kinds:
        yield name, other(plain)
    elif isinstance(plain, dict):
        for key, inner in value.items():
            yield from ((found, {**value, key: replaced}) for found, replaced in _variants(other, inner, key, kinds))
    elif isinstance(value, list) and value:
        for found, replaced in _variants(other, value[0], name, kinds):
            yield from ((found, [*value, replaced]), (found, [replaced, *value[1:]]))


def with_each_tool_invalid(knowledge: Knowledge) -> list[Schedule]:
    """What `known_disturbed` makes, and one session with a call of each tool without arguments.

    Then known calls made again with letters beyond ASCII, and calls with numbers far beyond what their schemas allow,
    between two whole ones, or with one value of another type.
    """
    found = known_disturbed(knowledge)
    for plain in known(knowledge)[:1]:
        bare = (Call(tool.name, {}) for tool in reversed(plain.row.tools))
        found.append(Schedule((plain.with_noise(len(plain.calls) // 2, *bare),)))
    for plain in known(knowledge)[:_KNOWN]:
        foreign = [call for call in with_letters_beyond_ascii(plain).calls if call not in plain.calls]
        found += [Schedule((plain.with_noise(len(plain.calls), *foreign),))] if foreign else []
    seen = set[tuple[str, str]]()
    wrong = (each for one in known(knowledge) for each in _with_one_wrong(one, seen))
    return [*found, *(Schedule((each,)) for each in islice(wrong, _STRANGE_CALLS))]


def _with_one_wrong(trajectory: Trajectory, seen: set[tuple[str, str]]) -> Iterator[Trajectory]:
    """For each argument, the trajectory with a call repeated just after it with wrong numbers or texts there.

    Only values that the schema rejects are used, and days and times that do not exist. Without bounds, a huge number could
    be taken seriously, as a time to wait or a number of dice to throw.
    """
    for at, call in enumerate(trajectory.calls):
        wrong: dict[str, list[Call]] = {}
        changes = [(kinds, _always(each)) for kinds, values in _WRONG.items() for each in values]
        for kinds, change in (*changes, ((int,), _BETWEEN.__add__)):
            for name, arguments in _variants(change, call.arguments, kinds=kinds):
                if not admits(trajectory.row.parameters_of(call.name), resolve(arguments, [])):
                    wrong.setdefault(name, []).append(Call(call.name, arguments))
        for name, arguments in _variants(_beyond, call.arguments):
            if resolve(arguments, []) != resolve(call.arguments, []):
                wrong.setdefault(name, []).append(Call(call.name, arguments))
        for name, calls in wrong.items():
            if (call.name, name) not in seen:
                yield trajectory.with_noise(at + 1, *calls)
            seen.add((call.name, name))


def _beyond(text: str) -> str:
    """`9999-99-99` for a day, and in the same way for all that is written so; other texts are left as they are."""
    return re.sub(r"\d", "9", text) if _DIGITS_APART.fullmatch(text) else text


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


def first_calls(
    found: Iterable[Trajectory], wanted: Callable[[Call], bool], most: int | None = None
) -> Iterator[tuple[Trajectory, int]]:
    """For each tool, its first wanted call among the first `most` of a trajectory, as trajectory and index."""
    seen = set[str]()
    for one in found:
        for at, call in enumerate(one.calls[:most]):
            if call.name not in seen and wanted(call):
                seen.add(call.name)
                yield one, at


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


def calling_more(found: Iterable[Trajectory], some: Iterable[Trajectory]) -> list[Trajectory]:
    """Those of what is `found` that call a tool which neither `some` nor those before them do."""
    called, more = {call.name for each in some for call in each.calls}, list[Trajectory]()
    for each in found:
        if names := {call.name for call in each.calls} - called:
            more.append(each)
            called |= names
    return more


def around(knowledge: Knowledge, crowd: int) -> list[Schedule]:
    """After a trajectory's calls, a crowd of sessions that make one call each; then its reads again, and its verify."""
    found = known(knowledge)
    if not found:
        return []
    patient, other = found[0], found[1 % len(found)]
    reads = [call for call in patient.calls if is_reading(call)] or bare_reads(patient.row)
    whole = replace(patient, calls=(*patient.calls, *reads[-_AGAIN:]))
    return [crowded_by(whole, other.without(range(1, len(other.calls))), crowd, 1 + len(patient.calls))]


def in_turn(trajectories: Sequence[Trajectory]) -> Iterator[int]:
    """The order that takes one step of each trajectory in turn until all have ended."""
    for step in range(max(trajectory.steps for trajectory in trajectories)):
        yield from (turn for turn, trajectory in enumerate(trajectories) if step < trajectory.steps)


def bare_reads(row: Row) -> list[Call]:
    """Calls that need to know nothing of the row's data, of tools that read or take no arguments."""
    tools = [tool for tool in row.tools if is_read(tool.name) or not properties_of(tool.parameters)]
    calls = ((tool, plain_arguments(tool)) for tool in tools)
    return [
        Call(tool.name, plain)
        for tool, plain in calls
        if plain is not None and not any(_is_meaningless(tool, key, value) for key, value in plain.items())
    ]


#: Keywords of a text's schema that make its minimal value meaningful.
_SAYS_WHICH = frozenset({"enum", "const", "pattern"})


def _is_meaningless(tool: Tool, key: str, value: Any) -> bool:
    """Whether an argument is a text or a list whose minimal value means nothing."""
    schema = properties_of(tool.parameters).get(key)
    says_which = isinstance(schema, dict) and not _SAYS_WHICH.isdisjoint(schema)
    return isinstance(value, str | list) and not (isinstance(value, str) and says_which)


def plain_arguments(tool: Tool) -> dict[str, Any] | None:
    """The minimal arguments of a tool, without optional ones and with nulls where allowed; None if there are none."""
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


def some(arguments: Any) -> Any:
    """The arguments with no number 0, each one by one larger, and each flag set: what is taken may do nothing otherwise.

    So may an amount of 0, a swap of 1 and 1, or what is frozen where it is not.
    """
    more = count()

    def of(value: Any, _: Way) -> Any:
        if value is False:
            return True
        return value + (not value) + next(more) if is_numeric(value) else value

    return mapped(arguments, of, leaf=is_reference)


def made_up(knowledge: Knowledge, row: Row) -> Trajectory:
    """A minimal call of each tool, writes before reads, with ids taken from the replies to earlier calls."""
    writes, reads = list[Call](), list[Call]()
    for tool in row.tools:
        known = [each for each in knowledge.meaningful.get(tool.name, ()) if admits(tool.parameters, each)]
        try:
            arguments = known[0] if known else minimal(tool.parameters)
        except NoValue:
            continue
        call = Call(tool.name, arguments)
        (reads if is_reading(call) else writes).append(call)
    tools = {tool.name: tool for tool in row.tools}
    calls: list[Call] = []
    for call in (*writes[:_MADE_UP], *reads[:_MADE_UP]):
        calls.append(_linked(call, tools[call.name], calls, knowledge))
    return Trajectory(row, tuple(calls), answer=next(iter(knowledge.answers.get(row, ())), PLAIN_ANSWER))


def _linked(call: Call, tool: Tool, calls: Sequence[Call], knowledge: Knowledge) -> Call:
    """The call with what earlier ones return, and, if it writes, with an amount of something rather than of nothing."""
    arguments = dict(call.arguments) if isinstance(call.arguments, dict) else {}
    for key, value in arguments.items():
        _, named = references(key, value, tool, calls, knowledge)
        if named:
            arguments[key] = named[-1].as_json()
    more = arguments if is_reading(call) else some(arguments)
    return Call(call.name, more if admits(tool.parameters, resolve(more, [])) else arguments)
