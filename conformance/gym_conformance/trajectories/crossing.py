"""Known calls with each other's values: combinations no rollout tried hit what is full, taken or over. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.trajectories.generate import is_read, named_alike
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, resolve
from gym_schemas import admits

#: Values of an argument, and calls of a tool.
_VALUES, _CALLS = 4, 12


def crossed(trajectory: Trajectory) -> Iterator[tuple[str, list[Call]]]:
    """For each tool that writes, its calls combined with all values that the trajectory uses under the same names."""
    for name in dict.fromkeys(call.name for call in trajectory.calls if not is_read(call.name)):
        known = [call for call in trajectory.calls if call.name == name]
        calls = [call for call in _combined(trajectory, known[0]) if call not in known]
        taken = [call for call in calls if admits(trajectory.row.parameters_of(name), resolve(call.arguments, []))]
        if taken:
            yield name, taken[:_CALLS]


def with_crossed(trajectory: Trajectory) -> Iterator[Trajectory]:
    """For each such tool, the trajectory without its calls, followed by all the combined ones."""
    for name, calls in crossed(trajectory):
        known = [at for at, call in enumerate(trajectory.calls) if call.name == name]
        yield replace(trajectory, calls=(*trajectory.calls, trajectory.calls[known[0]], *calls)).without(known)


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
