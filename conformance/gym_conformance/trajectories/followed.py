"""A recorded rollout as a trajectory that works again: what the server returned then is what it returns now. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Path, Reference, Trajectory

#: A text or a number that is shorter is no id: it may stand in a reply and in a call by accident.
_SHORT = 4

#: Where a value was returned first, by its type, itself, and its name there, '' for whatever name.
_Origin = dict[tuple[type, Any, str], tuple[int, Path]]

#: A rollout of this many calls reaches most states; more only cost time.
_CALLS = 24


def followed(row: Row, rollout: Rollout) -> Trajectory:
    """The rollout's calls and last words; an id that an earlier reply gave is taken from that reply again.

    An id is a text or a whole number that was recorded in an earlier output: under the argument's own name, or of four
    characters or more and unknown to the row. Servers make it anew for each session. What the policy had said before that
    is no id: the output echoes it.
    """
    known = json.dumps(row.data, ensure_ascii=False)
    origin: _Origin = {}
    calls = []
    said = set[tuple[type, Any]]()
    for number, (call, output) in enumerate(rollout.played[:_CALLS]):
        calls.append(Call(call.name, _linked(call.arguments, origin)))
        said |= {(type(value), value) for value, _ in scalars(call.arguments)}
        for value, path in scalars(_parsed(output)):
            if (type(value), value) in said:
                continue
            if type(value) in (str, int) and path and isinstance(path[-1], str):
                origin.setdefault((type(value), value, path[-1]), (number, path))
            if type(value) in (str, int) and len(str(value)) >= _SHORT and str(value) not in known:
                origin.setdefault((type(value), value, ""), (number, path))
    return Trajectory(row, tuple(calls), answer=rollout.last_text or PLAIN_ANSWER)


def _linked(arguments: Any, origin: _Origin, name: str = "") -> Any:
    if isinstance(arguments, dict):
        return {key: _linked(value, origin, key) for key, value in arguments.items()}
    if isinstance(arguments, list):
        return [_linked(value, origin, name) for value in arguments]
    kind = type(arguments)
    found = origin.get((kind, arguments, name)) or origin.get((kind, arguments, ""))
    if found is None:
        return arguments
    call, path = found
    return Reference(call, path, arguments).as_json()


def scalars(value: Any, path: Path = ()) -> Iterator[tuple[Any, Path]]:
    """Every value within a reply that has no parts, with the keys and indices that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalars(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from scalars(inner, (*path, at))
    else:
        yield value, path


def _parsed(output: Any) -> Any:
    try:
        return json.loads(output)
    except (TypeError, ValueError):
        return None
