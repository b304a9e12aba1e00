"""The part of a Ray node in `--gym-load`: runs its share of the episodes in a process of its own."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from gym_conformance.contract.endpoints import LIVENESS
from gym_conformance.contract.openapi import Api, ServerKind
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.contracts import SessionContract
from gym_conformance.session.exchange import Request
from gym_conformance.session.process import allow_open_files
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.session.transport import Transport
from gym_conformance.trajectories.driven import Driven, Strayed
from gym_conformance.trajectories.in_flight import Driver, Known

T = TypeVar("T")


@dataclass(frozen=True)
class Order:
    """What a node needs to drive a server: its address, how to talk to it, its kind, and the episodes.

    `timeout` is in seconds, per request; headers may be secret.
    """

    url: str
    timeout: float
    headers: Mapping[str, str] = field(repr=False)
    contract: SessionContract
    kind: ServerKind
    episodes: tuple[Known, ...] = field(repr=False)


@dataclass(frozen=True)
class Part:
    """A node's share of the episodes in flight, which starts with the episode at index `first`."""

    in_flight: int
    first: int


class OutOfReach(Exception):
    """The server does not answer requests from this node."""


class NodeDriver:
    """A Ray actor, which ends with the run that started it."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def reach(self) -> None:
        """Send the server any request, to see whether it answers.

        Raises:
            OutOfReach: it does not answer requests from this node.
        """

        async def ask(gym: Gym) -> None:
            await Channel(gym.endpoint).send(Request("GET", LIVENESS))

        try:
            self._run(1, ask)
        except ServerFault as fault:
            raise OutOfReach(f"{self._order.url} does not answer there: {fault}") from None

    def drive(self, part: Part, seconds: float) -> Driven:
        """See `Driver.drive`."""
        return self._run(part.in_flight, lambda gym: self._driver(gym, part).drive(seconds))

    def burst(self, part: Part, watched: int, count: int) -> Strayed | None:
        """See `Driver.burst`."""
        return self._run(part.in_flight, lambda gym: self._driver(gym, part).burst(watched, count))

    def _driver(self, gym: Gym, part: Part) -> Driver:
        return Driver(gym, self._order.episodes, part.in_flight, part.first)

    def _run(self, in_flight: int, work: Callable[[Gym], Awaitable[T]]) -> T:
        """Run `work` with connections of its own, in an event loop of its own."""
        allow_open_files(in_flight)

        async def connected() -> T:
            order = self._order
            async with Transport(httpx.URL(order.url), deadline=order.timeout, idle=in_flight) as transport:
                endpoint = Endpoint(order.url, transport, order.timeout, order.headers, in_flight, most_hangs=math.inf)
                return await work(Gym(endpoint, Api(), order.kind, "", contract=order.contract))

        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:  # Ray's uvloop has timers of whole ms
            return runner.run(connected())
