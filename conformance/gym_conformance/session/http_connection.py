"""One HTTP/1.1 connection: it writes a request, feeds the reply to the reader, and enforces the deadline.

It carries one exchange at a time and never pipelines. It knows nothing of pools, retries or content codings.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from typing import TYPE_CHECKING, Final, cast

from gym_conformance.session.reply_reader import Flaw, ParsedReply, Reader
from gym_conformance.session.server_fault import Fault, ServerFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from gym_conformance.session.intake import Intake

#: Bytes to read at once.
READ: Final = 1 << 18

#: What acknowledges at once what has come; Linux has it.
_ACKNOWLEDGE: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)


class Connection(asyncio.BufferedProtocol):
    """A connection, idle or in an exchange, which any fault closes.

    Args:
        limit: how many bytes a body may have, as sent.
        intake: counts the unfinished replies of all connections.
        lost: called once, with this connection, when its socket is gone.
        read: the buffer for incoming bytes. Connections of one event loop may share it: it is emptied before each read.
    """

    def __init__(self, limit: int, intake: Intake, lost: Callable[[Connection], None], read: bytearray) -> None:
        self._read = memoryview(read)
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._lost = lost
        self._reader = Reader(limit)
        self._intake = intake
        self._taken = 0
        self._waits_since = 0.0
        self._readable = select.poll()
        self._outcome: asyncio.Future[ParsedReply | Flaw] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None  # reused: most exchanges end long before their deadline

    async def exchange(self, method: str, message: bytes, *, until: float) -> ParsedReply:
        """Send one request and read the complete reply.

        Args:
            method: the HTTP method.
            message: the complete request, as bytes.
            until: the deadline, in the loop's time; never earlier than that of the previous request.

        Raises:
            ServerFault: HANG, BROKEN, INVALID, OVERSIZED, or TLS for an alert after the handshake.
        """
        self._reader.expect(method)
        self._until = until
        if self._timer is None:
            self._timer = self._loop.call_at(until, self._expire)
        self._outcome = self._loop.create_future()
        try:
            self._transport.write(message)
            outcome = await self._outcome
        except BaseException:
            self.abort()
            raise
        finally:
            self._outcome = None
            self._reader.let_go()
            self._intake.release(self, self._taken)
            self._taken = 0
        if isinstance(outcome, Flaw):
            self.abort()
            raise ServerFault(*outcome, partial=self._reader.seen or None)
        # If the reply came early, the rest of the request would reach the server as the start of the next one.
        if not outcome.reusable or self._transport.get_write_buffer_size():
            self.abort()
        return outcome

    def usable(self) -> bool:
        """Whether nothing arrived while it was idle; asks the kernel, since the loop may not have run since."""
        return not self._transport.is_closing() and not self._readable.poll(0)

    def abort(self) -> None:
        """Close at once, dropping whatever is still to be written; `closed` is done when the socket is gone."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        self._socket = cast("socket.socket", transport.get_extra_info("socket"))
        self._readable.register(self._socket.fileno(), select.POLLIN)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio passes it
        """The buffer to read into (asyncio)."""
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        """Take in bytes (asyncio); unrequested ones close the connection, as they must not answer the next request."""
        if self._outcome is None or self._outcome.done():
            self.abort()
            return
        self._settle(self._reader.feed(bytes(self._read[:nbytes])))
        if not self._outcome.done():
            self._taken += nbytes
            self._intake.take(self, nbytes)
            self._acknowledge()

    def _acknowledge(self) -> None:
        """Let the rest of the reply come: a server that writes head and body apart may wait for the head's acknowledgement.

        The kernel puts that off by 40 ms, in the hope to send it with the next request (Nagle's algorithm, RFC 1122
        4.2.3.2).
        """
        if _ACKNOWLEDGE is not None and not self._transport.is_closing():
            self._socket.setsockopt(socket.IPPROTO_TCP, _ACKNOWLEDGE, 1)

    def wait(self) -> None:
        """Pause reading; this stops the deadline, too, since the delay is not the server's."""
        self._waits_since = self._loop.time()
        self._transport.pause_reading()

    def read_on(self) -> None:
        """Resume reading."""
        self._until += self._loop.time() - self._waits_since
        self._waits_since = 0.0
        self._transport.resume_reading()

    def eof_received(self) -> None:
        """Handle the end of the stream (asyncio)."""
        self._settle(self._reader.end())

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the loss of the connection, with the socket's error if there was one (asyncio)."""
        fault = Fault.TLS if isinstance(exc, ssl.SSLError) else Fault.BROKEN
        self._settle(Flaw(fault, f"{exc or 'closed'}, {self._reader.progress()}"))
        if self._timer is not None:
            self._timer.cancel()
        self._lost(self)
        self.closed.set_result(None)

    def _expire(self) -> None:
        self._timer = None
        if self._outcome is None:
            return
        if self._waits_since:
            self._timer = self._loop.call_later(1.0, self._expire)
        elif self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._expire)
        else:
            self._settle(Flaw(Fault.HANG, self._reader.progress()))

    def _settle(self, outcome: ParsedReply | Flaw | None) -> None:
        # Flaws are results, too: an exception would be logged if the exchange is cancelled at that moment
        if outcome and self._outcome and not self._outcome.done():
            self._outcome.set_result(outcome)
