"""What the driver of `--gym-load` reaches beside other clients that send the same requests, and what it holds.

    python benchmarks/load.py            # 1, 8, 64, 256 and 1,024 at once
    python benchmarks/load.py 8 256

The reference server runs in a process of its own. The clients take turns at each level, and run the same episode, so many
at once; each of them reads each reply whole, checks its status, and sends its cookie with the next request. The bare one
writes the very bytes that ours writes. CPU is this process's own.
"""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies
from gym_conformance.dataset import load
from gym_conformance.gym_under_test import Gym, recognise
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import make_endpoint
from gym_conformance.scouting.learn import learn
from gym_conformance.session.exchange import Request
from gym_conformance.session.process import allow_open_files
from gym_conformance.session.request_bytes import RequestBytes
from gym_conformance.trajectories.in_flight import Driver, Known, measured_alone
from gym_conformance.trajectories.known import known
from gym_mocks.reference import DATA

_SECONDS, _TURNS = 1.0, 8

#: With more in flight, httpx's pool takes minutes.
_MOST_OF_HTTPX = 8

_PLACE = Cookies((("@", "COOKIE"),))

_SERVER = """
import socket, sys, threading, os, uvicorn
from gym_mocks.reference import reference_app
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
config = uvicorn.Config(reference_app(), log_level="warning", access_log=False)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


@dataclass
class Tally:
    """Episodes of a client, and what they took of the clock and of this process; `memory` in bytes."""

    episodes: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0

    @property
    def rate(self) -> float:
        """Episodes a second."""
        return self.episodes / self.seconds


@contextmanager
def measured(tally: Tally) -> Iterator[None]:
    """Count the time of what is done within."""
    began, cpu = time.monotonic(), time.process_time()
    yield
    tally.seconds += time.monotonic() - began
    tally.cpu += time.process_time() - cpu


async def ours(gym: Gym, url: str, episode: Known, in_flight: int, tally: Tally) -> None:
    """The driver of `--gym-load`."""
    endpoint = gym.endpoint.at(url, in_flight)
    with measured(tally):
        driven = await Driver(replace(gym, endpoint=endpoint), [episode], in_flight).drive(_SECONDS)
        tally.memory = max(tally.memory, psutil.Process().memory_info().rss)
        await endpoint.transport.aclose()
    level = driven.level(in_flight, 0, 0.0)
    if not level.held:
        raise SystemExit(f"not as alone: {level}")
    tally.episodes += level.episodes


async def in_turns(episode: Callable[[], Awaitable[None]], in_flight: int, tally: Tally) -> None:
    """Run a client's episodes, so many at once."""
    end = time.monotonic() + _SECONDS

    async def one_after_the_other() -> None:
        first = True
        while first or time.monotonic() < end:
            first = False
            await episode()
            tally.episodes += 1

    with measured(tally):
        await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))


async def bare(url: str, requests: Sequence[Request], in_flight: int, tally: Tally) -> None:
    """A socket for each, the same bytes, each reply read whole and its status looked at."""
    parts, writer_of = urlsplit(url), RequestBytes(url, {})
    messages = [
        writer_of.written(replace(each, cookies=_PLACE if at else NO_COOKIES)) for at, each in enumerate(requests)
    ]
    free = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()

    async def episode() -> None:
        reader, writer = free.pop() if free else await asyncio.open_connection(parts.hostname, parts.port)
        cookie = b""
        for message in messages:
            writer.write(message.replace(b"@=COOKIE", cookie))
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            if length is None or head[9:12] != b"200":
                raise SystemExit(f"an answer that is none: {head!r}")
            await reader.readexactly(int(length[1]))
            found = re.search(rb"set-cookie: ([^;]+)", head, re.IGNORECASE)
            cookie = found[1] if found else cookie
        free.append((reader, writer))

    await in_turns(episode, in_flight, tally)
    for _, writer in free:
        writer.close()


async def with_aiohttp(url: str, requests: Sequence[Request], in_flight: int, tally: Tally) -> None:
    """The client of nemo-gym itself, with the same requests, where it is installed."""
    import aiohttp  # noqa: PLC0415 - a benchmark's alone

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as client:

        async def episode() -> None:
            cookies: dict[str, str] = {}
            for each in requests:
                async with client.post(url + each.path, data=each.body, headers=each.headers, cookies=cookies) as reply:
                    await reply.read()
                    if reply.status != HTTPStatus.OK:
                        raise SystemExit(f"status {reply.status}")
                    cookies = {name: morsel.value for name, morsel in reply.cookies.items()}

        await in_turns(episode, in_flight, tally)


async def with_httpx(url: str, requests: Sequence[Request], in_flight: int, tally: Tally) -> None:
    """One httpx client, with the same requests."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:

        async def episode() -> None:
            cookie: dict[str, str] = {}
            for each in requests:
                reply = await client.post(url + each.path, content=each.body, headers={**each.headers, **cookie})
                if reply.status_code != HTTPStatus.OK:
                    raise SystemExit(f"status {reply.status_code}")
                cookie = {"cookie": reply.headers["set-cookie"].partition(";")[0]}
                client.cookies.clear()

        await in_turns(episode, in_flight, tally)


async def compare(url: str, levels: Sequence[int]) -> None:
    """Print a line for each client at each level."""
    data = load([DATA])
    gym = await recognise(make_endpoint(url, Options(url=url)), data.rows, data.rollouts, "auto")
    knowledge = await learn(gym)
    episode = await measured_alone(gym, known(knowledge)[0])
    if episode is None:
        raise SystemExit("the episode is not the same twice")
    requests = [one.request for one in episode.exchanges]
    clients: dict[str, Callable[[int, Tally], Awaitable[None]]] = {
        "--gym-load": lambda count, tally: ours(gym, url, episode, count, tally),
        "bare sockets": lambda count, tally: bare(url, requests, count, tally),
        "httpx": lambda count, tally: with_httpx(url, requests, count, tally),
    }
    if find_spec("aiohttp"):
        clients["aiohttp"] = lambda count, tally: with_aiohttp(url, requests, count, tally)
    print(f"{len(requests)} requests an episode")
    print(f"{'at once':>7}  {'client':<12} {'episodes/s':>10} {'ours/its':>8} {'CPU/request':>12} {'memory':>9}")
    for in_flight in levels:
        allow_open_files(in_flight)
        tallies = {name: Tally() for name in clients}
        for _turn in range(_TURNS):
            for name, client in clients.items():
                if name != "httpx" or in_flight <= _MOST_OF_HTTPX:
                    await client(in_flight, tallies[name])
        for name, tally in tallies.items():
            if not tally.episodes:
                continue
            cost = tally.cpu / tally.episodes / len(requests) * 1e6
            ratio = tallies["--gym-load"].rate / tally.rate
            memory = f"{tally.memory / 2**20:.0f} MiB" if tally.memory else ""
            print(
                f"{in_flight:>7,}  {name:<12} {tally.rate:>10.1f} {ratio:>8.2f} {cost:>9.0f} µs {memory:>9}", flush=True
            )


def main(levels: Sequence[int]) -> None:
    """Start the server, compare, end it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = listener.getsockname()[1]
    allow_open_files(max(levels))
    command = [sys.executable, "-c", _SERVER, str(listener.fileno())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(listener.fileno(),), cwd=Path.cwd()) as server:
        try:
            print(f"{os.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f}")
            asyncio.run(compare(f"http://127.0.0.1:{port}", levels))
        finally:
            server.kill()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1, 8, 64, 256, 1024])
