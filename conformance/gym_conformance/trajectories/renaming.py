"""The same trajectory with new names that were never used before. Pure.

A sound server answers alike whatever the names are, once they are translated back. A server on which an earlier session
leaves something knows the names which that session used, and no others.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from random import Random, SystemRandom
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.grouping import first_of_each
from gym_conformance.trajectories.generate import is_reading
from gym_conformance.trajectories.names_of_ids import ends_in_id
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, stand_in
from gym_schemas import Way, admits, mapped, name_of, properties_of, scalars

#: Maps texts or numbers of the trajectory to the new ones that replace them.
Names = Mapping[Any, Any]

#: The longest text that may be a name.
_SHORT = 80

#: Bounds on the length of a word within a longer text, such as a title, that may be searched for.
_SPOKEN, _LONG = 3, 2000

#: How many texts of a shape must exist, so that a new one is likely unused; how many drawn ones the schema must accept.
_SHAPES, _DRAWS = 200, 8

_LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: The length of a new word, and the range of a new number.
_WORD = 12
_LEAST, _MOST = 100_000, 999_999_999

#: Keywords that the schema of a text may have if it takes any word.
FREE = frozenset({"type", "description", "title", "default", "minLength", "maxLength"})

#: The row's fields that are not renamed: the policy or the collector reads them.
_NOT_OWN = frozenset({"responses_create_params", "agent_ref"})

#: A date or a time is not a name, and cannot be replaced by a word; a day can be by another one.
_DATE = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})([T ].*)?|\d{1,2}:\d{2}(:\d{2})?")

#: The first and the last new day: all libraries can handle what is between them.
_FIRST_DAY, _LAST_DAY = date(1700, 1, 1), date(2250, 12, 31)

_NAMED_LIKE_IDS = re.compile(r"(^|_)(ids|number|no|key|code|book|item)$", re.IGNORECASE)


def is_named_like_id(name: str) -> bool:
    """Whether a field with this name may hold an id rather than an amount."""
    return ends_in_id(name) or _NAMED_LIKE_IDS.search(name) is not None


def own(row: Row) -> dict[str, Any]:
    """The row's own fields."""
    return {key: value for key, value in row.data.items() if key not in _NOT_OWN and not key.startswith("_ng_")}


def shared_names(rows: Sequence[Row]) -> list[tuple[str, Row, Row]]:
    """Texts that two otherwise different rows share in fields of their own, ids first, each with the two rows.

    Numbers are left out: another one might be far too large an amount.
    """
    having: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        for name, value in _fields(own(row)):
            if isinstance(value, str) and _SPOKEN <= len(value) <= _SHORT:
                having.setdefault((name, value), []).append(row)
    found = [
        (name, value, first, other)
        for (name, value), (first, *others) in having.items()
        for other in others[:1]
        if own(first) != own(other)
    ]
    found.sort(key=lambda each: not is_named_like_id(each[0]))
    return [each[1:] for each in first_of_each(lambda each: each[0], found).values()]


def ids_of(row: Row) -> frozenset[Any]:
    """Ids in the row's own fields, under which a server may store what belongs to the task."""
    fields = (value for name, value in _fields(own(row)) if is_named_like_id(name))
    return frozenset(value for value in fields if isinstance(value, str) and _SPOKEN <= len(value) <= _SHORT)


def sentences_of(row: Row) -> frozenset[str]:
    """Texts of several words in the row's own fields: unlike a word, such as the name of a language, each may be any text."""
    return frozenset(text for text in texts_of(row) if len(text.split()) > 1)


def texts_of(row: Row) -> frozenset[str]:
    """Texts in the row's own fields."""
    texts = (value for value, _ in scalars(own(row)) if isinstance(value, str))
    return frozenset(text for text in texts if len(text) <= _LONG)


def _fields(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        yield from _fields(value) if isinstance(value, dict) else [(name, value)]


def takes_any_word(schema: Any) -> bool:
    """Whether a text's schema accepts any word; it may accept null as well."""
    if not isinstance(schema, dict):
        return False
    for key in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(key), list) and schema.keys() <= FREE | {key}:
            return any(map(takes_any_word, branches)) and len(branches) - branches.count({"type": "null"}) == 1
    if schema.get("type") not in ("string", ["string", "null"], ["null", "string"]) or not schema.keys() <= FREE:
        return False
    longest = schema.get("maxLength", _WORD)
    return isinstance(longest, int) and longest >= _WORD


#: Letters of a text that can be spelled in so many ways that hardly any comes twice.
_SPELLED = 12

#: Draws values that nobody has drawn before, not even a process that this one was forked from.
_ANY: Final = SystemRandom()


def word(draw: Random = _ANY) -> str:
    """A word that was never used before."""
    return "zq" + "".join(draw.choices(_LETTERS, k=_WORD - 2))


