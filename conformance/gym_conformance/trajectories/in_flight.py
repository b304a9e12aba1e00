"""Whole episodes, many at once, each in a session of its own and held to what it is alone."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import sample
from typing import Final, Protocol

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.statuses import is_crash, is_error
from gym_conformance.findings import LoadLevel
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Exchange, Request, reply_of
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.driven import Driven, Strayed
from gym_conformance.trajectories.execute import TrajectoryRun, run
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, varying
from gym_conformance.trajectories.trajectory import Trajectory

#: Runs alone, one after the other, that show what differs alone.
_ALONE: Final = 6

#: Episodes one after the other in each place of a burst.
ROUNDS: Final = 2

#: Deadlines of a request within which episodes that were begun in time must end.
PATIENCE: Final = 2.0


@dataclass(frozen=True)
class Known:
    """An episode whose replies and reward are known from runs alone; `mask` is what differs among those.

    `exchanges` are those of the run whose outcome is `alone`: the seed, what was sent after it, and the verify.
    """

    trajectory: Trajectory
    alone: Outcome
    mask: frozenset[Place]
    exchanges: tuple[Exchange, ...] = ()

    def difference(self, came: Outcome) -> Difference | None:
        """The first place where an outcome is not as it is alone."""
        return None if came == self.alone else next(self.differences(came), None)

    def differences(self, came: Outcome) -> Iterator[Difference]:
        """All places where an outcome is not as it is alone."""
        return (one for one in differences(self.alone, came, self.mask) if not one.of_time)


@dataclass
class Load:
    """What came of all levels: their numbers, the first episode that went astray, and why an answer did not come."""

    episodes: Sequence[Known]
    levels: list[LoadLevel] = field(default_factory=list)
    strayed: Strayed | None = None
    unanswered: str = ""


async def measured_alone(gym: Gym, trajectory: Trajectory) -> Known | None:
    """An episode as it is alone; None where it does not end well, or its reward is not the same twice."""
    channel = Channel(gym.endpoint)
    first = await run(gym, channel, trajectory)
    verified = next(at for at, one in reversed([*enumerate(channel.exchanges)]) if one.request.path == VERIFY)
    exchanges = tuple(channel.exchanges[: verified + 1])
    outcomes = [first, *[await run(gym, Channel(gym.endpoint), trajectory) for _ in range(_ALONE - 1)]]
    mask = varying(outcomes)
    last = len(first.steps) - 1
    steady = not any(place[0] == last or place[1] == "status" for place in mask)
    well = not any(is_error(step.status) for step in first.steps) and isinstance(first.reward, int | float)
    return Known(trajectory, first, mask, exchanges) if steady and well else None


class _Retold(Channel):
    """A channel that tells once more what came over another, and goes on with the record of that."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel.endpoint, record=channel)
        self._retold = deque(channel.exchanges)

    async def send(self, request: Request) -> Exchange:
        """Send one request, or return what came when it was sent before."""
        return self._retold.popleft() if self._retold else await super().send(request)


async def run_known(gym: Gym, channel: Channel, known: Known) -> Outcome:
    """Run a known episode as `run` does.

    As long as each reply is what it was alone, byte for byte, so is the next request but for its cookie: neither is read
    or made anew. From the first other reply on, it is run as any episode.

    Raises:
        ServerFault: no whole reply came.
    """
    session = gym.contract.session(channel, known.trajectory.row)
    outcome = known.alone
    if gym.endpoint.groups.size > 1 or not await _goes_as_alone(session, known.exchanges):
        session.channel = _Retold(channel)
        outcome = await TrajectoryRun(gym, channel, known.trajectory, session=session).finish()
    await session.close()
    return outcome


async def _goes_as_alone(session: Session, exchanges: Sequence[Exchange]) -> bool:
    """Seed a session and send the same in it, until a reply is another; of the seed's only the status is compared."""
    seeded, *others = map(reply_of, exchanges)
    if reply_of(await session.seed()).status != seeded.status:
        return False
    for exchange, alone in zip(exchanges[1:], others, strict=True):
        came = reply_of(await session.send(exchange.request))
        if came.status != alone.status or came.body != alone.body:
            return False
    return True


