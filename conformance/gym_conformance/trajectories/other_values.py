"""The same trajectory with other argument values: numbers, enum members, texts, optional arguments. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.trajectories.renaming import arguments_of, is_named_like_id, takes_any_word
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, resolve
from gym_schemas import Way, admits, boundary_values, is_numeric, mapped, name_of, properties_of

#: Alternative values of an argument that are considered.
_OPTIONS = 8

#: More than one session takes by accident, and less than most have.
_DOZEN = 12

_NUMBER = re.compile(r"\d+(\.\d+)?")

#: Letters of Latin-1, and others.
_BEYOND_ASCII = "\u00e9\u6f22"

#: The last letter or digit of a text.
_LAST_SIGN = re.compile(r"[0-9A-Za-z](?=[^0-9A-Za-z]*\Z)")


def with_other_numbers(trajectory: Trajectory) -> Trajectory | None:
    """The trajectory with each number that is not an id changed by one; None if no call has any."""
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


def with_the_most(trajectory: Trajectory) -> Trajectory | None:
    """The trajectory with each number that is not an id as large as may be, or a dozen if anything may be; None if no call has any."""
    most = {
        name: schema.get("maximum", _DOZEN)
        for name, value, schema in arguments_of(trajectory.row, trajectory.calls)
        if is_numeric(value) and not is_named_like_id(name)
    }

    def largest(each: Any, way: Way) -> Any:
        return most.get(name_of(way), each) if is_numeric(each) else each

    calls = [Call(each.name, mapped(each.arguments, largest, leaf=is_reference)) for each in trajectory.calls]
    allowed = all(admits(trajectory.row.parameters_of(call.name), resolve(call.arguments, [])) for call in calls)
    return replace(trajectory, calls=tuple(calls)) if allowed and calls != list(trajectory.calls) else None


def with_other_members(trajectory: Trajectory) -> Iterator[Trajectory]:
    """The trajectory with each enum value replaced, in all calls alike, by the next one, then by the one after, etc."""
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
    """The call with one of its texts replaced by one of equal length with another last letter or digit; each in turn.

    A read that caches a file by its size would not notice the change.

    Args:
        call: the call.
        schema: its tool's schema.
        kept: texts that stay.
    """
    for key, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
        other = _LAST_SIGN.sub(lambda found: _otherwise(found[0]), value, count=1) if isinstance(value, str) else value
        if other != value and value not in kept and takes_any_word(properties_of(schema).get(key)):
            yield Call(call.name, {**call.arguments, key: other})


def with_letters_beyond_ascii(trajectory: Trajectory) -> Trajectory:
    """The trajectory with such letters at the end of each text that may be any."""
    free = {name for name, _, schema in arguments_of(trajectory.row, trajectory.calls) if takes_any_word(schema)}

    def longer(value: Any, way: Way) -> Any:
        return f"{value} {_BEYOND_ASCII}" if isinstance(value, str) and name_of(way) in free else value

    calls = (Call(each.name, mapped(each.arguments, longer, leaf=is_reference)) for each in trajectory.calls)
    return replace(trajectory, calls=tuple(calls))


def _otherwise(sign: str) -> str:
    first = "0" if sign.isdigit() else "A" if sign.isupper() else "a"
    return first if sign != first else chr(ord(first) + 1)


def with_other_options(trajectory: Trajectory) -> Trajectory:
    """The trajectory with other values for everything but texts: numbers, enum members, and omitted arguments."""
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
    """Whether the text contains a number, which may be written differently."""
    return _NUMBER.search(text) is not None


def with_more_zeros(text: str, zeros: int) -> str:
    """The text with `zeros` zeros appended to its first number: equal in value, but written as nobody writes it."""
    return _NUMBER.sub(lambda number: f"{number[0]}{'' if number[1] else '.'}{'0' * zeros}", text, count=1)
