"""Words that only one session was ever told: where another session gets one back, the two are not apart. Pure.

No statistics are needed: a word is drawn from 26^10, and a session is held only to those that it did not send itself.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.trajectories.first import in_turn, known
from gym_conformance.trajectories.generate import Knowledge, is_read, references, trajectories
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_reference, of_session

_MARKER = re.compile(r"zq[a-z]{10}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: What a definition may say of a text that takes any word of ours.
_FREE = frozenset({"type", "description", "title", "default", "minLength", "maxLength"})
_LENGTH = 12

#: Texts of a row that are marked at most, and how long one may be: rows of megabytes are not the rule.
_MARKED, _LONG = 40, 2000

#: The row's own fields are marked, and not what the policy or the collector reads.
_NOT_OWN = frozenset({"responses_create_params", "agent_ref"})

_WORD = re.compile(r"[A-Za-z]{3,20}")


def markers(text: str) -> frozenset[str]:
    """All markers in a text, whatever became of their case."""
    return frozenset(_MARKER.findall(text.lower()))


@dataclass
class Marking:
    """Marks what one session is told: equal texts become equal markers, so that a read finds what a write wrote.

    Attributes:
        draw: draws the markers.
        rows: which texts of the row are marked: those of several words, all of letters, or none.
        known: also texts that stand in the row, which may be names of what is there.
    """

    draw: Random
    rows: re.Pattern[str] | None = None
    known: bool = False
    told: dict[str, str] = field(default_factory=dict)

    def marked(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with markers in the place of free texts."""
        row = trajectory.row if self.rows is None else self._row(trajectory.row)
        tools = {tool.name: tool.parameters for tool in row.tools}
        text = json.dumps(_own(row), ensure_ascii=False)
        calls = (
            Call(call.name, self._arguments(call.arguments, tools.get(call.name, {}), text))
            for call in trajectory.calls
        )
        return replace(trajectory, row=row, calls=tuple(calls))

    def _marker(self) -> str:
        return "zq" + "".join(self.draw.choices(_LETTERS, k=10))

    def _row(self, row: Row) -> Row:
        left = _MARKED

        def marked(value: Any) -> Any:
            nonlocal left
            if isinstance(value, dict):
                return {key: marked(inner) for key, inner in value.items()}
            if isinstance(value, list):
                return [marked(inner) for inner in value]
            if (
                not isinstance(value, str)
                or not left
                or len(value) > _LONG
                or not (self.rows or _WORD).fullmatch(value)
            ):
                return value
            left -= 1
            space = " " if " " in value else ""
            return self.told.setdefault(value, f"{value}{space}{self._marker()}")

        return replace(row, data={**row.data, **marked(_own(row))})

    def _arguments(self, arguments: Any, schema: Mapping[str, Any], row: str) -> Any:
        if isinstance(arguments, list):
            items = schema.get("items")
            return [self._arguments(each, items if isinstance(items, dict) else {}, row) for each in arguments]
        if isinstance(arguments, dict) and not is_reference(arguments):
            properties = schema.get("properties")
            known = properties if isinstance(properties, dict) else {}
            return {key: self._arguments(each, known.get(key) or {}, row) for key, each in arguments.items()}
        if not isinstance(arguments, str):
            return arguments
        if arguments in self.told:
            return self.told[arguments]
        if not _takes_any(schema) or (not self.known and arguments in row):
            return arguments
        return self.told.setdefault(arguments, self._marker())


def _own(row: Row) -> dict[str, Any]:
    return {key: value for key, value in row.data.items() if key not in _NOT_OWN and not key.startswith("_ng_")}


def _takes_any(schema: Any) -> bool:
    """Whether a text's definition takes any word."""
    if not isinstance(schema, dict) or schema.get("type") != "string" or not schema.keys() <= _FREE:
        return False
    longest = schema.get("maxLength", _LENGTH)
    return isinstance(longest, int) and longest >= _LENGTH


_TEXTS = re.compile(r"\S+( \S+)+", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_]{3,}( \S+)*")

#: How a session's row and calls are marked, one after the other.
_WAYS = ((None, False), (None, True), (_TEXTS, False), (_WORDS, False), (_WORDS, True))


def told_apart(knowledge: Knowledge, draw: Random) -> list[Schedule]:
    """Two sessions, each with markers of its own: one after the other and side by side, on one row and on two."""
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
    return schedules


@st.composite
def any_told_apart(draw: st.DrawFn, knowledge: Knowledge) -> Schedule:
    """Any two sessions, each with markers of its own, in any order of their steps; the second asks for the first's."""
    drawn = Random(draw(st.integers(0, 2**32)))  # noqa: S311 - words, no secrets
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


def asking(first: Trajectory, second: Trajectory, knowledge: Knowledge) -> Trajectory:
    """A session on the second's row that asks for what the first was given: its reads, with its ids and cursors."""
    told = [call for call in first.calls if not markers(json.dumps(call.arguments))]
    reads = [Call(call.name, of_session(call.arguments, 0)) for call in told if is_read(call.name)]
    others = [Call(call.name, of_session(call.arguments, 0)) for call in told if not is_read(call.name)]
    return replace(second, calls=(*_followed(first, second, knowledge), *reads, *second.calls, *others))


def _followed(first: Trajectory, second: Trajectory, knowledge: Knowledge) -> Sequence[Call]:
    """A call of each tool that takes what the first session's calls return."""
    made: list[Call] = []
    for tool in second.row.tools:
        known_arguments: Iterable[Any] = [
            call.arguments for call in (*first.calls, *second.calls) if call.name == tool.name
        ] or knowledge.recorded.get(tool.name, ())
        for arguments in list(known_arguments)[:1]:
            if not isinstance(arguments, dict) or markers(json.dumps(arguments)):
                continue
            chosen = dict(arguments)
            for key, value in arguments.items():
                plain = value if not is_reference(value) else value["$reply"].get("otherwise")
                _, named = references(key, plain, tool, first.calls, knowledge)
                if named:
                    chosen[key] = named[-1].as_json()
            if chosen != arguments:
                made.append(Call(tool.name, of_session(chosen, 0)))
    return made