class Driver:
    """Runs episodes, so many at once, for a bounded time; what is under way then is waited for within bounds, too.

    The first episode is the one at `first`, counted on from the last as from the beginning.
    """

    def __init__(self, gym: Gym, episodes: Sequence[Known], in_flight: int, first: int = 0) -> None:
        self.gym = gym
        self.in_flight = in_flight
        self._episodes = islice(cycle(enumerate(episodes)), first % len(episodes), None)
        self._driven = Driven()

    async def drive(self, seconds: float) -> Driven:
        """Begin episodes for so many seconds, each as soon as another ends."""
        driven, endpoint = self._driven, self.gym.endpoint
        began = time.monotonic()
        end = began + seconds
        tasks = [asyncio.create_task(self._one_after_the_other(end)) for _ in range(self.in_flight)]
        try:
            done, late = await asyncio.wait(tasks, timeout=seconds + PATIENCE * endpoint.timeout)
        finally:  # whatever ends the waiting, an interrupt too, ends what is late
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()  # what is no fault of the server's is raised
        driven.seconds = time.monotonic() - began
        driven.counts["unanswered"] += len(late)
        driven.latencies, driven.requests, driven.under_way = endpoint.latencies, endpoint.requests, endpoint.seconds
        return driven

    async def burst(self, watched: int, count: int) -> Strayed | None:
        """Some episodes one after the other in each of so many places at once.

        Returns:
            The first that went astray, among `count` runs of the watched one that were chosen before.
        """
        turns = [next(self._episodes) for _ in range(ROUNDS * self.in_flight)]
        places = [place for place, (at, _) in enumerate(turns) if at == watched]
        chosen = set(sample(places, min(count, len(places))))
        found: list[Strayed] = []

        async def one_place(first: int) -> None:
            for place in range(first, len(turns), self.in_flight):
                strayed = await self._episode(*turns[place])
                if strayed and place in chosen:
                    found.append(strayed)

        await asyncio.gather(*map(one_place, range(self.in_flight)))
        return found[0] if found else None

    async def _one_after_the_other(self, end: float) -> None:
        first = True
        while first or time.monotonic() < end:
            first = False
            await self._episode(*next(self._episodes))

    async def _episode(self, at: int, known: Known) -> Strayed | None:
        driven, channel = self._driven, Channel(self.gym.endpoint)
        try:
            came = await run_known(self.gym, channel, known)
        except ServerFault as fault:
            driven.counts["unanswered" if fault.fault is Fault.HANG else "broken"] += 1
            driven.fault = driven.fault or str(fault)
            return None
        driven.ended[at] += 1
        difference = known.difference(came)
        if difference is None:
            return None
        driven.wrong[at] += 1
        status = came.steps[int(difference.place[0])].status
        if is_error(status):
            driven.counts["crashed" if is_crash(status) else "lost"] += 1
        strayed = Strayed(self.in_flight, at, difference, tuple(channel.exchanges))
        driven.astray.setdefault(at, strayed)
        return strayed


class Drivers(Protocol):
    """Who runs the episodes of a load: this process, or several that take a part each; `gym` has connections of its own."""

    async def drive(self, gym: Gym, episodes: Sequence[Known], in_flight: int, seconds: float) -> Driven:
        """As `Driver.drive`."""

    async def burst(
        self, gym: Gym, episodes: Sequence[Known], in_flight: int, watched: int, count: int
    ) -> Strayed | None:
        """As `Driver.burst`."""


class ThisProcess:
    """Runs all of them here."""

    async def drive(self, gym: Gym, episodes: Sequence[Known], in_flight: int, seconds: float) -> Driven:
        """As `Driver.drive`."""
        return await Driver(gym, episodes, in_flight).drive(seconds)

    async def burst(
        self, gym: Gym, episodes: Sequence[Known], in_flight: int, watched: int, count: int
    ) -> Strayed | None:
        """As `Driver.burst`."""
        return await Driver(gym, episodes, in_flight).burst(watched, count)


HERE: Final[Drivers] = ThisProcess()
