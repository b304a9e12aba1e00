"""Where a tool is called in what is known to mean something: a row's session, after the calls that come before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import opened
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.followed import followed, parsed
from gym_conformance.trajectories.trajectory import Trajectory, resolve
from gym_schemas import same, scalars

#: How many recorded calls are made again, and calls that may come before one.
_PLACES, _BEFORE = 4, 24


@dataclass(frozen=True)
class Place:
    """Where the tool is called: the session of a row, after the calls that a recorded rollout made before its own.

    `base` are the arguments there, and `output` what is recorded of them, None where nothing is.
    """

    gym: Gym
    channel: Channel
    tool: str
    row: Row
    base: dict[str, Any]
    before: tuple[Call, ...] = ()
    recorded: str = ""
    output: Any = None

    async def ask(self, arguments: Any, row: Row | None = None) -> tuple[Any, Reply]:
        """The answer to the call in a session of its own, and the arguments as sent.

        Raises:
            NoSession: the server does not take the seed.
        """
        session = await opened(self.gym, self.channel, row or self.row)
        replies: list[Any] = []
        for call in self.before if row is None else ():
            reply = reply_of(await session.call(Call(call.name, resolve(call.arguments, replies))))
            replies.append(reply.said)
        sent = resolve(arguments, replies)
        return sent, reply_of(await session.call(Call(self.tool, sent)))


def recorded_places(gym: Gym, channel: Channel, tool: str, told: str = "") -> list[Place]:
    """The first recorded call of the tool in each rollout, as far as they differ, the earliest first.

    Where an argument's name is `told`, the first whose value of it stood in an earlier output, as a cursor does.
    """
    found: dict[str, Place] = {}
    for row, rollouts in gym.recorded.items():
        for rollout in rollouts:
            calls = followed(row, rollout).calls[:_BEFORE]
            played = rollout.played[: len(calls)]
            own = (at for at, (call, _) in enumerate(played) if call.name == tool)
            at = next((at for at in own if not told or _is_told(played[at][0].arguments.get(told), played[:at])), None)
            if at is not None:
                base, output = calls[at].arguments, played[at][1]
                place = Place(gym, channel, tool, row, base, calls[:at], str(rollout), output)
                found.setdefault(repr(played[at][0].arguments), place)
    return sorted(found.values(), key=lambda each: len(each.before))[:_PLACES]


def _is_told(value: Any, before: Sequence[tuple[Call, Any]]) -> bool:
    outputs = (parsed(output) for _, output in before)
    return value is not None and any(same(value, one) for output in outputs for one, _ in scalars(output))


def known_places(gym: Gym, channel: Channel, tool: str, known: Sequence[Trajectory]) -> list[Place]:
    """The first call of the tool in each trajectory that has one, the earliest first."""
    found = []
    for trajectory in known:
        names = [call.name for call in trajectory.calls[:_BEFORE]]
        if tool in names:
            at = names.index(tool)
            base = trajectory.calls[at].arguments
            found.append(Place(gym, channel, tool, trajectory.row, base, trajectory.calls[:at]))
    return sorted(found, key=lambda each: len(each.before))
