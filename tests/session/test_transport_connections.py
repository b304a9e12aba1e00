"""How the transport opens, reuses and closes connections, and when it sends a request again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Reply, Request, reply_of
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.session.transport import IDLE_LIMIT, Transport
from tests.session.event_loop import in_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

LONG = 10.0  # seconds: far more than any of these needs


def hello(number: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number


class Server:
    """Answers a request with `answer(connection, request)`, both counted from 0; None closes."""

    def __init__(self, answer: Callable[[int, int], bytes | None] = lambda *_: hello(1)) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.open = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, count = len(self.writers), 0
        self.writers.append(writer)
        self.open += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(request)
                await self.gate.wait()
                answer = self.answer(connection, count)
                if answer is None:
                    break
                writer.write(answer)
                count += 1
                _, _, length = request.partition(b"Content-Length: ")
                await reader.readexactly(int(length.partition(b"\r")[0] or 0))  # answered early, on purpose
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.open -= 1

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[httpx.URL]:
        """Serve on a free port; at the end every connection must have been closed by the client."""
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0, backlog=IDLE_LIMIT)
        port = server.sockets[0].getsockname()[1]
        try:
            yield httpx.URL(f"http://127.0.0.1:{port}/")
        finally:
            server.close()
            await until(lambda: self.open == 0)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


async def ask(transport: Transport, *, fresh: bool = False) -> Reply:
    return await transport.send("GET", b"GET / HTTP/1.1\r\n\r\n", fresh=fresh)


@in_loop
async def test_one_after_another_share_a_connection() -> None:
    server = Server()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        for _ in range(5):
            await ask(transport)
    assert len(server.writers) == 1


@in_loop
async def test_at_once_have_one_each_and_keep_them() -> None:
    server = Server()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        for rounds in range(1, 3):
            server.gate.clear()
            asked = [asyncio.create_task(ask(transport)) for _ in range(20)]
            await until(lambda expected=20 * rounds: len(server.requests) == expected)  # type: ignore[misc]
            server.gate.set()
            await asyncio.gather(*asked)
    assert len(server.writers) == 20


@in_loop
async def test_fresh_requests_have_one_each_and_keep_none() -> None:
    server = Server()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        await ask(transport)
        for _ in range(5):
            await ask(transport, fresh=True)
        await until(lambda: server.open == 1)
        await ask(transport)
    assert len(server.writers) == 6


@in_loop
async def test_a_fresh_channel_is_served_by_another_connection_each_time() -> None:
    server = Server(lambda connection, _: hello(connection))
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        endpoint = Endpoint(str(url).rstrip("/"), transport, LONG)
        kept, fresh = Channel(endpoint), Channel(endpoint, fresh=True)
        said = [reply_of(await channel.send(Request("GET", "/"))).text for channel in (kept, fresh, kept, fresh)]
    assert said == ["0", "1", "0", "2"]


@in_loop
async def test_each_request_on_a_kept_connection_has_its_whole_deadline() -> None:
    server = Server(lambda _, request: hello(1) if request < 2 else b"")
    async with server.served() as url, Transport(url, deadline=0.4) as transport:
        for _ in range(2):
            await ask(transport)
            await asyncio.sleep(0.25)
        started = time.monotonic()
        with pytest.raises(ServerFault, match="in time"):
            await ask(transport)
        assert time.monotonic() - started >= 0.39
    assert len(server.writers) == 1


@in_loop
async def test_few_stay_idle() -> None:
    server = Server()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        server.gate.clear()
        asked = [asyncio.create_task(ask(transport)) for _ in range(IDLE_LIMIT + 9)]
        await until(lambda: len(server.requests) == IDLE_LIMIT + 9)
        server.gate.set()
        await asyncio.gather(*asked)
        await until(lambda: server.open == IDLE_LIMIT)


@in_loop
async def test_idle_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may have closed it, and a process that it has forked keep that from us."""
    monkeypatch.setattr("gym_conformance.session.transport.IDLE_SECONDS", 0.0)
    server = Server()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        for _ in range(2):
            await ask(transport)
        assert len(server.writers) == 2


@in_loop
async def test_closed_while_idle() -> None:
    """Known to be closed, it is not used, so nothing is resent."""
    server = Server()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        for _ in range(3):
            await ask(transport)
            server.writers[-1].close()
            await until(lambda: server.open == 0)
    assert len(server.requests) == 3


@in_loop
async def test_closed_on_reuse_is_resent_once() -> None:
    server = Server(lambda _, request: hello(1) if request == 0 else None)
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        for _ in range(2):
            await ask(transport)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        pytest.param(lambda connection, request: hello(1) if connection + request == 0 else None, 3, id="again"),
        pytest.param(lambda *_: None, 1, id="new-connection"),
        pytest.param(lambda _, request: hello(1) if request == 0 else b"H", 2, id="after-a-byte"),
    ],
)
@in_loop
async def test_not_resent(answer: Callable[[int, int], bytes | None], requests: int) -> None:
    """Not a second time, not on a new connection, and not once the answer had begun."""
    server = Server(answer)
    async with server.served() as url, Transport(url, deadline=0.5) as transport:
        with pytest.raises(ServerFault):  # noqa: PT012 - by the second at the latest
            for _ in range(2):
                await ask(transport)
    assert len(server.requests) == requests


@in_loop
async def test_unsolicited_answer_is_nobodys() -> None:
    """Even when it waits in the kernel, unread by our loop, as the next request goes out."""
    server = Server(lambda connection, _: hello(connection))
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        assert (await ask(transport)).text == "0"
        server.writers[0].write(hello(7))  # loopback: in our receive queue when this returns
        assert (await ask(transport)).text == "1"
        server.writers[1].write(hello(8))
        await asyncio.sleep(0.05)
        assert (await ask(transport)).text == "2"


@in_loop
async def test_answered_before_the_request_was_sent() -> None:
    """The answer counts, but the connection is done with: the rest would reach the server as a request."""
    server = Server(lambda connection, _: hello(connection))

    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        head = b"POST / HTTP/1.1\r\nContent-Length: 50000000\r\n\r\n"
        assert (await transport.send("POST", head + bytes(50_000_000))).text == "0"
        assert (await ask(transport)).text == "1"


@in_loop
async def test_cancelled_closes_its_connection() -> None:
    server = Server()
    server.gate.clear()
    async with server.served() as url, Transport(url, deadline=LONG) as transport:
        task = asyncio.create_task(ask(transport))
        await until(lambda: len(server.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        server.gate.set()
        await until(lambda: server.open == 0)


@in_loop
async def test_aclose_ends_all() -> None:
    server = Server()
    async with server.served() as url:
        transport = Transport(url, deadline=LONG)
        await ask(transport)
        server.gate.clear()
        tasks = [asyncio.create_task(ask(transport)) for _ in range(3)]
        await until(lambda: len(server.requests) == 4)
        connecting = asyncio.create_task(ask(transport))
        await asyncio.sleep(0)
        await transport.aclose()
        server.gate.set()
        for task in [*tasks, connecting]:
            with pytest.raises(RuntimeError, match="transport is closed"):
                await task
        with pytest.raises(RuntimeError, match="transport is closed"):
            await ask(transport)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://", "/path"])
def test_no_origin(url: str) -> None:
    with pytest.raises(ValueError, match="not an http or https origin"):
        Transport(httpx.URL(url), deadline=LONG)
