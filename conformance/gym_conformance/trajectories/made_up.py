"""Calls and trajectories made from the tools' definitions, for rows of which nothing is recorded."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.trajectories.generate import Knowledge, is_read, is_reading, references
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Trajectory, is_reference, resolve
from gym_schemas import NoValue, Way, admits, is_numeric, mapped, minimal, properties_of

#: Writes, and as many reads, of a made-up trajectory.
_MADE_UP = 5

#: Keywords of a text's schema that make its minimal value meaningful.
_SAYS_WHICH = frozenset({"enum", "const", "pattern"})


def made_up(knowledge: Knowledge, row: Row) -> Trajectory:
    """A minimal call of each tool, writes before reads, with ids taken from the replies to earlier calls."""
    writes, reads = list[Call](), list[Call]()
    for tool in row.tools:
        known = [each for each in knowledge.meaningful.get(tool.name, ()) if admits(tool.parameters, each)]
        try:
            arguments = known[0] if known else minimal(tool.parameters)
        except NoValue:
            continue
        call = Call(tool.name, arguments)
        (reads if is_reading(call) else writes).append(call)
    tools = {tool.name: tool for tool in row.tools}
    calls: list[Call] = []
    for call in (*writes[:_MADE_UP], *reads[:_MADE_UP]):
        calls.append(_linked(call, tools[call.name], calls, knowledge))
    return Trajectory(row, tuple(calls), answer=next(iter(knowledge.answers.get(row, ())), PLAIN_ANSWER))


def _linked(call: Call, tool: Tool, calls: Sequence[Call], knowledge: Knowledge) -> Call:
    """The call with what earlier ones return, and, if it writes, with an amount of something rather than of nothing."""
    arguments = dict(call.arguments) if isinstance(call.arguments, dict) else {}
    for key, value in arguments.items():
        _, named = references(key, value, tool, calls, knowledge)
        if named:
            arguments[key] = named[-1].as_json()
    more = arguments if is_reading(call) else some(arguments)
    return Call(call.name, more if admits(tool.parameters, resolve(more, [])) else arguments)


def plain_arguments(tool: Tool) -> dict[str, Any] | None:
    """The minimal arguments of a tool, without optional ones and with nulls where allowed; None if there are none."""
    try:
        least = minimal(tool.parameters)
    except NoValue:
        return None
    if not isinstance(least, dict):
        return None
    required = tool.parameters.get("required")
    kept = {key: value for key, value in least.items() if isinstance(required, list) and key in required}
    for arguments in (kept, least):
        nulls = {key: None for key in arguments if admits(tool.parameters, {**arguments, key: None})}
        if admits(tool.parameters, {**arguments, **nulls}):
            return {**arguments, **nulls}
    return least


def some(arguments: Any) -> Any:
    """The arguments with no number 0, each one by one larger, and each flag set: what is taken may do nothing otherwise.

    So may an amount of 0, a swap of 1 and 1, or what is frozen where it is not.
    """
    more = count()

    def of(value: Any, _: Way) -> Any:
        if value is False:
            return True
        return value + (not value) + next(more) if is_numeric(value) else value

    return mapped(arguments, of, leaf=is_reference)


def bare_reads(row: Row) -> list[Call]:
    """Calls that need to know nothing of the row's data, of tools that read or take no arguments."""
    tools = [tool for tool in row.tools if is_read(tool.name) or not properties_of(tool.parameters)]
    calls = ((tool, plain_arguments(tool)) for tool in tools)
    return [
        Call(tool.name, plain)
        for tool, plain in calls
        if plain is not None and not any(_is_meaningless(tool, key, value) for key, value in plain.items())
    ]


def _is_meaningless(tool: Tool, key: str, value: Any) -> bool:
    """Whether an argument is a text or a list whose minimal value means nothing."""
    schema = properties_of(tool.parameters).get(key)
    says_which = isinstance(schema, dict) and not _SAYS_WHICH.isdisjoint(schema)
    return isinstance(value, str | list) and not (isinstance(value, str) and says_which)
