"""Words that only one session was ever sent: if another session gets one back, the two are not isolated. Pure.

No statistics are needed: a word is one of 26^10, and only words that a session did not send itself count against it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random
from typing import Any

from hypothesis import strategies as st

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.trajectories.first import in_turn
from gym_conformance.trajectories.generate import Knowledge, is_reading, references, trajectories
from gym_conformance.trajectories.known import calling_more, first_calls, known
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.programs import is_program
from gym_conformance.trajectories.renaming import own, takes_any_word, word
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_reference, of_first, resolve, stand_in
from gym_schemas import admits, mapped, properties_of, scalars, walk

_MARKER = re.compile(r"zq[a-z]{10}")
#: How many texts of a row are marked, and how long they may be, since a row may have megabytes.
_MARKED, _LONG = 40, 2000

_WORD = re.compile(r"[A-Za-z]{3,20}")

#: A name that no program uses by accident.
_SET = "set_by_gym_conformance"


def markers(text: str) -> frozenset[str]:
    """All markers in a text, in lower case."""
    return frozenset(_MARKER.findall(text.lower()))


@dataclass
class Marking:
    """Marks one session's texts: equal texts become equal markers, so that a read finds what a write wrote.

    Attributes:
        draw: draws the markers.
        rows: which texts of the row are marked: those of several words, all of letters, or none.
        known: whether to mark texts too that occur in the row, which may be names of existing things.
    """

    draw: Random
    rows: re.Pattern[str] | None = None
    known: bool = False
    assigned: dict[str, str] = field(default_factory=dict)

    def marked(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with markers in place of free texts."""
        row = trajectory.row if self.rows is None else self._row(trajectory.row)
        text = json.dumps(own(row), ensure_ascii=False)
        calls = (
            Call(call.name, self._arguments(call.arguments, row.parameters_of(call.name), text))
            for call in trajectory.calls
        )
        return replace(trajectory, row=row, calls=tuple(calls))

    def _row(self, row: Row) -> Row:
        left, listed = _MARKED, _listed(row)

        def marked(value: Any, _: object) -> Any:
            nonlocal left
            free = isinstance(value, str) and len(value) <= _LONG and (self.rows or _WORD).fullmatch(value)
            if not free or not left or value in listed:
                return value
            left -= 1
            space = " " if " " in value else ""
            return self.assigned.setdefault(value, f"{value}{space}{word(self.draw)}")

        return replace(row, data={**row.data, **mapped(own(row), marked)})

    def _arguments(self, arguments: Any, schema: Mapping[str, Any], row: str) -> Any:
        if isinstance(arguments, list):
            items = schema.get("items")
            return [self._arguments(each, items if isinstance(items, dict) else {}, row) for each in arguments]
        if isinstance(arguments, dict) and not is_reference(arguments):
            known = properties_of(schema)
            return {key: self._arguments(each, known.get(key) or {}, row) for key, each in arguments.items()}
        if not isinstance(arguments, str):
            return arguments
        if arguments in self.assigned:
            return self.assigned[arguments]
        if not takes_any_word(schema) or (not self.known and arguments in row):
            return arguments
        return self.assigned.setdefault(arguments, word(self.draw))


def _listed(row: Row) -> frozenset[str]:
    """Words that the row's tools list: a `mon` in the row must stay if the schema lists five days."""
    enums = (node.get("enum") for tool in row.tools for _, node in walk(tool.parameters))
    return frozenset(each for enum in enums if isinstance(enum, list) for each in enum if isinstance(each, str))


def _without_lists(trajectory: Trajectory) -> Trajectory:
    """The trajectory without optional lists and objects in its writes: their default may be shared between sessions."""

    def less(call: Call) -> Call:
        schema = trajectory.row.parameters_of(call.name)
        if is_reading(call) or not isinstance(call.arguments, dict):
            return call
        kept = {
            key: each for key, each in call.arguments.items() if is_reference(each) or not isinstance(each, list | dict)
        }
        return Call(call.name, kept) if admits(schema, resolve(kept, [])) else call

    return replace(trajectory, calls=tuple(map(less, trajectory.calls)))


_TEXTS = re.compile(r"\S+( \S+)+", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_]{3,}( \S+)*")

#: Concurrent identical sessions, and reads at the end of each; trajectories that call other tools than the first.
_AT_ONCE, _READS, _MORE = 4, 4, 4

#: How a session's row and calls are marked: `Marking`'s `rows` and `known`.
_WAYS = ((None, False), (None, True), (_TEXTS, False), (_WORDS, False), (_WORDS, True))


def marked_sessions(knowledge: Knowledge, draw: Random) -> list[Schedule]:
    """Sessions with their own markers: two in sequence and interleaved, on one row and on two; four concurrently.

    In some, the second asks for what was returned to the first. Two of them omit the optional lists and objects of
    their writes. If a tool runs programs, one session prints a variable that another has set.
    """
    found = known(knowledge)
    if not found:
        return []
    one, two = found[0], found[1 % len(found)]
    schedules = []
    for rows, everything in _WAYS:
        first = Marking(draw, rows, everything).marked(one)
        second = Marking(draw, rows, everything).marked(two)
        same = Marking(draw, rows, everything).marked(one)
        schedules += [
            Schedule((first, same)),
            Schedule((first, second), tuple(in_turn((first, second)))),
            _seeds_first(first, asking(first, two, knowledge)),
        ]
    for each in calling_more(found, [one])[:_MORE]:  # their tools may return ids that these do not
        first = Marking(draw).marked(each)
        schedules.append(_seeds_first(first, asking(first, two, knowledge)))
    fewer = (less for each in found if (less := _without_lists(each)).calls != each.calls)
    for less in islice(fewer, 1):
        schedules.append(Schedule(tuple(Marking(draw, _WORDS).marked(less) for _ in range(2))))
    marked = (at_once(each, draw, everything=everything) for each in (one, two) for everything in (False, True))
    return [schedule for schedule in (*schedules, *marked, *_of_programs(found, draw)) if _is_marked(schedule)]