def names_in(trajectory: Trajectory) -> tuple[frozenset[Any], ...]:
    """Sets of names that may be replaced, most promising first: texts and ids, texts, texts not found in the row."""
    found = {
        (name, value)
        for name, value, schema in arguments_of(trajectory.row, trajectory.calls)
        if _is_name(value, schema) or _is_id(name, value, schema)
    }
    texts = frozenset(value for _, value in found if isinstance(value, str))
    every = texts | {value for _, value in found if not isinstance(value, str)}
    row = json.dumps(own(trajectory.row), ensure_ascii=False)
    novel = frozenset(text for text in texts if text not in row)
    return tuple(dict.fromkeys(names for names in (every, texts, novel) if names))


def days_in(trajectory: Trajectory) -> frozenset[str]:
    """Days, and times on a day, in texts whose schema takes other days."""
    found = arguments_of(trajectory.row, trajectory.calls)
    said = {value for _, value, schema in found if isinstance(value, str) and _takes_other_days(value, schema)}
    return frozenset(text for value in said for text in (value, _day_in(value)))


def _takes_other_days(text: str, schema: Mapping[str, Any]) -> bool:
    day = _day_in(text)
    others = (text.replace(day, each.isoformat(), 1) for each in (_FIRST_DAY, _LAST_DAY))
    return bool(day) and all(admits(schema, other) for other in others)


def _day_in(text: str) -> str:
    """The day with which a date begins; '' if the text is none."""
    written = _DATE.fullmatch(text)
    return written["day"] or "" if written else ""


def shaped_in(trajectory: Trajectory) -> frozenset[str]:
    """Texts whose schema has a pattern that accepts any text of their shape, such as a cell or a license plate."""
    return frozenset(
        value
        for _, value, schema in arguments_of(trajectory.row, trajectory.calls)
        if isinstance(value, str) and "pattern" in schema and "enum" not in schema and not _DATE.fullmatch(value)
        if _shapes(value) >= _SHAPES and all(admits(schema, _shaped(value, Random(at))) for at in range(_DRAWS))
    )


def _shapes(text: str) -> int:
    """How many texts have the same shape."""
    return math.prod(len(_like(sign)) for sign in text[:_WORD])


def _shaped(text: str, draw: Random) -> str:
    """A text of the same shape: a letter for a letter, a digit for a digit."""
    return "".join(draw.choice(_like(sign)) for sign in text)


def _like(sign: str) -> str:
    """The characters that may replace this one; never 0, since numbers do not begin with it."""
    if sign in "123456789":
        return "123456789"
    return _LETTERS if sign in _LETTERS else _LETTERS.upper() if sign in _LETTERS.upper() else sign


def new_shapes(names: frozenset[str], draw: Random = _ANY) -> Names:
    """A new text of the same shape for each name."""
    new: dict[str, str] = {}
    for name in sorted(names):
        drawn = (_shaped(name, draw) for _ in range(_SHAPES))
        new[name] = next((each for each in drawn if each not in names and each not in new.values()), name)
    return new


def _is_name(value: Any, schema: Any) -> bool:
    return isinstance(value, str) and bool(value) and takes_any_word(schema) and not _DATE.fullmatch(value)


def _is_id(name: str, value: Any, schema: Mapping[str, Any]) -> bool:
    if type(value) is not int or not is_named_like_id(name):
        return False
    most = schema.get("maximum", _MOST)
    return schema.get("type") == "integer" and "enum" not in schema and isinstance(most, int) and most >= _MOST


def arguments_of(row: Row, calls: Iterable[Call]) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Every scalar argument of the calls, with its name and its schema."""
    for call in calls:
        yield from _arguments(call.arguments, row.parameters_of(call.name))


def _arguments(value: Any, schema: Any, name: str = "") -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    schema = schema if isinstance(schema, dict) else {}
    if is_reference(value):  # the reply to a reference uses the row's names
        if isinstance(otherwise := stand_in(value), str):
            yield name, otherwise, schema
    elif isinstance(value, dict):
        known = properties_of(schema)
        for key, inner in value.items():
            yield from _arguments(inner, known.get(key), key)
    elif isinstance(value, list):
        for inner in value:
            yield from _arguments(inner, schema.get("items"), name)
    elif isinstance(value, str | int | float):
        yield name, value, schema


def new_names(names: frozenset[Any], draw: Random = _ANY) -> Names:
    """A new name for each, in the same sort order, so that a sorted list stays sorted; for a day another day."""
    texts = [name for name in names if isinstance(name, str)]
    words = sorted(name for name in texts if not _day_in(name))
    numbers = sorted(name for name in names if not isinstance(name, str))
    days = sorted({day for name in texts if (day := _day_in(name))})
    range_of_days = range(_FIRST_DAY.toordinal(), _LAST_DAY.toordinal() + 1)
    drawn = sorted(draw.sample(range_of_days, len(days)))
    new_days = {day: date.fromordinal(each).isoformat() for day, each in zip(days, drawn, strict=True)}
    return {
        **dict(zip(words, sorted(word(draw) for _ in words), strict=True)),
        **dict(zip(numbers, sorted(draw.sample(range(_LEAST, _MOST), len(numbers))), strict=True)),
        **{name: new_days[day] + name.removeprefix(day) for name in texts if (day := _day_in(name))},
    }


def taking(names: frozenset[Any], new: Names) -> Names:
    """The new names of others, assigned one to one to these names, as far as they suffice for each type."""
    return {
        old: value
        for kind in (str, int)
        for old, value in zip(
            sorted(name for name in names if type(name) is kind),
            (value for name, value in sorted(new.items(), key=str) if type(name) is kind),
            strict=False,
        )
    }


def renamed(trajectory: Trajectory, names: Names) -> Trajectory:
    """The trajectory and its row's own fields with the new names; within longer texts in any case, as searches do."""
    spoken = [name for name in names if isinstance(name, str) and len(name) >= _SPOKEN]
    within = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, spoken))})(?!\w)", re.IGNORECASE) if spoken else None
    # a field that is called `text` keeps its name, whatever `text` is called in it
    fields = {*own(trajectory.row)}
    for call in trajectory.calls:
        fields.update(_fields_in(call.arguments, trajectory.row.parameters_of(call.name)))
    kept = _mapped(own(trajectory.row), names, fields, within, ids=True)
    row = replace(trajectory.row, data={**trajectory.row.data, **kept})
    calls = (Call(call.name, _mapped(call.arguments, names, fields)) for call in trajectory.calls)
    return replace(trajectory, row=row, calls=tuple(calls))


