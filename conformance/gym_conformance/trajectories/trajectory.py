"""A trajectory is what one rollout does; a schedule interleaves several. Both are plain values, and JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gym_conformance.contract.rows import Call, Row, Source

SCHEMA: Final = "gym-conformance/schedule/1"

#: The key of an argument that is not known before the run: a value from the reply to an earlier call.
_REPLY: Final = "$reply"


@dataclass(frozen=True)
class Reference:
    """A value that an earlier call of the same trajectory returned.

    Attributes:
        call: the number of that call, from 0.
        path: the keys and indices that lead to the value in its reply.
        otherwise: what stands in where the reply has no such value.
    """

    call: int
    path: tuple[str | int, ...]
    otherwise: Any = None

    def as_json(self) -> dict[str, Any]:
        """The form in which it stands among the arguments."""
        return {_REPLY: {"call": self.call, "path": list(self.path), "otherwise": self.otherwise}}

    def within(self, replies: list[Any]) -> Any:
        """The value among the parsed replies so far."""
        value: Any = replies[self.call] if 0 <= self.call < len(replies) else None
        for key in self.path:
            try:
                value = value[key]
            except (LookupError, TypeError):
                return self.otherwise
        return value


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One rollout: the row it is seeded with, and its tool calls. It ends with a verify of what it did."""

    row: Row
    calls: tuple[Call, ...] = ()

    @property
    def steps(self) -> int:
        """A seed, the calls, and a verify."""
        return len(self.calls) + 2


@dataclass(frozen=True, eq=False)
class Schedule:
    """Trajectories, each in a session of its own.

    Attributes:
        trajectories: what each rollout does.
        order: whose step comes next, by index; () for one after the other.
        concurrent: whether the trajectories run truly at the same time, so that the order is not ours.
    """

    trajectories: tuple[Trajectory, ...]
    order: tuple[int, ...] = ()
    concurrent: bool = False

    @property
    def calls(self) -> int:
        """How many tool calls it makes: its size."""
        return sum(len(trajectory.calls) for trajectory in self.trajectories)

    def turns(self) -> Iterator[int]:
        """The index of the trajectory that takes the next step, until all are at their end."""
        left = [trajectory.steps for trajectory in self.trajectories]
        for turn in self.order:
            if left[turn]:
                left[turn] -= 1
                yield turn
        for turn, steps in enumerate(left):
            yield from [turn] * steps

    def lines(self) -> list[str]:
        """The schedule for reading, a step a line."""
        names = [chr(ord("A") + at % 26) for at in range(len(self.trajectories))]
        if self.concurrent:
            return [f"{names[at]} | {line}" for at, one in enumerate(self.trajectories) for line in _lines(one)]
        steps = [list(_lines(trajectory)) for trajectory in self.trajectories]
        prefix = "{} | " if len(steps) > 1 else ""
        return [prefix.format(names[turn]) + steps[turn].pop(0) for turn in self.turns()]


def _lines(trajectory: Trajectory) -> Iterator[str]:
    yield f"seed_session({trajectory.row})"
    for call in trajectory.calls:
        yield f"{call.name}({json.dumps(call.arguments)})"
    yield "verify"


def dump(schedule: Schedule, check: str) -> str:
    """The schedule as a file that `--gym-replay` reads; rows are whole, so that it needs no dataset."""
    trajectories = [
        {
            "source": str(trajectory.row),
            "row": trajectory.row.data,
            "calls": [{"tool": call.name, "arguments": call.arguments} for call in trajectory.calls],
        }
        for trajectory in schedule.trajectories
    ]
    whole = {"schema": SCHEMA, "check": check, "order": list(schedule.order), "concurrent": schedule.concurrent}
    return json.dumps(whole | {"trajectories": trajectories}, indent=2) + "\n"


def parse(text: str, path: Path) -> tuple[str, Schedule]:
    """The inverse of `dump`: the check's id and the schedule.

    Raises:
        ValueError: the text is no such file; the message says why.
    """
    whole = json.loads(text)
    if not isinstance(whole, dict) or whole.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA!r}")
    try:
        trajectories = tuple(_trajectory(each, path, at) for at, each in enumerate(whole["trajectories"], start=1))
        order = tuple(int(turn) for turn in whole["order"])
        if not trajectories or any(not 0 <= turn < len(trajectories) for turn in order):
            raise ValueError("its order names a trajectory that it does not have")
        return str(whole["check"]), Schedule(trajectories, order, bool(whole["concurrent"]))
    except (KeyError, TypeError, AttributeError) as missing:
        raise ValueError(f"it lacks {missing}") from None


def _trajectory(data: Mapping[str, Any], path: Path, number: int) -> Trajectory:
    calls = tuple(Call(str(call["tool"]), call["arguments"]) for call in data["calls"])
    if not isinstance(data["row"]["responses_create_params"], dict):
        raise TypeError("responses_create_params")
    return Trajectory(Row(data["row"], Source(path, number)), calls)


def resolve(arguments: Any, replies: list[Any]) -> Any:
    """The arguments with each reference replaced by the value it stands for."""
    if isinstance(arguments, dict):
        inner = arguments.get(_REPLY) if len(arguments) == 1 else None
        if isinstance(inner, dict) and isinstance(inner.get("path"), list):
            return Reference(inner.get("call", -1), tuple(inner["path"]), inner.get("otherwise")).within(replies)
        return {key: resolve(value, replies) for key, value in arguments.items()}
    return [resolve(value, replies) for value in arguments] if isinstance(arguments, list) else arguments
