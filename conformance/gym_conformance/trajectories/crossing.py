"""Known calls with each other's values: combinations no rollout tried hit what is full, taken or over. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, combinations, islice, product
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.trajectories.generate import is_reading, named_alike
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, resolve
from gym_schemas import admits, properties_of

#: Values of an argument, and calls of a tool; and calls of other tools that follow.
_VALUES, _CALLS, _AFTER = 4, 12, 2

#: Keywords that say nothing of the values.
_WORDS = frozenset({"description", "title", "default", "examples"})


def crossed(trajectory: Trajectory, others: Iterable[Call] = ()) -> Iterator[tuple[str, list[Call]]]:
    """For each tool that writes, its calls combined with all values that the trajectory uses under the same names.

    Before these, a call puts a thing in relation to itself, if it has two arguments for things of one kind. A tool that
    the trajectory does not call is called as in `others`.
    """
    first = dict[str, Call]()
    for call in chain(trajectory.calls, others):
        if not is_reading(call):
            first.setdefault(call.name, call)
    for name, call in first.items():
        made = chain(_with_itself(trajectory, call), _combined(trajectory, call))
        calls = [call for call in made if call not in trajectory.calls]
        taken = [call for call in calls if admits(trajectory.row.parameters_of(name), resolve(call.arguments, []))]
        if taken:
            yield name, taken[:_CALLS]


def with_crossed(trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each such tool, the trajectory without its calls, followed by all the combined ones, and by calls of other tools."""
    for name, calls in crossed(trajectory):
        first = next(call for call in trajectory.calls if call.name == name)
        longer = replace(trajectory, calls=(*trajectory.calls, first, *calls))
        others = [at for at, call in enumerate(trajectory.calls) if call.name != name]
        combined = range(len(trajectory.calls), len(longer.calls))
        yield longer.chosen([*others, *combined, *last_of_others(trajectory, name)])


def last_of_others(trajectory: Trajectory, name: str) -> list[int]:
    """The indices of the last calls of other tools, which meet what calls of this one have led to.

    A walk up to the top never ends where something is its own parent, and a share of nothing is a division by zero.
    """
    last = {call.name: at for at, call in enumerate(trajectory.calls) if call.name != name}
    return sorted(last.values())[-_AFTER:]


def _with_itself(trajectory: Trajectory, call: Call) -> Iterator[Call]:
    """The call with two arguments of one kind that are given the same value, or each other's."""
    schemas = properties_of(trajectory.row.parameters_of(call.name))
    for one, two in combinations(_arguments(call), 2):
        if _are_of_one_kind({one: schemas.get(one), two: schemas.get(two)}):
            own, other = call.arguments[one], call.arguments[two]
            for pair in ((own, own), (other, other), (other, own)):
                yield Call(call.name, {**call.arguments, **dict(zip((one, two), pair, strict=True))})


def _are_of_one_kind(schemas: Mapping[str, Any]) -> bool:
    """Whether two arguments may be given the same thing: numbers or members of one enum, or texts named as ids of one kind."""
    said = [
        {key: each for key, each in schema.items() if key not in _WORDS}
        for schema in schemas.values()
        if isinstance(schema, dict)
    ]
    says_which = said[0].get("type") == "integer" or "enum" in said[0] if said else False
    return (
        len(said) == len(schemas)
        and said[0] == said[1]
        and (says_which or len({name.rpartition("_")[2] for name in schemas}) == 1)
    )


def _combined(trajectory: Trajectory, call: Call) -> Iterator[Call]:
    """The call with each combination of values; the argument with the fewest values varies slowest."""
    options = {key: _options(trajectory, key, value) for key, value in _arguments(call).items()}
    several = sorted((key for key in options if len(options[key]) > 1), key=lambda key: len(options[key]))
    for values in islice(product(*(options[key] for key in several)), 2 * _CALLS) if several else ():
        yield Call(call.name, {**call.arguments, **dict(zip(several, values, strict=True))})


def _arguments(call: Call) -> dict[str, Any]:
    """The arguments by name; empty if they are not an object."""
    return call.arguments if isinstance(call.arguments, dict) else {}


def _options(trajectory: Trajectory, key: str, value: Any) -> list[Any]:
    """The texts, numbers and returned values that the trajectory uses under this name, the call's own first."""
    found = [value]
    for call in trajectory.calls:
        for name, other in _arguments(call).items():
            alike = type(other) is type(value) and (isinstance(other, str | int) or is_reference(other))
            if named_alike(key, name) and alike and other not in found:
                found.append(other)
    return found[:_VALUES]
