"""The one module that speaks HTTP: it sends a request's bytes over plain asyncio, and llhttp parses the reply.

Why not httpx's transport: its pool walks all connections for every request, so that with 64 in flight it is far slower
than the servers under test (see `benchmarks/transport.py`); its request and response objects alone cost more than all
that is done here. Why not h11: an exchange takes twice the CPU. Why not aiohttp: it is slower, too, and accepts invalid
HTTP.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from typing import TYPE_CHECKING

import httpx

from gym_conformance.session.content_coding import decoded
from gym_conformance.session.exchange import Reply
from gym_conformance.session.http_connection import READ, Connection
from gym_conformance.session.intake import Intake
from gym_conformance.session.server_fault import PARTIAL_LIMIT, Fault, NotSent, ServerFault

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from gym_conformance.session.reply_reader import ParsedReply

BODY_LIMIT = 16 << 20  # bytes of a reply's body
_UNFINISHED = 32 << 20  # bytes of all unfinished bodies; above it, only one connection at a time is read
IDLE_LIMIT = 256  # idle connections to keep: the most sessions that are driven concurrently

#: Errors of this machine, not of the server, that prevent another connection.
_LOCAL_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

#: Seconds after which an idle connection is not reused. Uvicorn closes it after 5, or 30 in nemo-gym's servers; but if
#: a process that the server forked meanwhile also holds the socket, nothing tells us that it is closed, and a request
#: on it hangs.
IDLE_SECONDS = 4.0


class Transport:
    """Sends requests to one origin, any number concurrently, over as many kept-alive connections as needed.

    Args:
        origin: scheme, host and port; the path is ignored.
        deadline: seconds from the start of a request, before connecting, to the last byte of its reply.
        limit: how many bytes a body may have, as sent and as decoded.
        ssl_context: for https; None for httpx's default (certifi's authorities, or SSL_CERT_FILE).
        idle: how many idle connections to keep.
    """

    def __init__(
        self,
        origin: httpx.URL,
        *,
        deadline: float,
        limit: int = BODY_LIMIT,
        ssl_context: ssl.SSLContext | None = None,
        idle: int = IDLE_LIMIT,
    ) -> None:
        if origin.scheme not in {"http", "https"} or not origin.host:
            raise ValueError(f"not an http or https origin: {origin}")
        self._host = origin.raw_host.decode("ascii")
        self._port = origin.port or {"http": 80, "https": 443}[origin.scheme]
        self._deadline = deadline
        self._limit = limit
        self._intake = Intake(_UNFINISHED)
        self._most_idle = idle
        if ssl_context is None and origin.scheme == "https":
            ssl_context = httpx.create_ssl_context()
        self._ssl = ssl_context if origin.scheme == "https" else None
        self._read = bytearray(READ)
        self._open: set[Connection] = set()
        #: The idle connections, with the time since when. Last in, first out, so that few stay warm and the rest may
        #: time out.
        self._idle: dict[Connection, float] = {}
        self._closed = False

    async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
        """Send one request and return its reply, with the body read and decoded.

        It follows no redirects and keeps no cookies. If a kept-alive connection turns out to be closed before the first
        byte of the reply, the request is sent once more, on a new connection.

        Args:
            method: the HTTP method.
            message: the complete request, as bytes.
            fresh: use a new connection and close it, so that several workers behind one address share the requests.

        Raises:
            ServerFault: no usable reply came.
            NotSent: this machine has no connection left.
            RuntimeError: the transport is closed.
        """
        self._still_open()
        clock = asyncio.get_running_loop().time
        started = clock()
        until = started + self._deadline
        connection = None if fresh else self._kept(started)
        try:
            if connection is None:
                connection = await self._connect(until)
                answer = await connection.exchange(method, message, until=until)
            else:
                try:
                    answer = await connection.exchange(method, message, until=until)
                except ServerFault as fault:
                    if fault.fault is not Fault.BROKEN or fault.partial is not None:
                        raise
                    connection = await self._connect(until)
                    answer = await connection.exchange(method, message, until=until)
        except ServerFault:
            self._still_open()  # we closed it in mid-request: not the server's fault
            raise
        ended = clock()
        if len(self._idle) < self._most_idle and not self._closed and not fresh:
            self._idle[connection] = ended  # `usable` rejects it if it is closing
        else:
            connection.abort()
        return as_reply(answer, self._limit, ended - started)

    async def __aenter__(self) -> Self:
        """The transport itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections, those in use included, and wait until their sockets are gone."""
        self._closed = True
        connections = list(self._open)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.closed

    def _kept(self, now: float) -> Connection | None:
        """An idle connection that is still usable, or None."""
        while self._idle:
            connection, since = self._idle.popitem()
            if now - since < IDLE_SECONDS and connection.usable():
                return connection
            connection.abort()
        return None

    async def _connect(self, until: float) -> Connection:
        self._still_open()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(until):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._limit, self._intake, self._forget, self._read),
                    self._host,
                    self._port,
                    ssl=self._ssl,
                    server_hostname=self._host if self._ssl else None,
                    # ours comes first
                    ssl_handshake_timeout=self._deadline + 1 if self._ssl else None,
                )
        except OSError as error:
            if error.errno in _LOCAL_ERRORS:
                raise NotSent(f"one more connection from this machine: {os.strerror(error.errno).lower()}") from error
            raise self._unconnected(error) from error
        except UnicodeError as error:  # an invalid host name: too long, or with an empty label
            raise ServerFault(Fault.UNREACHABLE, f"{self._host[:80]}: not a host's name") from error
        self._open.add(connection)
        if self._closed or connection.closed.done():
            connection.abort()
            self._forget(connection)
        self._still_open()
        return connection

    def _unconnected(self, error: OSError) -> ServerFault:
        where = f"{self._host} port {self._port}"
        match error:
            case ssl.SSLCertVerificationError():
                return ServerFault(Fault.TLS, f"{where}: {error.verify_message}")
            case ssl.SSLError():
                return ServerFault(Fault.TLS, f"{where}: {error.reason or error}")
            case ConnectionResetError() | ConnectionAbortedError() if self._ssl:
                return ServerFault(Fault.TLS, f"{where}: closed during the handshake")
            case TimeoutError():
                detail = f"{where}: not connected within {self._deadline:g} s"
            case _ if error.errno and error.errno > 0:  # getaddrinfo's numbers are negative
                detail = f"{where}: {os.strerror(error.errno).lower()}"  # asyncio's own text repeats the address
            case _:
                detail = f"{where}: {error.strerror or error}"
        return ServerFault(Fault.UNREACHABLE, detail)

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def _still_open(self) -> None:
        if self._closed:
            raise RuntimeError("the transport is closed")


def as_reply(answer: ParsedReply, limit: int, elapsed: float) -> Reply:
    """The reply, decoded to at most `limit` bytes.

    Raises:
        ServerFault: OVERSIZED; or INVALID if the body is not in the coding that its Content-Encoding declares, or in
            one that was not requested.
    """
    headers, body = tuple(answer.headers), bytes(answer.body)
    coding = ",".join(answer.values("content-encoding")).strip().lower()
    if not coding:
        return Reply(answer.status, headers, body, elapsed)
    try:
        return Reply(answer.status, headers, decoded(body, coding.encode("latin-1"), limit), elapsed)
    except OverflowError:
        fault, detail = Fault.OVERSIZED, f"{len(body)} bytes decode to more than the limit of {limit}"
    except ValueError as error:
        fault, detail = Fault.INVALID, f"content-encoding {coding!r}{error}"
    raise ServerFault(fault, detail, partial=body[:PARTIAL_LIMIT])
