"""Whole episodes, many at once, each in a session of its own and held to what it is alone."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from random import sample
from typing import Final

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.statuses import is_crash, is_error
from gym_conformance.findings import EndpointLoad, LoadLevel
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Exchange, Request, reply_of
from gym_conformance.session.latencies import Samples
from gym_conformance.session.process import census, cpu_seconds
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.execute import TrajectoryRun, run
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, volatile
from gym_conformance.trajectories.trajectory import Trajectory

#: Runs alone, one after the other, that show what differs alone.
_ALONE: Final = 6

#: Episodes one after the other in each place of a burst.
_ROUNDS: Final = 2

#: Deadlines of a request within which episodes that were begun in time must end.
_PATIENCE: Final = 2.0


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


@dataclass(frozen=True)
class Strayed:
    """An episode that went otherwise than alone: where it differs, and what was sent and came.

    `in_flight` is how many were at once, and `share` how many of these went astray, of all runs of the episode.
    """

    in_flight: int
    known: Known
    difference: Difference
    exchanges: tuple[Exchange, ...]
    share: float = 0.0


@dataclass
class Load:
    """What came of all levels: their numbers, the first episode that went astray, and why an answer did not come."""

    episodes: Sequence[Known]
    levels: list[LoadLevel] = field(default_factory=list)
    strayed: Strayed | None = None
    unanswered: str = ""


async def known_alone(gym: Gym, trajectory: Trajectory) -> Known | None:
    """An episode as it is alone; None where it does not end well, or its reward is not the same twice."""
    channel = Channel(gym.endpoint)
    first = await run(gym, channel, trajectory)
    verified = next(at for at, one in reversed([*enumerate(channel.exchanges)]) if one.request.path == VERIFY)
    exchanges = tuple(channel.exchanges[: verified + 1])
    outcomes = [first, *[await run(gym, Channel(gym.endpoint), trajectory) for _ in range(_ALONE - 1)]]
    mask = frozenset[Place]().union(*(volatile(first, other) for other in outcomes[1:]))
    last = len(first.steps) - 1
    steady = not any(place[0] == last or place[1] == "status" for place in mask)
    well = not any(is_error(step.status) for step in first.steps) and isinstance(first.reward, int | float)
    return Known(trajectory, first, mask, exchanges) if steady and well else None


class _Retold(Channel):
    """A channel that tells once more what came over another, and goes on with the record of that."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel.endpoint)
        self._retold = deque(channel.exchanges)
        self.continue_record(channel)

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
    """Runs episodes, so many at once, for a bounded time; what is under way then is waited for within bounds, too."""

    def __init__(self, gym: Gym, episodes: Sequence[Known], in_flight: int, pid: int | None) -> None:
        self.gym = gym
        self.in_flight = in_flight
        self.fault = ""
        self._episodes: Iterator[Known] = cycle(episodes)
        self._pid = pid
        self._counts = Counter[str]()
        self._ended, self._wrong = Counter[int](), Counter[int]()
        self._astray: dict[int, Strayed] = {}

    async def drive(self, seconds: float) -> LoadLevel:
        """Begin episodes for so many seconds, each as soon as another ends."""
        busy = cpu_seconds(self._pid) if self._pid else 0.0
        began = time.monotonic()
        end = began + seconds
        tasks = [asyncio.create_task(self._one_after_the_other(end)) for _ in range(self.in_flight)]
        done, late = await asyncio.wait(tasks, timeout=seconds + _PATIENCE * self.gym.endpoint.timeout)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for task in done:
            task.result()  # what is no fault of the server's is raised
        took, counts = time.monotonic() - began, self._counts
        cores = (cpu_seconds(self._pid) - busy) / took if self._pid and busy else 0.0
        return LoadLevel(
            self.in_flight,
            counts["ended"],
            round(took, 3),
            counts["wrong"],
            counts["lost"],
            counts["crashed"],
            counts["unanswered"] + len(late),
            counts["broken"],
            self._memory(),
            round(cores, 2),
            tuple(_endpoint(name, samples) for name, samples in sorted(self.gym.endpoint.latencies.of.items())),
        )

    @property
    def strayed(self) -> Strayed | None:
        """The first run that went astray of the episode that does so most often."""
        shares = {each: self._wrong[each] / self._ended[each] for each in self._astray}
        worst = max(shares, key=lambda each: shares[each], default=None)
        return None if worst is None else replace(self._astray[worst], share=shares[worst])

    async def burst(self, watched: Known, count: int) -> Strayed | None:
        """Some episodes one after the other, in each of so many places at once.

        Returns:
            The first that went astray, among `count` runs of the watched one that were chosen before.
        """
        turns = [next(self._episodes) for _ in range(_ROUNDS * self.in_flight)]
        places = [place for place, known in enumerate(turns) if known is watched]
        chosen = set(sample(places, min(count, len(places))))
        found: list[Strayed] = []

        async def one_place(first: int) -> None:
            for place in range(first, len(turns), self.in_flight):
                strayed = await self._episode(turns[place])
                if strayed and place in chosen:
                    found.append(strayed)

        await asyncio.gather(*map(one_place, range(self.in_flight)))
        return found[0] if found else None

    async def _one_after_the_other(self, end: float) -> None:
        first = True
        while first or time.monotonic() < end:
            first = False
            await self._episode(next(self._episodes))

    async def _episode(self, known: Known) -> Strayed | None:
        channel = Channel(self.gym.endpoint)
        try:
            came = await run_known(self.gym, channel, known)
        except ServerFault as fault:
            self._counts["unanswered" if fault.fault is Fault.HANG else "broken"] += 1
            self.fault = self.fault or str(fault)
            return None
        self._counts["ended"] += 1
        self._ended[id(known)] += 1
        difference = known.difference(came)
        if difference is None:
            return None
        self._counts["wrong"] += 1
        self._wrong[id(known)] += 1
        status = came.steps[int(difference.place[0])].status
        if is_error(status):
            self._counts["crashed" if is_crash(status) else "lost"] += 1
        strayed = Strayed(self.in_flight, known, difference, tuple(channel.exchanges))
        self._astray.setdefault(id(known), strayed)
        return strayed

    def _memory(self) -> int:
        try:
            return census(self._pid).memory if self._pid else 0
        except ProcessLookupError:
            return 0


def _endpoint(name: str, samples: Samples) -> EndpointLoad:
    kept = sorted(samples.kept)
    p50, p95, p99 = (kept[min(int(part * len(kept)), len(kept) - 1)] for part in (0.5, 0.95, 0.99))
    return EndpointLoad(name, samples.count, p50, p95, p99)