def _fields_in(value: Any, schema: Any) -> Iterator[str]:
    """The keys of objects in the value that the schema declares; others may be names."""
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(value, dict) and not is_reference(value):
        known = properties_of(schema)
        yield from value.keys() & known.keys()
        for key, inner in value.items():
            yield from _fields_in(inner, known.get(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _fields_in(inner, schema.get("items"))


def _mapped(
    value: Any, names: Names, fields: Collection[str], within: re.Pattern[str] | None = None, *, ids: bool = False
) -> Any:
    """The value with the new names, but for fields; with `ids`, only numbers named like ids change, since others may be amounts."""
    small = {name.lower(): new for name, new in names.items() if isinstance(name, str)} if within else {}

    def new(each: Any, way: Way) -> Any:
        if isinstance(each, dict):
            return {key: {**inner, "otherwise": _name(inner.get("otherwise"), names)} for key, inner in each.items()}
        if ids and type(each) is int and not is_named_like_id(name_of(way)):
            return each
        if within and isinstance(each, str) and each not in names and len(each) <= _LONG:
            return within.sub(lambda found: str(names.get(found[0], small.get(found[0].lower(), found[0]))), each)
        return _name(each, names)

    return mapped(value, new, leaf=is_reference, keys=lambda key: key if key in fields else str(_name(key, names)))


def _name(value: Any, names: Names) -> Any:
    return names.get(value, value) if type(value) in (str, int) else value


def phrased(trajectory: Trajectory, draw: Random = _ANY) -> tuple[Trajectory, Names]:
    """The trajectory with a new word appended to each text that a read takes freely, and the mapping of the texts."""
    return _asked_otherwise(trajectory, lambda text: f"{text} {word(draw)}")


def respelled(trajectory: Trajectory, draw: Random = _ANY) -> tuple[Trajectory, Names]:
    """The same with each letter of a long text large or small, by chance: a search for a part of a text finds no new word."""

    def spelled(text: str) -> str:
        return "".join(draw.choice((str.lower, str.upper))(sign) for sign in text)

    return _asked_otherwise(trajectory, spelled, least=_SPELLED)


def _asked_otherwise(trajectory: Trajectory, wording: Callable[[str], str], least: int = 0) -> tuple[Trajectory, Names]:
    reads = [call for call in trajectory.calls if is_reading(call)]
    texts = {value for _, value, schema in arguments_of(trajectory.row, reads) if _is_name(value, schema)}
    names = {text: wording(text) for text in texts if sum(map(str.isalpha, text)) >= least}
    return replace(renamed(trajectory, names), row=trajectory.row), names


def words_of_answer(trajectory: Trajectory) -> Iterator[str]:
    """Texts of the row's own fields that its answer contains, as the right answer does, the longest first."""
    texts = {value for value, _ in scalars(own(trajectory.row)) if isinstance(value, str)}
    found = (text for text in texts if _SPOKEN <= len(text) <= _SHORT and text in trajectory.answer)
    yield from sorted(found, key=len, reverse=True)


def read_back(outcome: Outcome, names: Names) -> Outcome:
    """The outcome translated back from the new names to the old ones, within texts too."""
    words = {new.lower(): old for old, new in names.items() if isinstance(new, str)}
    numbers = {new: old for old, new in names.items() if not isinstance(new, str)}
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None

    def translated(text: str) -> str:
        return pattern.sub(lambda found: str(words[found[0].lower()]), text) if pattern else text

    def back(value: Any, _: Way) -> Any:
        return (
            translated(value) if isinstance(value, str) else numbers.get(value, value) if type(value) is int else value
        )

    steps = (StepOutcome(step.name, step.status, mapped(step.body, back, keys=translated)) for step in outcome.steps)
    return Outcome(tuple(steps))
