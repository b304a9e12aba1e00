"""Places in which a call of a tool is known to be meaningful: a row's session, after certain calls."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.statuses import is_error
from gym_conformance.grouping import each_kind_first
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import opened
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.refusals import says_error, says_no
from gym_conformance.trajectories.followed import followed, parsed
from gym_conformance.trajectories.trajectory import Trajectory, passed, resolve
from gym_schemas import same, scalars

#: How many recorded calls are repeated, and how many calls may precede one.
_PLACES, _BEFORE = 4, 24


@dataclass(frozen=True)
class Place:
    """A place for a call of the tool: a row's session, after the calls that a recorded rollout made before its own.

    `base` has the arguments used there, and `output` the recorded result, or None.
    """

    gym: Gym
    channel: Channel
    tool: str
    row: Row
    base: dict[str, Any]
    before: tuple[Call, ...] = ()
    recorded: str = ""
    output: Any = None

    @property
    def was_refused(self) -> bool:
        """Whether the recorded result may be a refusal: what is varied there is refused whatever it is."""
        text = self.output if isinstance(self.output, str) else ""
        return says_no(Reply(HTTPStatus.OK, (), text.encode(errors="replace"), 0.0), self.base)

    async def ask(self, arguments: Any, row: Row | None = None) -> tuple[Any, Reply]:
        """Make the call in its own session; returns the arguments as sent, and the reply.

        Raises:
            NoSession: the server refuses the seed.
        """
        session = await opened(self.gym, self.channel, row or self.row)
        replies = await self._prepare(session) if row is None else []
        sent = resolve(arguments, [reply.said for reply in replies])
        return sent, reply_of(await session.call(Call(self.tool, sent)))

    async def is_reached(self) -> bool:
        """Whether the calls that return what the arguments refer to are taken, so that it is no old value that is sent.

        Raises:
            NoSession: the server refuses the seed.
        """
        replies = await self.replies()
        needed = [replies[call] for call, _ in passed(self.base) if 0 <= call < len(replies)]
        return not any(is_error(reply.status) or says_error(reply) for reply in needed)

    async def replies(self) -> list[Reply]:
        """The replies to the calls before it, made in a session of their own.

        Raises:
            NoSession: the server refuses the seed.
        """
        return await self._prepare(await opened(self.gym, self.channel, self.row))

    async def _prepare(self, session: Session) -> list[Reply]:
        """Make the calls before it."""
        replies = list[Reply]()
        for call in self.before:
            arguments = resolve(call.arguments, [reply.said for reply in replies])
            replies.append(reply_of(await session.call(Call(call.name, arguments))))
        return replies

    def once_more(self) -> "Place":
        """The same place after its own call was made."""
        return replace(self, before=(*self.before, Call(self.tool, self.base)))

    async def ask_without_all(self) -> list[tuple[Any, Reply]]:
        """The call of which this one's object is an argument, without that; none if it is the whole call."""
        return []

    async def ask_with(self, name: str, value: Any, row: Row | None = None) -> tuple[Any, Reply]:
        """The same with this value for one argument."""
        return await self.ask({**self.base, name: value}, row)


def recorded_places(gym: Gym, channel: Channel, tool: str, returned: str = "") -> list[Place]:
    """Recorded calls of the tool, without duplicates; each that gives other arguments before the rest.

    Those come first that were taken then, and of these the earliest. If `returned` names an argument, the first call of a rollout whose value for it occurred in an earlier output, as a cursor does.
    """
    found: dict[str, Place] = {}
    for row, rollouts in gym.recorded.items():
        for rollout in rollouts:
            calls = followed(row, rollout).calls[:_BEFORE]
            played = rollout.played[: len(calls)]
            own = [at for at, (call, _) in enumerate(played) if call.name == tool]
            if returned:
                told = (at for at in own if _was_returned(played[at][0].arguments.get(returned), played[:at]))
                own = list(islice(told, 1))
            for at in own:
                base, output = calls[at].arguments, played[at][1]
                place = Place(gym, channel, tool, row, base, calls[:at], str(rollout), output)
                found.setdefault(repr(played[at][0].arguments), place)
    ordered = sorted(found.values(), key=lambda each: (each.was_refused, len(each.before)))
    return each_kind_first(lambda each: frozenset(each.base), ordered)[:_PLACES]


def _was_returned(value: Any, before: Sequence[tuple[Call, Any]]) -> bool:
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
