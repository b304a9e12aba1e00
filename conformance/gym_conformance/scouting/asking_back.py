"""Reads of what a trajectory has written, found by trying, for trajectories that contain none.

A write that is lost, or reaches another session, shows in no reply of a rollout that only writes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel, NoRoom
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.refusals import grants
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.generate import named_alike
from gym_conformance.trajectories.made_up import plain_arguments
from gym_conformance.trajectories.renaming import takes_any_word
from gym_conformance.trajectories.returned import returned
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, stand_in
from gym_schemas import admits, properties_of

#: Calls that may precede a write, reads tried after it with each tool, and reads added to a trajectory.
_BEFORE, _TRIES, _READS = 12, 3, 4

#: Trajectories that get reads, and values of a write's reply that a read may ask for.
_TRAJECTORIES, _SEEN = 4, 50

#: The longest text that may be a name; a longer one is content.
_CALLED: Final = 80

#: A value from a reply may be any text.
_FREE: Final = {"type": "string"}


async def asking_back(gym: Gym, found: Iterable[Trajectory], reads: Callable[[Tool], bool]) -> tuple[Trajectory, ...]:
    """Add reads to the trajectories that write, about what their first write of each tool has written.

    Each such read comes just after the write, and again at the end. A trajectory is left out if no such read is found,
    if it already makes that read itself, or if one of its own calls is refused. If the server has no room for one of
    the sessions, the result is empty, since the longer trajectories would need more.

    Raises:
        ServerFault: the server does not answer.
    """
    asked, seen = list[Trajectory](), set[str]()
    for trajectory in found:
        reads_only = [tool for tool in trajectory.row.tools if reads(tool)]
        reading = [tool for tool in reads_only if properties_of(tool.parameters)]
        names = {tool.name for tool in reads_only}
        writing = {call.name for call in trajectory.calls[:_BEFORE]} - names
        if reading and not writing <= seen and len(asked) < _TRAJECTORIES:
            try:
                asked.append(await _explored(gym, trajectory, reading, names))
            except NoRoom:
                return ()
            seen |= writing if asked[-1].calls else set()
    return tuple(each for each in asked if each.calls)


@dataclass(frozen=True)
class _Read:
    """A read that the server accepted, and the index of the write that it is about."""

    call: Call
    write: int


async def _explored(gym: Gym, trajectory: Trajectory, reading: Sequence[Tool], names: set[str]) -> Trajectory:
    """The trajectory with reads of what it has written; without any calls if none was found."""
    nothing = replace(trajectory, calls=())
    rollout = TrajectoryRun(gym, Channel(gym.endpoint), trajectory)
    await rollout.step()
    found, seen = list[_Read](), set[str]()
    for at, call in enumerate(trajectory.calls):
        await rollout.step()
        if rollout.steps[-1].is_refused:
            return nothing
        if call.name in names | seen or at >= _BEFORE:
            continue
        seen.add(call.name)
        later = trajectory.calls[at + 1 :]
        for tool in reading if len(found) < _READS else ():
            if tool.name in {one.call.name for one in found}:
                continue
            read = await _first_accepted(rollout, tool, _candidates(tool, trajectory, at, rollout.replies[at]))
            if read and read not in later:
                found.append(_Read(read, at))
    await rollout.session.close()
    return _with_reads(trajectory, found[:_READS]) if found else nothing


async def _first_accepted(rollout: TrajectoryRun, tool: Tool, candidates: Iterable[dict[str, Any]]) -> Call | None:
    """The first candidate that is not refused."""
    for arguments in islice(candidates, _TRIES):
        call = Call(tool.name, arguments)
        sent = Call(tool.name, rollout.arguments(call))
        if admits(tool.parameters, sent.arguments):
            reply = reply_of(await rollout.session.call(sent))
            if grants(reply, sent.arguments):
                return call
    return None


def _with_reads(trajectory: Trajectory, found: Sequence[_Read]) -> Trajectory:
    """The trajectory with each read after its write, and all of them again at the end."""
    made = len(trajectory.calls)
    whole = replace(trajectory, calls=(*trajectory.calls, *(one.call for one in found)))
    numbers = list[int]()
    for at in range(made):
        numbers += [at, *(made + number for number, one in enumerate(found) if one.write == at)]
    return whole.chosen([*numbers, *range(made, made + len(found))])


def _candidates(tool: Tool, whole: Trajectory, write: int, reply: Any) -> Iterator[dict[str, Any]]:
    """Calls of a tool about what a write has written: by arguments named alike, otherwise by its only free-text one."""
    known = next((call.arguments for call in whole.calls if call.name == tool.name), None)
    base = known if isinstance(known, dict) else plain_arguments(tool)
    if base is None:
        return
    call, properties = whole.calls[write], properties_of(tool.parameters)
    given = [*_sent_values(call.arguments, whole.row.parameters_of(call.name))]
    for one in returned(reply, _SEEN):
        given += [(name, one.reference(write).as_json(), _FREE) for name in one.names or ("",)]
    asked = [key for key in properties if key in base or any(key == name for name, _, _ in given)]
    alike = {key: value for key in asked for value in islice(_matching(key, properties[key], given), 1)}
    if alike:
        yield {**base, **alike}
    elif len(asked) == 1 and takes_any_word(properties[asked[0]]):
        texts = [value for _, value, schema in given if takes_any_word(schema) and isinstance(_plain(value), str)]
        yield from ({**base, asked[0]: value} for value in texts if 0 < len(_plain(value)) <= _CALLED)


def _matching(key: str, schema: Any, given: Iterable[tuple[str, Any, Any]]) -> Iterator[Any]:
    """Values given under a similar name, the same name first; a free-text argument takes only free text."""
    for name, value, theirs in sorted(given, key=lambda each: each[0] != key):
        plain = _plain(value)
        named = name and named_alike(key, name) and plain and type(plain) in (str, int)
        free = takes_any_word(theirs) or not takes_any_word(schema)
        if named and free and admits({"properties": {key: schema}}, {key: plain}):
            yield value


def _sent_values(value: Any, schema: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The scalar arguments of a call, each as name, value and schema."""
    if isinstance(value, dict) and not is_reference(value):
        known = properties_of(schema) if isinstance(schema, dict) else {}
        for key, inner in value.items():
            yield from _sent_values(inner, known.get(key), key)
    elif not isinstance(value, list):
        yield name, value, schema


def _plain(value: Any) -> Any:
    return stand_in(value) if is_reference(value) else value
