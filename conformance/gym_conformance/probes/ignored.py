"""Does the live server ignore an argument? Two calls that differ only there then have the same effect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.statuses import is_success
from gym_conformance.drift.tool_drift import Drift, Witness
from gym_conformance.drift.wording import short
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import NoSession, opened
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.outcome import Outcome, compared, differences, volatile
from gym_conformance.trajectories.trajectory import Trajectory

#: Known values that replace an argument's value.
_KNOWN: Final = 2

#: Calls made afterwards, to see what the call has changed.
_AFTER: Final = 4

#: The index of the tool call among an outcome's steps, after the seed.
_CALL: Final = 1


#: Invalid JSON: a handler that answers it like a call does not read the body.
_BROKEN: Final = b'{"a": '


class _Refused(Live):
    """The server refuses a call, so it shows nothing."""


async def is_ignored(gym: Gym, channel: Channel, drift: Drift, known: Sequence[Any]) -> Live:
    """Compare pairs of calls that differ only in the argument, by reply, later reads and reward.

    A refused pair says nothing if another pair is accepted. `known` has arguments that the server is known to accept.
    What already differs between two runs of the same call is not compared. If the server declares no body, it must also
    answer a body of invalid JSON in the same way, which proves that it does not read it.

    Raises:
        NoSession: the server refuses the seed.
        ServerFault: the server does not answer.
    """
    if drift.witness is None or drift.counterpart is None:
        return Live(LiveAnswer.NOT_TRIED, "no two values were found that would show it")
    row = gym.row_for(drift)
    refused, taken = None, None
    for pair in _pairs(gym, drift, drift.witness, drift.counterpart, known):
        other = await _counterevidence(gym, channel, row, drift.tool, pair)
        if other is not None and not isinstance(other, _Refused):
            return other
        refused, taken = refused or other, taken or (pair if other is None else None)
    if taken is None:
        return refused or Live(LiveAnswer.NOT_TRIED, "no two values were found that would show it")
    if not drift.shown and (read := await _reads_body(gym, channel, row, drift)) is not None:
        return read
    shown = " and ".join(map(short, taken))
    return Live(LiveAnswer.CONFIRMED, f"{shown} give the same reply and the same later state")


def _pairs(
    gym: Gym, drift: Drift, witness: Witness, counterpart: Witness, known: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """The witnesses, and recorded and known calls with the argument added, since those are meaningful."""
    yield witness.value, counterpart.value
    name = drift.path.removeprefix("/")
    if "/" in name or "~" in name or not isinstance(witness.value, dict) or name not in witness.value:
        return
    recorded = islice(gym.recorded_arguments(drift.tool), 1)
    yield from _put_in(recorded, name, witness.value[name], counterpart.value)
    given = [each for each in known if isinstance(each, dict) and name in each]
    for other in islice((each[name] for each in given if each[name] != given[0][name]), _KNOWN):
        yield given[0], {**given[0], name: other}


def _put_in(calls: Iterable[Mapping[str, Any]], name: str, value: Any, counterpart: Any) -> Iterator[tuple[Any, Any]]:
    """The calls with this value for the argument, each paired with one with the counterpart's value, or without it."""
    for arguments in calls:
        bare = {key: each for key, each in arguments.items() if key != name}
        other = counterpart.get(name) if isinstance(counterpart, dict) else None
        yield {**bare, name: value}, bare if other is None else {**bare, name: other}


async def _counterevidence(gym: Gym, channel: Channel, row: Row, tool: str, pair: tuple[Any, Any]) -> Live | None:
    """Why the pair does not show that the argument is ignored; None if it does."""
    later = _later(gym, row, tool)
    first, again, other = [
        await run(gym, channel, Trajectory(row, (Call(tool, arguments), *later)))
        for arguments in (pair[0], pair[0], pair[1])
    ]
    seeded = first.steps[0].status
    if not is_success(seeded):
        raise NoSession(f"a session: /seed_session answered {seeded}; see seed-accepts-rows")
    if not is_success(first.steps[_CALL].status):
        return _Refused(
            LiveAnswer.NOT_CONFIRMED, f"the server does not accept {short(pair[0])}: status {first.steps[_CALL].status}"
        )
    mask = volatile(first, again)
    for difference in differences(first, other, mask):
        return Live(
            LiveAnswer.NOT_CONFIRMED,
            f"it makes a difference: {difference.step} answers {difference.expected!r} or {difference.actual!r}",
        )
    of_call = frozenset((0, *place[1:]) for place in mask if place[0] == _CALL)
    if not compared(Outcome(first.steps[_CALL : _CALL + 1]), of_call):
        return Live(LiveAnswer.NOT_CONFIRMED, "its replies cannot be compared: they differ entirely from run to run")
    return None


def _later(gym: Gym, row: Row, tool: str) -> tuple[Call, ...]:
    """Calls that may show what changed: those of a recorded rollout, or else tools that need no arguments."""
    recorded = next((calls for its_row, calls in gym.recorded_calls if its_row is row), ())
    if recorded:
        return recorded[:_AFTER]
    free = [one for one in row.tools if not one.parameters.get("required") and one.name != tool]
    return tuple(Call(one.name, {}) for one in free[:_AFTER])


async def _reads_body(gym: Gym, channel: Channel, row: Row, drift: Drift) -> Live | None:
    """Evidence that the handler reads the body though it declares none, or None."""
    session = await opened(gym, channel, row)
    broken = reply_of(await session.call_raw(drift.tool, _BROKEN))
    if is_success(broken.status):
        return None
    return Live(LiveAnswer.NOT_CONFIRMED, f"the handler reads the body: status {broken.status} to one that is not JSON")
