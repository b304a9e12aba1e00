"""The same trajectory with other values in its calls: numbers, what a definition lists, texts, what was left out. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.trajectories.renaming import arguments_of, is_named_like_id, takes_any_word
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, resolve
from gym_schemas import Way, admits, boundary_values, is_numeric, mapped, name_of, properties_of

#: Other values of an argument that are looked at.
_OPTIONS = 8

_NUMBER = re.compile(r"\d+(\.\d+)?")

#: The last letter or digit of a text.
_LAST_SIGN = re.compile(r"[0-9A-Za-z](?=[^0-9A-Za-z]*\Z)")


def with_other_numbers(trajectory: Trajectory) -> Trajectory | None:
    """The trajectory with one less, or one more, for each number that is no id; None where no call has any."""
    calls = []
    for call in trajectory.calls:
        schema = trajectory.row.parameters_of(call.name)
        others = (_other_numbers(call.arguments, step) for step in (-1, 1))
        calls.append(Call(call.name, next((other for other in others if admits(schema, other)), call.arguments)))
    return None if calls == list(trajectory.calls) else replace(trajectory, calls=tuple(calls))


def _other_numbers(value: Any, step: int) -> Any:
    def other(each: Any, way: Way) -> Any:
        return each + step if is_numeric(each) and not is_named_like_id(name_of(way)) else each

    return mapped(value, other, leaf=is_reference)


def with_other_members(trajectory: Trajectory) -> Iterator[Trajectory]:
    """The trajectory with the next of the values that a definition lists, in all calls alike, then with the one after it, and so on."""
    listed: dict[str, list[Any]] = {}
    for name, _, schema in arguments_of(trajectory.row, trajectory.calls):
        if isinstance(schema.get("enum"), list):
            listed.setdefault(name, schema["enum"])
    for step in range(1, max(map(len, listed.values()), default=0)):

        def other(each: Any, way: Way, step: int = step) -> Any:
            members = listed.get(name_of(way), ())
            return members[(members.index(each) + step) % len(members)] if each in members else each

        calls = tuple(Call(each.name, mapped(each.arguments, other, leaf=is_reference)) for each in trajectory.calls)
        if calls != trajectory.calls:
            yield replace(trajectory, calls=calls)


def with_another_text(call: Call, schema: Mapping[str, Any], kept: Collection[str]) -> Iterator[Call]:
    """The call with one of its texts another one that is as long, and differs in its last letter or digit; each in turn.

    What a read remembers of a file by its size finds nothing new there.

    Args:
        call: the call.
        schema: what its tool takes.
        kept: texts that stay.
    """
    for key, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
        other = _LAST_SIGN.sub(lambda found: _otherwise(found[0]), value, count=1) if isinstance(value, str) else value
        if other != value and value not in kept and takes_any_word(properties_of(schema).get(key)):
            yield Call(call.name, {**call.arguments, key: other})


def _otherwise(sign: str) -> str:
    first = "0" if sign.isdigit() else "A" if sign.isupper() else "a"
    return first if sign != first else chr(ord(first) + 1)


def with_other_options(trajectory: Trajectory) -> Trajectory:
    """The trajectory with other values of all that is no text: numbers, words of an enum, and what was left out."""
    calls = (
        Call(call.name, _other_options(call.arguments, trajectory.row.parameters_of(call.name)))
        for call in trajectory.calls
    )
    return replace(trajectory, calls=tuple(calls))


def _other_options(arguments: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(arguments, dict):
        return arguments
    chosen = dict(arguments)
    for key, definition in properties_of(schema).items():
        value = chosen.get(key)
        if takes_any_word(definition) or isinstance(value, dict | list):
            continue
        found = (other for other in islice(boundary_values(definition), _OPTIONS) if not isinstance(other, dict | list))
        others = ({**chosen, key: other} for other in found if other != value)
        chosen = next((each for each in others if admits(schema, resolve(each, []))), chosen)
    return chosen


def has_number(text: str) -> bool:
    """Whether a number stands in the text, which may be written otherwise."""
    return _NUMBER.search(text) is not None


def with_more_zeros(text: str, zeros: int) -> str:
    """The text with so many zeros behind its first number: the same, and written as nobody has written it."""
    return _NUMBER.sub(lambda number: f"{number[0]}{'' if number[1] else '.'}{'0' * zeros}", text, count=1)
