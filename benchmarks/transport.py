"""How much of a bare socket client's throughput our transport keeps, beside httpx's own ways.

    python benchmarks/transport.py                                               # a lean app of its own
    python benchmarks/transport.py --url http://127.0.0.1:8000/increment_counter   # any POST that answers 200

Each client sends the same request from N loops at once. The clients take turns in short slices, so that
whatever else the machine does falls on all of them, and every ratio is to the raw client in the same run. CPU
is this process's own, per answer: what a client costs whatever the server does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import httpx

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Request
from gym_conformance.session.transport import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

    Send = Callable[[], Awaitable[int]]  # sends one request, returns its status
    Client = Callable[[httpx.URL, int], contextlib.AbstractAsyncContextManager[list[Send]]]

BODY = b'{"count": 1}'
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
TIMEOUT = 60.0

LEAN = """
import os, socket, sys, threading, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def answer(request):
    return JSONResponse({"received": len(await request.body())})

def leave():
    sys.stdin.read()  # ends with the benchmark, however that ends
    os._exit(0)

threading.Thread(target=leave, daemon=True).start()
app = Starlette(routes=[Route("/", answer, methods=["POST"])])
config = uvicorn.Config(app, log_level="warning", access_log=False)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


class Raw(asyncio.Protocol):
    """The least a client can do: write the bytes, find content-length, wait for so many."""

    def __init__(self, url: httpx.URL) -> None:
        head = [b"POST " + url.raw_path + b" HTTP/1.1", b"Host: " + url.netloc]
        head += [f"{name}: {value}".encode() for name, value in HEADERS.items()]
        self.message = b"\r\n".join([*head, b"Content-Length: %d" % len(BODY), b"", BODY])
        self.buffer = b""
        self.status: asyncio.Future[int]
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        _, _, length = head.lower().partition(b"content-length:")
        if end and len(body) >= int(length.partition(b"\r")[0]):
            self.status.set_result(int(self.buffer[9:12]))
            self.buffer = b""

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if not self.status.done():
            self.status.set_exception(exc or ConnectionError("closed"))

    async def send(self) -> int:
        """Send the request; its answer's status."""
        self.status = asyncio.get_running_loop().create_future()
        self.transport.write(self.message)
        return await self.status


@contextlib.asynccontextmanager
async def raw(url: httpx.URL, count: int) -> AsyncGenerator[list[Send]]:
    """Bare sockets."""
    loop = asyncio.get_running_loop()
    port = url.port or 80
    made = [(await loop.create_connection(lambda: Raw(url), url.host, port))[1] for _ in range(count)]
    yield [client.send for client in made]
    for client in made:
        client.transport.close()


@contextlib.asynccontextmanager
async def ours(url: httpx.URL, count: int) -> AsyncGenerator[list[Send]]:
    """One transport of ours."""
    async with Transport(url, deadline=TIMEOUT) as transport:
        channel = Channel(Endpoint(str(url), transport, TIMEOUT, in_flight=count))

        async def send() -> int:
            return (await channel.reply_to(Request("POST", "", BODY, HEADERS))).status

        yield [send] * count


async def post(client: httpx.AsyncClient, url: httpx.URL) -> int:
    """Send the request by httpx; its answer's status."""
    return (await client.post(url, content=BODY, headers=HEADERS)).status_code


@contextlib.asynccontextmanager
async def shared(url: httpx.URL, count: int) -> AsyncGenerator[list[Send]]:
    """One httpx client."""
    unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=TIMEOUT, limits=unlimited) as client:
        yield [functools.partial(post, client, url)] * count


@contextlib.asynccontextmanager
async def each(url: httpx.URL, count: int) -> AsyncGenerator[list[Send]]:
    """As many httpx clients as requests in flight."""
    async with contextlib.AsyncExitStack() as stack:
        context = httpx.create_ssl_context()  # one for all: each of its own would cost 8 ms
        clients = [httpx.AsyncClient(timeout=TIMEOUT, verify=context) for _ in range(count)]
        yield [functools.partial(post, await stack.enter_async_context(client), url) for client in clients]


CLIENTS: dict[str, Client] = {
    "raw": raw,
    "ours": ours,
    "one httpx client each": each,
    "one httpx client shared": shared,
}


@dataclass
class Tally:
    """What one client did over all its slices."""

    sent: int = 0
    failed: int = 0
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        """Good answers per second."""
        return self.sent / self.seconds


async def slice_of(sends: list[Send], seconds: float, tally: Tally) -> None:
    """Keep every send busy for so long, and add what came of it to the tally."""
    started, cpu = time.perf_counter(), time.process_time()

    async def loop(send: Send) -> None:
        while time.perf_counter() < started + seconds:
            try:
                good = await send() == httpx.codes.OK
            except Exception:  # noqa: BLE001 - httpx under load has many; they are counted
                good = False
            tally.sent += good
            tally.failed += not good

    await asyncio.gather(*(loop(send) for send in sends))
    tally.seconds += time.perf_counter() - started
    tally.cpu += time.process_time() - cpu


async def compare(url: httpx.URL, count: int, rounds: int, seconds: float) -> dict[str, Tally]:
    """All clients, in turns, with `count` requests in flight."""
    tallies = {name: Tally() for name in CLIENTS}
    async with contextlib.AsyncExitStack() as stack:
        opened = {name: await stack.enter_async_context(make(url, count)) for name, make in CLIENTS.items()}
        for sends in opened.values():
            await slice_of(sends, 0.0, Tally())
            await asyncio.gather(*(send() for send in sends))  # connections open before the first slice
        for _ in range(rounds):
            for name, sends in opened.items():
                await slice_of(sends, seconds, tallies[name])
    return tallies


@contextlib.contextmanager
def lean_app() -> Iterator[httpx.URL]:
    """A Starlette app with one endpoint, served by uvicorn in a process of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        listener.set_inheritable(True)
        fd = listener.fileno()
        command = [sys.executable, "-c", LEAN, str(fd)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[fd])
        try:
            yield httpx.URL(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        finally:
            server.communicate(timeout=30)  # closes its stdin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", type=httpx.URL, help="a POST endpoint that answers 200 (default: a lean app)")
    parser.add_argument("--flight", type=int, nargs="+", default=[1, 8, 64, 256], metavar="N")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each client (default 5)")
    parser.add_argument("--slice", type=float, default=0.4, help="seconds of one turn (default 0.4)")
    options = parser.parse_args()
    with contextlib.nullcontext(options.url) if options.url else lean_app() as url:
        print(f"POST {url}")
        print(f"{'in flight':>9}  {'client':<24} {'answers/s':>9}  {'of raw':>6}  {'CPU/answer':>10}  failed")
        for count in options.flight:
            tallies = asyncio.run(compare(url, count, options.rounds, options.slice))
            for name, tally in tallies.items():
                ratio = tally.rate / tallies["raw"].rate
                cost = tally.cpu / max(tally.sent, 1) * 1e6
                numbers = f"{tally.rate:9.0f}  {ratio:6.2f}  {cost:7.0f} µs  {tally.failed:6}"
                print(f"{count:9}  {name:<24} {numbers}", flush=True)


if __name__ == "__main__":
    main()