def _of_programs(found: Iterable[Trajectory], draw: Random) -> Iterator[Schedule]:
    """A program that sets a variable, and another session's that prints it: a shared interpreter would know it."""
    for one, at in first_calls(found, lambda call: any(_is_program(value) for value, _ in scalars(call.arguments))):
        programs = f'{_SET} = "{word(draw)}"', f"print({_SET})"
        calls = [Call(one.calls[at].name, mapped(one.calls[at].arguments, _instead(text))) for text in programs]
        yield Schedule(tuple(Trajectory(one.row, (call,)) for call in calls))


def _instead(program: str) -> Callable[[Any, object], Any]:
    return lambda value, _: program if _is_program(value) else value


def _is_program(value: Any) -> bool:
    return isinstance(value, str) and is_program(value)


def _is_marked(schedule: Schedule) -> bool:
    """Whether the schedule contains any marker."""
    texts = ([own(one.row), *(call.arguments for call in one.calls)] for one in schedule.trajectories)
    return any(markers(json.dumps(each)) for each in texts)


def at_once(trajectory: Trajectory, draw: Random, *, everything: bool) -> Schedule:
    """Concurrent sessions that make the same calls, each with its own markers, and then read."""
    reads = [call for call in bare_reads(trajectory.row) if call not in trajectory.calls]
    whole = replace(trajectory, calls=(*trajectory.calls, *reads[:_READS]))
    sessions = (Marking(draw, None, everything).marked(whole) for _ in range(_AT_ONCE))
    return Schedule(tuple(sessions), concurrent=True)


@st.composite
def any_marked_sessions(draw: st.DrawFn, knowledge: Knowledge) -> Schedule:
    """Draw sessions with their own markers: two in any order, two of which one asks for the other's, or several."""
    drawn = Random(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        return at_once(draw(trajectories(knowledge, min_calls=1)), drawn, everything=draw(st.booleans()))
    rows, everything = draw(st.sampled_from(_WAYS))
    one, two = [
        Marking(drawn, rows, everything).marked(draw(trajectories(knowledge, min_calls=1))) for _session in range(2)
    ]
    asks: bool = draw(st.booleans())
    if asks:
        return _seeds_first(one, asking(one, two, knowledge))
    turns = [turn for turn, trajectory in enumerate((one, two)) for _ in range(trajectory.steps)]
    return Schedule((one, two), tuple(draw(st.permutations(turns))))


def _seeds_first(one: Trajectory, two: Trajectory) -> Schedule:
    return Schedule((one, two), (0, 1, *[0] * (one.steps - 2), *[1] * (two.steps - 1), 0))


#: Sample values, by type, for optional arguments that take a value from a reply.
_SAMPLE = {"string": "", "integer": 0}


def asking(first: Trajectory, second: Trajectory, knowledge: Knowledge) -> Trajectory:
    """A session on the second's row that reads what the first was given, with the first's ids, cursors and names."""
    reads = [Call(call.name, of_first(call.arguments)) for call in first.calls if is_reading(call)]
    unmarked = [call for call in first.calls if not markers(json.dumps(call.arguments))]
    others = [Call(call.name, of_first(call.arguments)) for call in unmarked if not is_reading(call)]
    return replace(second, calls=(*_followed(first, second, knowledge), *reads, *second.calls, *others))


def _followed(first: Trajectory, second: Trajectory, knowledge: Knowledge) -> Sequence[Call]:
    """A call of each tool that accepts values returned to the first session, optional arguments too."""
    made: list[Call] = []
    for tool in second.row.tools:
        known_arguments: Iterable[Any] = [
            call.arguments for call in (*first.calls, *second.calls) if call.name == tool.name
        ] or knowledge.meaningful.get(tool.name, ())
        for arguments in list(known_arguments)[:1]:
            if not isinstance(arguments, dict) or markers(json.dumps(arguments)):
                continue
            chosen = dict(arguments)
            for key, definition in properties_of(tool.parameters).items():
                known_value = arguments.get(
                    key, _SAMPLE.get(str(definition.get("type"))) if isinstance(definition, dict) else None
                )
                value = stand_in(known_value) if is_reference(known_value) else known_value
                _, named = references(key, value, tool, first.calls, knowledge)
                if named:
                    chosen[key] = named[-1].as_json()
            if chosen != arguments:
                made.append(Call(tool.name, of_first(chosen)))
    return made


def renewed(schedule: Schedule, draw: Random) -> Schedule:
    """The schedule with new markers, so that leftovers of an earlier try are not mistaken for this one's."""
    new: dict[str, str] = {}

    def renewed_text(value: Any, _: object) -> Any:
        found = isinstance(value, str)
        return _MARKER.sub(lambda marker: new.setdefault(marker[0], word(draw)), value) if found else value

    def renew(value: Any) -> Any:
        return mapped(value, renewed_text)

    rows = {trajectory.row: trajectory.row for trajectory in schedule.trajectories}
    rows = {row: replace(row, data=renew(row.data)) if markers(json.dumps(own(row))) else row for row in rows}
    trajectories = (
        replace(one, row=rows[one.row], calls=tuple(Call(call.name, renew(call.arguments)) for call in one.calls))
        for one in schedule.trajectories
    )
    return replace(schedule, trajectories=tuple(trajectories))
