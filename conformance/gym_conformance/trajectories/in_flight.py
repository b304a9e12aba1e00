"""Whole concurrent episodes, each in its own session and compared with its run alone."""

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

#: Runs alone, one after the other, that show which places vary.
_ALONE: Final = 6

#: Consecutive episodes of each worker in a burst.
ROUNDS: Final = 2

#: How long episodes that began in time may take to end, as a multiple of a request's timeout.
PATIENCE: Final = 2.0


@dataclass(frozen=True)
class Known:
    """An episode whose replies and reward are known from runs alone; `mask` has the places that vary among those.

    `exchanges` are those of the run whose outcome is `alone`: the seed, what was sent after it, and the verify.
    """

    trajectory: Trajectory
    alone: Outcome
    mask: frozenset[Place]
    exchanges: tuple[Exchange, ...] = ()

    def difference(self, actual: Outcome) -> Difference | None:
        """The first place where an outcome differs from the run alone."""
        return None if actual == self.alone else next(self.differences(actual), None)

    def differences(self, actual: Outcome) -> Iterator[Difference]:
        """All places where an outcome differs from the run alone."""
        return (one for one in differences(self.alone, actual, self.mask) if not one.of_time)


@dataclass
class Load:
    """The results of all levels: their numbers, the first stray episode, and why a reply failed to come."""

    episodes: Sequence[Known]
    levels: list[LoadLevel] = field(default_factory=list)
    strayed: Strayed | None = None
    unanswered: str = ""


async def measured_alone(gym: Gym, trajectory: Trajectory) -> Known | None:
    """Measure an episode alone; None if it does not end well, or its reward varies."""
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


class _Replay(Channel):
    """A channel that replays what came over another, and then continues on that channel's record."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel.endpoint, record=channel)
        self._recorded = deque(channel.exchanges)

    async def send(self, request: Request) -> Exchange:
        """Send one request, or return the recorded reply if it was sent before."""
        return self._recorded.popleft() if self._recorded else await super().send(request)


async def run_known(gym: Gym, channel: Channel, known: Known) -> Outcome:
    """Run a known episode as `run` does.

    As long as each reply is identical, byte for byte, to the one of the run alone, the next request is identical too,
    except for its cookie, so neither is parsed or built again. From the first different reply on, the episode runs
    normally.

    Raises:
        ServerFault: no whole reply came.
    """
    session = gym.contract.session(channel, known.trajectory.row)
    outcome = known.alone
    if gym.endpoint.groups.size > 1 or not await _replays_as_alone(session, known.exchanges):
        session.channel = _Replay(channel)
        outcome = await TrajectoryRun(gym, channel, known.trajectory, session=session).finish()
    await session.close()
    return outcome


async def _replays_as_alone(session: Session, exchanges: Sequence[Exchange]) -> bool:
    """Send the recorded requests in a new session until a reply differs; of the seed only the status is compared."""
    seeded, *others = map(reply_of, exchanges)
    if reply_of(await session.seed()).status != seeded.status:
        return False
    for exchange, alone in zip(exchanges[1:], others, strict=True):
        reply = reply_of(await session.send(exchange.request))
        if reply.status != alone.status or reply.body != alone.body:
            return False
    return True


class Driver:
    """Runs `in_flight` concurrent episodes for a bounded time, and waits a bounded time for those still in progress."""

    def __init__(self, gym: Gym, episodes: Sequence[Known], in_flight: int, first: int = 0) -> None:
        self.gym = gym
        self.in_flight = in_flight
        self._episodes = islice(cycle(enumerate(episodes)), first % len(episodes), None)
        self._driven = Driven()

    async def drive(self, seconds: float) -> Driven:
        """Start episodes for this many seconds, each as soon as another ends."""
        driven, endpoint = self._driven, self.gym.endpoint
        began = time.monotonic()
        end = began + seconds
        tasks = [asyncio.create_task(self._one_after_the_other(end)) for _ in range(self.in_flight)]
        try:
            done, late = await asyncio.wait(tasks, timeout=seconds + PATIENCE * endpoint.timeout)
        finally:  # stop late episodes however the wait ends, even by an interrupt
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()  # raises what is not the server's fault
        driven.seconds = time.monotonic() - began
        driven.counts["unanswered"] += len(late)
        driven.latencies, driven.requests, driven.under_way = endpoint.latencies, endpoint.requests, endpoint.seconds
        return driven

    async def burst(self, watched: int, count: int) -> Strayed | None:
        """Run a few episodes for each of `in_flight` workers; each takes the next as soon as it is free, as in `drive`.

        Returns:
            The first stray run among `count` runs of the watched episode, which are chosen beforehand.
        """
        turns = [next(self._episodes) for _ in range(ROUNDS * self.in_flight)]
        places = [place for place, (at, _) in enumerate(turns) if at == watched]
        chosen = set(sample(places, min(count, len(places))))
        found: list[Strayed] = []

        left = iter(enumerate(turns))

        async def worker() -> None:
            for place, turn in left:
                strayed = await self._episode(*turn)
                if strayed and place in chosen:
                    found.append(strayed)

        await asyncio.gather(*(worker() for _ in range(self.in_flight)))
        return found[0] if found else None

    async def _one_after_the_other(self, end: float) -> None:
        first = True
        while first or time.monotonic() < end:
            first = False
            await self._episode(*next(self._episodes))

    async def _episode(self, at: int, known: Known) -> Strayed | None:
        driven, channel = self._driven, Channel(self.gym.endpoint)
        try:
            outcome = await run_known(self.gym, channel, known)
        except ServerFault as fault:
            driven.counts["unanswered" if fault.fault is Fault.HANG else "broken"] += 1
            driven.fault = driven.fault or str(fault)
            return None
        driven.ended[at] += 1
        difference = known.difference(outcome)
        if difference is None:
            return None
        driven.wrong[at] += 1
        status = outcome.steps[int(difference.place[0])].status
        if is_error(status):
            driven.counts["crashed" if is_crash(status) else "lost"] += 1
        strayed = Strayed(self.in_flight, at, difference, tuple(channel.exchanges))
        driven.astray.setdefault(at, strayed)
        return strayed


class Drivers(Protocol):
    """Runs the episodes of a load, in this process or in several that share it; `gym` has its own connections."""

    async def drive(self, gym: Gym, episodes: Sequence[Known], in_flight: int, seconds: float) -> Driven:
        """As `Driver.drive`."""

    async def burst(
        self, gym: Gym, episodes: Sequence[Known], in_flight: int, watched: int, count: int
    ) -> Strayed | None:
        """As `Driver.burst`."""


class ThisProcess:
    """Runs all episodes in this process."""

    async def drive(self, gym: Gym, episodes: Sequence[Known], in_flight: int, seconds: float) -> Driven:
        """As `Driver.drive`."""
        return await Driver(gym, episodes, in_flight).drive(seconds)

    async def burst(
        self, gym: Gym, episodes: Sequence[Known], in_flight: int, watched: int, count: int
    ) -> Strayed | None:
        """As `Driver.burst`."""
        return await Driver(gym, episodes, in_flight).burst(watched, count)


HERE: Final[Drivers] = ThisProcess()
