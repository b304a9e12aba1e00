"""Known calls with arguments at their bounds, in new combinations, or once more than there is something to do."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.trajectories.crossing import last_of_others, with_crossed
from gym_conformance.trajectories.generate import Knowledge, is_reading
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.other_values import with_letters_beyond_ascii
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_reference, resolve
from gym_schemas import Schema, admits, boundary_values, properties_of, whole

#: Known trajectories used if each row may behave in its own way.
_WHOLE = 16

#: Boundary values of a tool's arguments, and tools for which they are tried.
BOUNDS, _BOUND_TOOLS = 8, 12

#: Trajectories whose values are combined.
_MIXED = 2

#: Values of one argument of a known call, and calls that may precede it.
VARIED, _BEFORE = 4, 12


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
        arguments = map(whole, islice(boundary_values(tool.parameters), BOUNDS))
        calls = tuple(Call(tool.name, each) for each in arguments)
        words = (Call(tool.name, each) for each in knowledge.meaningful.get(tool.name, ()))
        known_calls = tuple(islice((call for call in words if admits(tool.parameters, call.arguments)), BOUNDS))
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
        varied = one_by_one(_at_bounds, tool.parameters, base)
        allowed = (Call(tool.name, each) for each in varied if admits(tool.parameters, resolve(each, [])))
        longer = replace(trajectory, calls=(*trajectory.calls, *islice(allowed, 3 * BOUNDS)))
        after = [] if knowledge.reads(tool.name) else last_of_others(trajectory, tool.name)
        bounds = range(len(trajectory.calls), len(longer.calls))
        yield longer.chosen([*range(at), *(number for bound in bounds for number in (bound, *after))])
        return


def _at_bounds(schema: Schema, known: Any) -> Iterator[Any]:
    """Boundary values of a schema, and the known value with each value within it at its bounds, one at a time."""
    yield from map(whole, islice(boundary_values(schema), VARIED))
    if isinstance(known, list) and known and isinstance(schema, dict) and "items" in schema:
        yield from ([inner, *known[1:]] for inner in _at_bounds(schema["items"], known[0]))
    elif isinstance(known, dict) and not is_reference(known):
        yield from one_by_one(_at_bounds, schema, known)


def one_by_one(
    make: Callable[[Schema, Any], Iterator[Any]], schema: Schema, known: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The known object with each of its properties as it is made from the property's schema and its known value."""
    for key, each in properties_of(schema).items():
        yield from ({**known, key: value} for value in make(each, known.get(key)))
