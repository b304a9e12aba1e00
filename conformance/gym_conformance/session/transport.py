"""The one place that talks HTTP: httpx's requests and responses, read by llhttp, over plain asyncio.

Why not httpx's own transport: its pool walks all connections for every request, and with 64 in flight it
falls far behind the servers we judge (`benchmarks/transport.py` shows it). Why not h11: an exchange costs
twice the CPU with it. Why not aiohttp: slower than this too, and it lets bad HTTP pass.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING

import httpx

from gym_conformance.session.content_coding import response
from gym_conformance.session.http_connection import Connection, written
from gym_conformance.session.server_fault import Fault, ServerFault

if TYPE_CHECKING:
    from gym_conformance.session.reply_reader import ParsedReply

#: A request's extension: true for a connection of its own, which nothing was sent on and nothing else will be.
FRESH = "fresh"

IDLE_LIMIT = 256  # connections kept open for reuse: as many sessions as are ever driven at once


class Transport(httpx.AsyncBaseTransport):
    """Sends requests to one origin, any number at once, over as many kept-alive connections as that needs.

    Args:
        origin: Scheme, host and port; every request must be for it. A path is not looked at.
        deadline: Seconds from a request's start to its answer's last byte, connecting included.
        limit: How many bytes a body may have, as sent and as decoded.
        ssl_context: For https; None for httpx's default (certifi's authorities, or SSL_CERT_FILE).
        idle: How many connections are kept open for reuse.
    """

    def __init__(
        self,
        origin: httpx.URL,
        *,
        deadline: float,
        limit: int = 16 * 1024 * 1024,
        ssl_context: ssl.SSLContext | None = None,
        idle: int = IDLE_LIMIT,
    ) -> None:
        if origin.scheme not in {"http", "https"} or not origin.host:
            raise ValueError(f"not an http or https origin: {origin}")
        self._origin = _origin(origin)
        self._host = origin.raw_host.decode("ascii")
        self._port = origin.port or {"http": 80, "https": 443}[origin.scheme]
        self._deadline = deadline
        self._limit = limit
        self._most_idle = idle
        if ssl_context is None and origin.scheme == "https":
            ssl_context = httpx.create_ssl_context()
        self._ssl = ssl_context if origin.scheme == "https" else None
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []  # last in, first out: the rest may time out, and few stay warm
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its answer, body read and decoded.

        It follows no redirect and keeps no cookie. A request without Accept-Encoding gets `identity`, so that
        the bytes are what the server wrote. When a kept-alive connection proves closed before any byte of the
        answer, the request is sent once more, on a new one. A request whose extension `FRESH` is true takes no kept
        connection and leaves none: several workers behind one address then share the requests out.

        Returns:
            The response; its extensions are `http_version` and `reason_phrase` (bytes, as httpx has them),
            `elapsed` (seconds from start to last byte, float) and `resent` (bool).

        Raises:
            ServerFault: No usable answer came.
            httpx.LocalProtocolError: The request cannot be written as HTTP.
            ValueError: The request is for another origin.
            RuntimeError: The transport is closed.
        """
        if _origin(request.url) != self._origin:
            raise ValueError(f"{request.url} is not of this transport's origin")
        if "accept-encoding" not in request.headers:
            request.headers["Accept-Encoding"] = "identity"
        message = written(request, await request.aread())
        loop = asyncio.get_running_loop()
        started = loop.time()
        answer, resent = await self._answer(request, message, until=started + self._deadline)
        extensions = {
            "http_version": answer.version,
            "reason_phrase": answer.reason,
            "elapsed": loop.time() - started,
            "resent": resent,
        }
        return response(request, answer, extensions, limit=self._limit)

    async def aclose(self) -> None:
        """Close every connection, those in use too, and wait until their sockets are gone."""
        self._closed = True
        connections = list(self._open)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.closed

    async def _answer(self, request: httpx.Request, message: bytes, *, until: float) -> tuple[ParsedReply, bool]:
        resent, fresh = False, bool(request.extensions.get(FRESH))
        connection = None if fresh else self._kept()
        if connection:
            try:
                return await self._exchange(connection, request, message, until=until), resent
            except ServerFault as fault:
                if fault.fault is not Fault.BROKEN or fault.partial is not None:
                    raise
                resent = True
        connection = await self._connect(request, until=until)
        return await self._exchange(connection, request, message, until=until), resent

    async def _exchange(
        self, connection: Connection, request: httpx.Request, message: bytes, *, until: float
    ) -> ParsedReply:
        try:
            answer = await connection.exchange(request, message, until=until)
        except ServerFault:
            self._still_open()  # closed by us in the middle: no fault of the server's
            raise
        if len(self._idle) < self._most_idle and not self._closed and not request.extensions.get(FRESH):
            self._idle.append(connection)  # one that is closing is not usable, and soon forgotten
        else:
            connection.abort()
        return answer

    def _kept(self) -> Connection | None:
        """An idle connection that is still of use, or None."""
        self._still_open()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable():
                return connection
            connection.abort()
        return None

    async def _connect(self, request: httpx.Request, *, until: float) -> Connection:
        self._still_open()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(until):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._limit, self._forget),
                    self._host,
                    self._port,
                    ssl=self._ssl,
                    server_hostname=self._host if self._ssl else None,
                    # ours comes first
                    ssl_handshake_timeout=self._deadline + 1 if self._ssl else None,
                )
        except OSError as error:
            raise self._unconnected(error, request) from error
        except UnicodeError as error:  # a host that is no name: too long, or with an empty part
            raise ServerFault(Fault.UNREACHABLE, f"{self._host[:80]}: not a host's name", request=request) from error
        self._open.add(connection)
        if self._closed or connection.closed.done():
            connection.abort()
            self._forget(connection)
        self._still_open()
        return connection

    def _unconnected(self, error: OSError, request: httpx.Request) -> ServerFault:
        where = f"{self._host} port {self._port}"
        match error:
            case ssl.SSLCertVerificationError():
                return ServerFault(Fault.TLS, f"{where}: {error.verify_message}", request=request)
            case ssl.SSLError():
                return ServerFault(Fault.TLS, f"{where}: {error.reason or error}", request=request)
            case ConnectionResetError() | ConnectionAbortedError() if self._ssl:
                return ServerFault(Fault.TLS, f"{where}: closed during the handshake", request=request)
            case TimeoutError():
                detail = f"{where}: not connected within {self._deadline:g} s"
            case _ if error.errno and error.errno > 0:  # getaddrinfo's are negative
                detail = f"{where}: {os.strerror(error.errno).lower()}"  # asyncio's own text repeats the address
            case _:
                detail = f"{where}: {error.strerror or error}"
        return ServerFault(Fault.UNREACHABLE, detail, request=request)

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _still_open(self) -> None:
        if self._closed:
            raise RuntimeError("the transport is closed")


def _origin(url: httpx.URL) -> tuple[bytes, bytes, int | None]:
    return url.raw_scheme, url.raw_host, url.port  # httpx leaves out a scheme's own port
