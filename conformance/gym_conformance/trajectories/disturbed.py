"""Known trajectories with calls in their midst that are likely to be refused, and must leave no trace then."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import each_kind_first, grouped, round_robin
from gym_conformance.trajectories.bounds import BOUNDS, VARIED, one_by_one
from gym_conformance.trajectories.crossing import crossed
from gym_conformance.trajectories.damage import damaged
from gym_conformance.trajectories.generate import Knowledge, is_reading, reads_in
from gym_conformance.trajectories.known import AGAIN, KNOWN, known, reading_again
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.other_values import with_letters_beyond_ascii
from gym_conformance.trajectories.trajectory import (
    STRANGE,
    Schedule,
    Trajectory,
    is_linked,
    is_reference,
    needs_from,
    passed,
    resolve,
    stand_in,
)
from gym_schemas import Schema, admits, boundary_values, whole

#: Keywords of a number's bounds, the one first that asks for the most.
_BOUNDED = ("maximum", "minimum")

#: Trajectories whose calls are repeated with damaged texts, and how many of these calls are made, as of those with
#: unknown names.
_STRANGE_ONES, _STRANGE_CALLS = 3, 24

#: Calls of one tool after each of which a damaged one is tried.
_PLACES = 3

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


def known_disturbed(knowledge: Knowledge) -> list[Schedule]:
    """A few known trajectories, each with an invalid call in its middle: without arguments, or with a wrong one."""
    found = []
    for trajectory in filter(lambda each: each.calls, known(knowledge)[:KNOWN]):
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
    mixed = islice((each for one in writing for each in _with_crossed(knowledge, one)), _STRANGE_CALLS)
    untimely = islice((each for one in writing for each in _at_a_wrong_time(one)), _STRANGE_CALLS)
    late = [each for one in writing for each in _once_all_is_done(knowledge, one)]
    own = [each for one in writing for each in _with_its_own_refused(one)]
    at_first = list(islice(_refused_at_first(knowledge), KNOWN))
    return [
        *found,
        *(
            Schedule((trajectory,))
            for trajectory in (*spoilt, *untimely, *own, *at_first, *strange, *damaged, *mixed, *late)
        ),
    ]


def with_each_tool_invalid(knowledge: Knowledge) -> list[Schedule]:
    """What `known_disturbed` makes, and one session with a call of each tool without arguments.

    Then known calls made again with letters beyond ASCII, and calls with numbers far beyond what their schemas allow,
    between two whole ones, or with one value of another type.
    """
    found = known_disturbed(knowledge)
    for plain in known(knowledge)[:1]:
        bare = (Call(tool.name, {}) for tool in reversed(plain.row.tools))
        found.append(Schedule((plain.with_noise(len(plain.calls) // 2, *bare),)))
    for plain in known(knowledge)[:KNOWN]:
        foreign = [call for call in with_letters_beyond_ascii(plain).calls if call not in plain.calls]
        found += [Schedule((plain.with_noise(len(plain.calls), *foreign),))] if foreign else []
    seen = set[tuple[str, str]]()
    wrong = (each for one in known(knowledge) for each in _with_one_wrong(one, seen))
    return [*found, *(Schedule((each,)) for each in islice(wrong, _STRANGE_CALLS))]


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
        wrong = one_by_one(_spoilt, parameters, base)
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
        if others := [Call(name, each) for each in islice(one_by_one(_others, parameters, base), BOUNDS)]:
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
        yield _reading_at(trajectory, end).with_noise(end, *others[:VARIED])


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
    made, reads = len(trajectory.calls), bare_reads(trajectory.row)[:AGAIN]
    there = (*reads, *trajectory.calls[at : at + 1])
    calls = enumerate(trajectory.calls)
    asking = {repr(call): number for number, call in calls if is_reading(call) and call not in there}
    own = [number for number in asking.values() if not needs_from(trajectory.calls[number].arguments, at)][-AGAIN:]
    whole = reading_again(replace(trajectory, calls=(*trajectory.calls, *reads)))
    before = [*own, *range(made, made + len(reads))]
    return whole.chosen([*range(at), *before, *range(at, made), *range(made, len(whole.calls))])


def _spoilt(schema: Schema, known: Any) -> Iterator[Any]:
    """A wrong value, in a list after right ones, one of them new, and others that are nearly right.

    Those are a text that its enum has not, one that is too long or too short, and numbers just beyond the bounds, as of
    a place before the first.

    Then the known value with each value within it spoilt.
    """
    values = [known, *map(whole, islice(boundary_values(schema), VARIED))]
    right = next((value for value in values if isinstance(value, list) and value), [])
    members = boundary_values(schema["items"]) if right and isinstance(schema, dict) and "items" in schema else ()
    new = [each for each in map(whole, islice(members, 2 * VARIED)) if each not in right][:1]
    yield [*right, *new, STRANGE] if right else STRANGE
    if isinstance(schema, dict) and "enum" in schema and isinstance(known, str):
        yield _UNKNOWN_NAME
    if isinstance(schema, dict) and isinstance(text := resolve(known, []), str):
        yield from _of_wrong_length(schema, text)
    for bound, beyond in zip(_BOUNDED, (1, -1), strict=True):
        if isinstance(schema, dict) and is_number(schema.get(bound)):
            yield schema[bound] + beyond
    if isinstance(known, dict) and not is_reference(known):
        yield from one_by_one(_spoilt, schema, known)


def _of_wrong_length(schema: Mapping[str, Any], known: str) -> Iterator[str]:
    """The text, made one character too long, and one too short."""
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(most, int) and 0 < most < _LONGEST:
        yield (known + "a" * most)[: most + 1]
    if isinstance(least, int) and 0 < least < _LONGEST:
        yield known[: least - 1]


def _with_crossed(knowledge: Knowledge, trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each tool, the trajectory with calls that combine its values, repeating its reads at the end.

    The calls are also inserted after the last call of that tool, since a later one may end the episode, after which all
    calls are refused alike. A tool that only other trajectories call may refuse what this one is about: an order that
    was delivered cannot be cancelled.
    """
    for name, calls in crossed(trajectory, _of_other_tools(knowledge, trajectory)):
        end = len(trajectory.calls)
        last = max((at for at, call in enumerate(trajectory.calls) if call.name == name), default=end - 1)
        linked = any(is_linked(call.arguments) for call in calls)
        for at in {end, end if linked else last + 1}:
            yield reading_again(trajectory).with_noise(at, *calls)


def _of_other_tools(knowledge: Knowledge, trajectory: Trajectory) -> Iterator[Call]:
    """A known call of each tool of the row that the trajectory does not call."""
    called = {call.name for call in trajectory.calls}
    for tool in trajectory.row.tools:
        if tool.name not in called:
            yield from (Call(tool.name, resolve(each, [])) for each in knowledge.meaningful.get(tool.name, ())[:1])


def _with_strange_names(trajectory: Trajectory, seen: set[tuple[str, str, bool]]) -> Iterator[Trajectory]:
    """For each text and number of a tool's last call, the trajectory with that call repeated with one that nobody knows.

    What is in `seen`, by tool, argument and whether it is a path, is left out, because another trajectory has tried it.

    Then the trajectory up to that call, with all of these in its place, because the call itself could hide a side
    effect such as a flag, or take away what they are about. Reads are repeated at the end.
    """
    reads, bare = reads_in(trajectory.calls)[-AGAIN:], bare_reads(trajectory.row)[:AGAIN]
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
