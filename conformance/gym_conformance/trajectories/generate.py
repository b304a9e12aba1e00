"""Strategies for trajectories and schedules: from the rows' tools, and from what recorded rollouts and replies taught."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from gym_conformance.contract.rows import Call, Row, Tool
from gym_conformance.trajectories.trajectory import Reference, Schedule, Trajectory
from gym_conformance.values import hostile_arguments, near_misses, valid_arguments

#: A rollout of this many calls reaches most states; longer ones only cost time.
CALLS = 6

#: Names that begin like this are taken for reads: only a weight, never a verdict.
_READS = ("get", "list", "count", "read", "show", "search", "find", "check", "view", "query", "describe")


@dataclass(frozen=True)
class Knowledge:
    """What was learned of a gym before trajectories are made.

    Attributes:
        rows: the rows to seed with.
        recorded: arguments that recorded rollouts called a tool with, by tool.
        runs: the call sequences of recorded rollouts.
        returned: where in a tool's reply a string or an integer stands, by tool.
        mined: values seen in recorded arguments and in replies, by the name of the property they stood in: two calls
            that mean the same thing say it with the same word.
    """

    rows: tuple[Row, ...] = field(repr=False)
    recorded: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    runs: tuple[tuple[Row, tuple[Call, ...]], ...] = field(default=(), repr=False)
    returned: Mapping[str, tuple[tuple[type, tuple[str | int, ...]], ...]] = field(default_factory=dict, repr=False)
    mined: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)

    def recorded_calls(self, tool: str) -> tuple[Call, ...]:
        """Calls of the tool with recorded arguments."""
        return tuple(Call(tool, arguments) for arguments in self.recorded.get(tool, ()))


def places(reply: Any, path: tuple[str | int, ...] = ()) -> list[tuple[type, tuple[str | int, ...]]]:
    """Where strings and integers stand in a reply: what a policy would pick up and pass on."""
    if isinstance(reply, dict):
        return [place for key, value in reply.items() for place in places(value, (*path, key))]
    if isinstance(reply, list):
        return [place for at, value in enumerate(reply[:3]) for place in places(value, (*path, at))]
    return [(type(reply), path)] if type(reply) in (str, int) else []


def named_values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar within a value, with the name of the property it stands in."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from named_values(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from named_values(inner, name)
    elif name:
        yield name, value


def is_read(tool: str) -> bool:
    """Whether the tool's name sounds like a read."""
    return tool.lower().startswith(_READS)


def valid_calls(tool: Tool, knowledge: Knowledge) -> st.SearchStrategy[Call]:
    """Calls that the tool's definition allows: generated, and as recorded."""
    generated = valid_arguments(tool.parameters, knowledge.mined).map(lambda arguments: Call(tool.name, arguments))
    recorded = knowledge.recorded_calls(tool.name)
    return st.one_of(st.sampled_from(recorded), generated) if recorded else generated


def refused_calls(tool: Tool) -> st.SearchStrategy[Call]:
    """Calls with one thing wrong, and with hostile values."""
    wrong = st.one_of(near_misses(tool.parameters), hostile_arguments(tool.parameters))
    return wrong.map(lambda miss: Call(tool.name, miss.value))


@st.composite
def trajectories(draw: st.DrawFn, knowledge: Knowledge, min_calls: int = 0) -> Trajectory:
    """One trajectory: a recorded rollout's calls or fresh ones, writes before reads, with values of earlier replies."""
    row, calls = draw(st.sampled_from(knowledge.rows)), list[Call]()
    follow: bool = draw(st.booleans())
    if knowledge.runs and follow:
        row, recorded = draw(st.sampled_from(knowledge.runs))
        calls += recorded[: draw(st.integers(min(min_calls, len(recorded)), min(len(recorded), CALLS)))]
    tools = {tool.name: tool for tool in row.tools if not valid_calls(tool, knowledge).is_empty}
    if not tools:
        return Trajectory(row, tuple(calls))
    least = max(min_calls - len(calls), 0)
    for name in draw(st.lists(_tool_names(list(tools)), min_size=least, max_size=max(least, CALLS - len(calls)))):
        call = draw(valid_calls(tools[name], knowledge))
        calls.append(Call(name, _with_references(draw, call.arguments, tools[name], calls, knowledge)))
    reads = [name for name in tools if is_read(name)]
    look: bool = draw(st.booleans())
    if reads and look:  # what was written shows in what is read last
        calls.append(draw(valid_calls(tools[draw(st.sampled_from(reads))], knowledge)))
    return Trajectory(row, tuple(calls))


def _tool_names(names: Sequence[str]) -> st.SearchStrategy[str]:
    """Any tool, writes twice as often."""
    writes = [name for name in names if not is_read(name)]
    return st.sampled_from([*names, *writes])


#: A property whose definition says no more than this takes any value of its type.
_PLAIN = frozenset({"type", "description", "title", "default"})


def _with_references(draw: st.DrawFn, arguments: Any, tool: Tool, calls: Sequence[Call], knowledge: Knowledge) -> Any:
    """Put, now and then, a value in an argument's place that an earlier call will have returned."""
    if not isinstance(arguments, dict):
        return arguments
    known = [
        (kind, Reference(at, path))
        for at, call in enumerate(calls)
        for kind, path in knowledge.returned.get(call.name, ())
    ]
    chosen = dict(arguments)
    properties = tool.parameters.get("properties")
    for key, value in arguments.items():
        definition = properties.get(key) if isinstance(properties, dict) else None
        if not isinstance(definition, dict) or not definition.keys() <= _PLAIN:
            continue
        fitting = [reference for kind, reference in known if kind is type(value)]
        if fitting and draw(st.integers(0, 3)) == 3:  # noqa: PLR2004 - one in four
            reference = draw(st.sampled_from(fitting))
            chosen[key] = Reference(reference.call, reference.path, value).as_json()
    return chosen


@st.composite
def disturbed(draw: st.DrawFn, knowledge: Knowledge) -> Trajectory:
    """A trajectory with calls in its midst that are there to be refused."""
    plain = draw(trajectories(knowledge, min_calls=1))
    at = draw(st.integers(0, len(plain.calls)))
    refused = [refused_calls(tool) for tool in plain.row.tools]
    return plain.with_noise(at, draw(st.one_of([calls for calls in refused if not calls.is_empty])))


@st.composite
def interleaved(draw: st.DrawFn, knowledge: Knowledge, *, concurrent: bool = False) -> Schedule:
    """Two or three trajectories, each in a session of its own, their steps mixed in any order.

    Every other time they are one and the same, as the rollouts of one row are: what is shared then meets itself.
    """
    several = draw(st.lists(trajectories(knowledge, min_calls=1), min_size=2, max_size=3))
    alike: bool = draw(st.booleans())
    if alike:
        several = several[:1] * len(several)
    if concurrent:
        return Schedule(tuple(several), concurrent=True)
    turns = [turn for turn, trajectory in enumerate(several) for _ in range(trajectory.steps)]
    return Schedule(tuple(several), tuple(draw(st.permutations(turns))))


@st.composite
def crowded(draw: st.DrawFn, knowledge: Knowledge, most: int) -> Schedule:
    """One trajectory that idles somewhere in its midst while up to `most` others come and go."""
    patient = draw(trajectories(knowledge, min_calls=1))
    passing = draw(trajectories(knowledge))
    crowd = draw(st.integers(1, most))
    begun = draw(st.integers(1, patient.steps - 1))
    return Schedule(
        (patient, *[passing] * crowd),
        (0,) * begun + tuple(turn for turn in range(1, crowd + 1) for _ in range(passing.steps)),
    )
