"""Applications on sockets: one thread and one event loop of ours serve any number of them."""

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gym_mocks.addresses import BACKLOG, LOOPBACK, HostCheck, base_url, listen
from gym_mocks.wire import App
from gym_mocks.wire.client import ASGIApp

START_SECONDS = 10.0
GRACE_SECONDS = 0.5  # nemo-gym's own grace at shutdown (server_utils.py of 0.4.0)
STOP_SECONDS = 10.0
BESIDE_BODY = 8 * 2**20  # bytes of a request that are no body: head, trailers, and how its chunks are framed
HELD = 64 * 2**10  # bytes of a reply that wait for the end of the event loop's turn


class Host:
    """One background thread with one event loop, serving applications until it is closed.

    Nothing is shared between two hosts. Ports are bound by the listening socket itself.
    """

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._servers: dict[str, tuple[_Server, asyncio.Task[None]]] = {}
        self._late: list[tuple[socket.socket, asyncio.Task[None]]] = []
        self._thread = threading.Thread(target=self._run, name="gym-mocks", daemon=True)
        self._thread.start()

    def serve(self, app: ASGIApp, *, port: int = 0, host: str = LOOPBACK, after: float = 0) -> str:
        """Serve an application, and return its base URL, without a trailing slash, once it answers.

        Args:
            app: what is served; requests whose Host header is not this machine's do not reach it.
            port: 0 for any that is free.
            host: where it listens.
            after: seconds during which connections are refused, and which are not waited for.

        Raises:
            OSError: the port is taken, or the host is not this machine's.
            RuntimeError: the application does not start, or this host is closed.
        """
        self.ensure_open()
        listener = listen(host, port, at_once=not after)
        url = base_url(host, listener.getsockname()[1])
        starting = self._start_late if after else self._start
        try:
            started = starting(HostCheck(app, host), listener, url, after)
            asyncio.run_coroutine_threadsafe(started, self._loop).result(START_SECONDS)
        except BaseException:
            listener.close()
            raise
        if isinstance(app, App):
            app.url = url
        return url

    def ensure_open(self) -> None:
        """Refuse to go on once it is closed.

        Raises:
            RuntimeError: it is.
        """
        if not self._thread.is_alive():
            raise RuntimeError("it is closed, and its servers with it; make another one")

    async def end(self, url: str) -> None:
        """End one server as a crash would, from within the event loop: its open requests break off."""
        server, task = self._servers.pop(url)
        server.crash()
        await asyncio.wait({task})

    def drop(self, url: str, client: Any) -> None:
        """Break one connection to a server, from within the event loop."""
        if url in self._servers:
            self._servers[url][0].drop(client)

    def close(self, *, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Stop every server; requests in flight get `GRACE_SECONDS`, then they are cancelled.

        Args:
            last: runs on the event loop when all servers have stopped.

        Raises:
            RuntimeError: an application holds the event loop and cannot be stopped.
        """
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._stop(last), self._loop)
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            raise RuntimeError(f"a mock server still blocks its event loop after {STOP_SECONDS} s")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
            self._loop.close()

    async def _start_late(self, app: ASGIApp, listener: socket.socket, url: str, after: float) -> None:
        async def start() -> None:
            await asyncio.sleep(after)
            await self._start(app, listener, url)

        self._late.append((listener, asyncio.ensure_future(start())))

    async def _start(self, app: ASGIApp, listener: socket.socket, url: str, _after: float = 0) -> None:
        config = uvicorn.Config(
            app,
            http=_Connection,
            log_config=None,
            log_level="critical",
            access_log=False,
            ws="none",
            proxy_headers=False,
            timeout_keep_alive=30,  # nemo-gym's own; longer than its client's 15 s
            backlog=BACKLOG,
        )
        server = _Server(config)
        task = asyncio.ensure_future(server.serve(sockets=[listener]))
        started = asyncio.ensure_future(server.ready.wait())
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        if not server.ready.is_set():
            started.cancel()
            raise RuntimeError("the application does not start") from task.exception()
        self._servers[url] = (server, task)

    async def _stop(self, last: Callable[[], Awaitable[None]] | None) -> None:
        for listener, late in self._late:
            late.cancel()
            listener.close()
        for server, _ in self._servers.values():
            server.leaving.set()
        await asyncio.gather(*(task for _, task in self._servers.values()), return_exceptions=True)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.wait(rest, timeout=GRACE_SECONDS) if rest else None
        if last is not None:
            await last()
            await asyncio.sleep(0)  # closed transports leave the loop on its next turn
        self._loop.stop()


class _AtOnce:
    """A transport that sends what is written in one turn of the event loop in one piece.

    uvicorn writes a reply's head and body apart, and each piece would wake the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held += data
        if len(self._held) > HELD:  # so that a stream without end waits for its reader
            self._send()

    def close(self) -> None:
        self._send()
        if not self._transport.get_write_buffer_size():
            end(self._transport.get_extra_info("socket"))
        self._transport.close()

    def abort(self) -> None:
        self._send()
        end(self._transport.get_extra_info("socket"))
        self._transport.abort()

    def _send(self) -> None:
        if self._held:
            self._transport.write(bytes(self._held))
            self._held.clear()


class _Connection(HttpToolsProtocol):
    """uvicorn's protocol, which would keep a request line, headers and trailers of any length."""

    beside_body = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_AtOnce(transport, self.loop))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        self.beside_body += len(data)
        if self.beside_body > BESIDE_BODY:
            self.transport.abort()
        else:
            super().data_received(data)

    def on_body(self, body: bytes) -> None:
        self.beside_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.beside_body = 0
        super().on_message_complete()


class _Server(uvicorn.Server):
    """A uvicorn server told to leave by an event, so that a stop does not wait for its next tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.leaving = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        except SystemExit as exit_:  # uvicorn's answer to an application that fails to start
            raise RuntimeError("the application's start-up failed") from exit_

    def crash(self) -> None:
        """Break all connections and leave."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        self.leaving.set()

    def drop(self, client: Any) -> None:
        """Break the connection of a client, by its address."""
        for connection in list(self.server_state.connections):
            if getattr(connection, "client", None) == client:
                connection.transport.abort()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        ticks = asyncio.ensure_future(super().main_loop())
        try:
            await self.leaving.wait()
        finally:
            ticks.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listeners, let the requests in flight end, cancel what does not."""
        for sock in sockets or []:
            end(sock)
        for listener in self.servers:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for sock in sockets or []:
            sock.close()
        tasks = set(self.server_state.tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=GRACE_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # closed transports leave the loop on its next turn
        await self.lifespan.shutdown()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - optional: faster where it is there
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = new_event_loop()
    return loop


def end(sock: socket.socket) -> None:
    """End a socket also where a process that was forked meanwhile, such as a worker that loads data, holds it as well.

    Its client would wait for what nobody reads, and its port would stay taken, until that process ends.
    """
    with suppress(OSError), socket.socket(fileno=os.dup(sock.fileno())) as same:  # uvloop's own has no shutdown
        same.shutdown(socket.SHUT_RDWR)


@contextmanager
def serve(app: ASGIApp, *, port: int = 0, host: str = LOOPBACK) -> Iterator[str]:
    """Serve an application in a background thread; yields its base URL."""
    server = Host()
    try:
        yield server.serve(app, port=port, host=host)
    finally:
        server.close()
