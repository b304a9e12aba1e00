"""`--gym-load` with `--gym-ray`: this process judges, and each node of the cluster runs a share of the episodes."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

import pytest

from gym_conformance.fleet.node_driver import NodeDriver, Order, Part
from gym_conformance.fleet.ray_cluster import Node, RayCluster
from gym_conformance.gym_under_test import Gym
from gym_conformance.options import Options, is_here
from gym_conformance.plugin.hooks import DRIVERS
from gym_conformance.trajectories.driven import Driven, Strayed, added_up, divided
from gym_conformance.trajectories.in_flight import PATIENCE, ROUNDS, Known
from gym_conformance.trials.ending import Untestable

#: Seconds that a node has to get a free processor, start a process and reach the server.
_START_TIMEOUT: Final = 60.0

#: Seconds that a node has, beyond its own deadlines, to return its result.
_RESULT_MARGIN: Final = 20.0

#: How many characters of Ray's error to show when a node is lost.
_ERROR_LENGTH: Final = 200


class LoadOnRay:
    """The pytest plugin, and the load drivers: one process on each node."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        self._url = options.url
        self._cluster = RayCluster(options.ray or "")
        self._nodes = list[Node]()
        self._processes: dict[Node, Any] | None = None
        self._lost = list[str]()
        config.stash[DRIVERS] = self

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Join the cluster before anything is judged.

        Raises:
            pytest.UsageError: it cannot be joined, or some of its nodes cannot reach the server.
        """
        if self._config.option.collectonly:
            return
        self._cluster.join(self._config)
        self._nodes = list(self._cluster.nodes())
        ensure_reached(self._nodes, self._url)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End the processes on the nodes when the run ends, for whatever reason."""
        try:
            return (yield)
        finally:
            for process in (self._processes or {}).values():
                self._cluster.ray.kill(process)

    def pytest_unconfigure(self) -> None:
        """Leave the cluster."""
        self._cluster.leave()

    async def drive(self, gym: Gym, episodes: Sequence[Known], in_flight: int, seconds: float) -> Driven:
        """Run `Driver.drive` on all nodes concurrently.

        Raises:
            Untestable: no node returned a result.
        """
        lost = len(self._lost)
        parts = await self._parts(gym, episodes, in_flight)
        asked = {node: process.drive.remote(part, seconds) for node, process, part in parts}
        said = await self._said(gym, asked, seconds + PATIENCE * gym.endpoint.timeout)
        if not said:
            raise self._nobody()
        driven = added_up(in_flight, said)
        gym.endpoint.requests += driven.requests
        gym.endpoint.seconds += driven.under_way
        return replace(driven, missing=tuple(self._lost[lost:]))

    async def burst(
        self, gym: Gym, episodes: Sequence[Known], in_flight: int, watched: int, count: int
    ) -> Strayed | None:
        """Run `Driver.burst` on all nodes concurrently; a node that is lost meanwhile counts as having seen nothing.

        Raises:
            Untestable: no node is left.
        """
        parts = await self._parts(gym, episodes, in_flight)
        counts = divided(count, len(parts))
        asked = {
            node: process.burst.remote(part, watched, each)
            for (node, process, part), each in zip(parts, counts, strict=True)
        }
        longest = max(len(episode.exchanges) for episode in episodes)
        said = await self._said(gym, asked, ROUNDS * longest * gym.endpoint.timeout)
        return next(filter(None, said), None)

    async def _parts(self, gym: Gym, episodes: Sequence[Known], in_flight: int) -> list[tuple[Node, Any, Part]]:
        """Each node with its process and its share of the episodes; the processes start on first use."""
        if self._processes is None:
            self._processes = self._started(gym, episodes)
            asked = {node: process.reach.remote() for node, process in self._processes.items()}
            await self._said(gym, asked, _START_TIMEOUT, late="no CPU free, or no process started,")
        driving = list(self._processes.items())[:in_flight]
        if not driving:
            raise self._nobody()
        sizes = divided(in_flight, len(driving))
        firsts = accumulate(sizes, initial=0)
        return [(*each, Part(size, first)) for each, size, first in zip(driving, sizes, firsts, strict=False)]

    def _started(self, gym: Gym, episodes: Sequence[Known]) -> dict[Node, Any]:
        endpoint = gym.endpoint
        order = Order(endpoint.url, endpoint.timeout, endpoint.headers, gym.contract, gym.kind, tuple(episodes))
        driver = self._cluster.ray.remote(num_cpus=1)(NodeDriver)
        return {node: driver.options(scheduling_strategy=self._cluster.on(node)).remote(order) for node in self._nodes}

    async def _said(self, gym: Gym, asked: Mapping[Node, Any], seconds: float, late: str = "no answer") -> list[Any]:
        """The results of the nodes. A node that is late or lost is not used again."""
        futures = {node: asyncio.wrap_future(one.future()) for node, one in asked.items()}
        try:
            await asyncio.wait(futures.values(), timeout=seconds + _RESULT_MARGIN)
            said = []
            for node, future in futures.items():
                if not future.done():
                    self._lose(gym, node, f"{late} within {seconds + _RESULT_MARGIN:.0f} s")
                elif error := future.exception():
                    self._lose(gym, node, next(line for line in reversed(f"{error}".splitlines()) if line.strip()))
                else:
                    said.append(future.result())
            return said
        finally:
            for future in futures.values():
                future.cancel()

    def _lose(self, gym: Gym, node: Node, why: str) -> None:
        assert self._processes is not None  # noqa: S101 - for the type checker: it has been started
        self._cluster.ray.kill(self._processes.pop(node))
        self._lost.append(gym.endpoint.secrets.show(f"{node.address}: {why}", _ERROR_LENGTH))

    def _nobody(self) -> Untestable:
        return Untestable(f"a node of the cluster that drives: nothing came from {self._lost[-1]}")


def ensure_reached(nodes: Sequence[Node], url: str | None) -> None:
    """Refuse a server that other nodes cannot reach.

    Raises:
        pytest.UsageError: it is on this machine's loopback interface, and the cluster has other nodes, or none at all.
    """
    if not nodes:
        raise pytest.UsageError(
            "--gym-load and --gym-ray: no node of the cluster has a processor (`ray status`); add one"
        )
    away = next((node for node in nodes if not node.is_here), None) if is_here(url) else None
    if away:
        raise pytest.UsageError(
            f"--gym-load and --gym-ray: {url or 'the demo'} is on this machine's loopback interface, and {away.address} of the "
            "cluster cannot reach it; serve it on an address that it can, and give that with --gym-url and --gym-load-anyway"
        )
