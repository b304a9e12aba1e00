"""Abandoned sessions and half-sent requests: what a killed client leaves behind."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.trajectory import Trajectory

#: Sessions opened concurrently; seconds after which no more are opened.
_AT_ONCE, _SECONDS = 32, 20.0

#: One in this many sessions leaves an unfinished request behind.
_HALF_SENT: Final = 4

_REQUEST: Final = (
    b"POST /verify HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\ncontent-length: 4096\r\n\r\n{"
)


async def abandon(gym: Gym, trajectories: Sequence[Trajectory], count: int) -> int:
    """Seed `count` sessions, take half the steps of each, and abandon them; returns how many were begun."""
    free, end, begun = asyncio.Semaphore(_AT_ONCE), time.monotonic() + _SECONDS, 0

    async def one(number: int) -> None:
        nonlocal begun
        trajectory = trajectories[number % len(trajectories)]
        async with free:
            if time.monotonic() > end:
                return
            begun += 1
            rollout = TrajectoryRun(gym, Channel(gym.endpoint), trajectory)
            with suppress(ServerFault):  # only the effect on later sessions matters
                await rollout.step(1 + len(trajectory.calls) // 2)

    await asyncio.gather(*map(one, range(count)))
    return begun


@asynccontextmanager
async def half_sent(url: str, sessions: int) -> AsyncIterator[int]:
    """Hold half-sent requests open on a plain HTTP server, like a client whose machine died; yields how many."""
    parts = urlsplit(url)
    writers = list[asyncio.StreamWriter]()
    if parts.scheme == "http" and parts.hostname:
        for _ in range(sessions // _HALF_SENT):
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1.0):
                    _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
                writer.write(_REQUEST % parts.netloc.encode())
                writers.append(writer)
    try:
        yield len(writers)
    finally:
        for writer in writers:
            writer.transport.abort()
