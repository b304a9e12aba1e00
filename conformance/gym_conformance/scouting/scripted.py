"""The calls that a row itself prescribes, as many datasets write down for their verifiers. Pure.

If nothing is recorded, this is the only way to a rewarded trajectory: `"ground_truth": [{"name": ..., "arguments":
...}]`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import Trajectory, resolve
from gym_schemas import admits

#: Levels of a row's fields that are searched.
_DEEP: Final = 4


def scripted(row: Row) -> Trajectory | None:
    """The longest list of calls among the row's own fields; None if there is none."""
    tools = {tool.name: tool for tool in row.tools}
    found = max(_scripts(own(row), tools, _DEEP), key=len, default=()) if tools else ()
    return Trajectory(row, found) if found else None


def _scripts(value: Any, tools: Mapping[str, Tool], deep: int) -> Iterator[tuple[Call, ...]]:
    calls = [_call(each, tools) for each in (value if isinstance(value, list) else [value])]
    if calls and all(calls):
        yield tuple(call for call in calls if call)
    elif deep and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scripts(inner, tools, deep - 1)


def _call(value: Any, tools: Mapping[str, Tool]) -> Call | None:
    """A call in any notation: an object in which one value names a tool, and another is valid arguments for it."""
    if not isinstance(value, dict):
        return None
    named = [tools[each] for each in value.values() if isinstance(each, str) and each in tools]
    arguments = [inner for each in value.values() if (inner := _object(each)) is not None]
    taken = [each for each in arguments if named and admits(named[0].parameters, resolve(each, []))]
    return Call(named[0].name, taken[0]) if len(named) == len(taken) == 1 else None


def _object(value: Any) -> dict[str, Any] | None:
    """The object itself, or the one encoded as JSON."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None
