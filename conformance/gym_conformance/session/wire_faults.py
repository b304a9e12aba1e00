"""Connection faults during a request, produced by the client, which is all that a server can see.

There is no proxy: a server cannot tell whether the client itself or something in between resets a connection after the
server acted, reads slowly, or reuses a connection.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import httpx

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Exchange, Reply, Request
from gym_conformance.session.reply_reader import Flaw, ParsedReply, Reader
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import Transport, as_reply
from gym_conformance.session.unserved import NO_SUCH_TOOL

#: Seconds between hanging up and sending again; nemo-gym's client waits half a second (nemo_gym/server_utils.py).
_RETRY_DELAY: Final = 0.2

#: Seconds to wait for a connection, or for the first byte of a reply.
_TIMEOUT: Final = 5.0

#: When a client hangs up, as fractions of the request's usual time; and the minimum, in seconds.
_EARLY, _LATE, _SOON = 0.2, 0.8, 0.001

#: Pace of a slow client: parts of the request, bytes of the reply per read, how many reads are delayed, and seconds of
#: delay.
_PARTS, _BYTES, _WAITS, _PAUSE = 4, 256, 30, 0.02

#: Bytes that a slow client's reply may have, and bytes of the kernel's receive buffer.
_LIMIT, _BUFFER = 16 << 20, 2048


@dataclass(frozen=True)
class WireFault:
    """One kind of connection fault during a request.

    Attributes:
        said: what happened, as a clause after "where".
        strike: causes it, given the seconds that the request usually takes; returns the reply, None if none came.
        again: whether the client sends the request afterwards.
        twice: whether the server may then act twice.
    """

    said: str
    strike: Callable[[Endpoint, Request, float], Awaitable[Reply | None]]
    again: bool = True
    twice: bool = True


class StruckChannel(Channel):
    """A channel whose request number `at`, counted from 0, meets a fault; alone, it takes `seconds`."""

    def __init__(self, endpoint: Endpoint, at: int, fault: WireFault, seconds: float) -> None:
        super().__init__(endpoint)
        self._at = at
        self._fault = fault
        self._seconds = seconds
        self._seen = -1

    async def send(self, request: Request) -> Exchange:
        """Send one request, as any channel does; if its reply is lost for good, return an empty one."""
        self._seen += 1
        if self._seen != self._at:
            return await super().send(request)
        reply = await self._fault.strike(self.endpoint, request, self._seconds)
        if reply is None and self._fault.again:
            await asyncio.sleep(_RETRY_DELAY)
            return await super().send(request)
        if reply is None:
            last = self.exchanges[-1].reply if self.exchanges else None
            reply = Reply(200, last.headers if last else (), b"null", 0.0)  # keep the session's cookie
        return self.record(request, reply)


async def _hang_up(endpoint: Endpoint, request: Request, seconds: float, *, share: float | None) -> None:
    """Send a request on a new connection and break it after `share` of its time; for None, when the reply begins."""
    parts, writer = urlsplit(endpoint.url), None
    with suppress(OSError, TimeoutError):  # the server may close it first
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            writer.write(endpoint.written(request))
            await writer.drain()
            await (reader.read(1) if share is None else asyncio.sleep(max(_SOON, share * seconds)))
    if writer is not None:
        writer.transport.abort()


async def _together(endpoint: Endpoint, request: Request, _seconds: float) -> Reply:
    """Send it twice concurrently, on two connections; returns the reply to the second."""
    message = endpoint.written(request)
    both = [endpoint.transport.send(request.method, message, fresh=True) for _ in range(2)]
    first, second = await asyncio.gather(*both, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return second


async def _after_an_error(endpoint: Endpoint, request: Request, _seconds: float) -> Reply:
    """Send it on a connection that was just used to call a nonexistent tool with a body that is not JSON."""
    async with Transport(httpx.URL(endpoint.url), deadline=endpoint.timeout) as transport:
        wrong = Request("POST", f"/{NO_SUCH_TOOL}", b'{"GET / HTTP/1.1\r\n\r\n' * 200, request.headers)
        await transport.send(wrong.method, endpoint.written(wrong))
        return await transport.send(request.method, endpoint.written(request))


async def _slowly(endpoint: Endpoint, request: Request, _seconds: float) -> Reply:
    """Send it in parts, and read the reply a little at a time into a small buffer."""
    loop, parts, reader = asyncio.get_running_loop(), urlsplit(endpoint.url), Reader(_LIMIT)
    message, outcome = endpoint.written(request), None
    reader.expect(request.method)
    size, waits, began = -(-len(message) // _PARTS), _WAITS, loop.time()
    try:
        async with asyncio.timeout(endpoint.timeout):
            [(family, *_, address), *_] = await loop.getaddrinfo(
                parts.hostname, parts.port or 80, type=socket.SOCK_STREAM
            )
            with socket.socket(family, socket.SOCK_STREAM) as line:
                line.setblocking(False)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
                await loop.sock_connect(line, address)
                for at in range(0, len(message), size):
                    await loop.sock_sendall(line, message[at : at + size])
                    await asyncio.sleep(_PAUSE)
                while outcome is None:
                    data = await loop.sock_recv(line, _BYTES)
                    outcome = reader.feed(data) if data else reader.end()
                    waits -= 1
                    await asyncio.sleep(_PAUSE if waits > 0 else 0)
    except TimeoutError:
        outcome = Flaw(Fault.HANG, reader.progress())
    except OSError as error:
        outcome = Flaw(Fault.BROKEN, f"{error}, {reader.progress()}")
    if isinstance(outcome, ParsedReply):
        return as_reply(outcome, _LIMIT, loop.time() - began)
    raise ServerFault(*outcome, partial=reader.seen or None)


#: Clients that hang up early, late, or when the reply begins; some send the request again, some do not.
HANG_UPS: Final = (
    *(
        WireFault("the client hung up on it and sent it again", partial(_hang_up, share=share))
        for share in (_EARLY, _LATE, None)
    ),
    *(
        WireFault("the client hung up on it and went on", partial(_hang_up, share=share), again=False)
        for share in (_EARLY, _LATE)
    ),
)

#: Other faults, by permanent names, which are the subjects of findings.
DISTURBANCES: Final = {
    "duplicates that arrive together": WireFault("it arrived twice at the same time", _together),
    "a connection that met an error before": WireFault(
        "an error had come over its connection before", _after_an_error, twice=False
    ),
    "a slow line": WireFault("it was sent, and its reply read, slowly", _slowly, twice=False),
}
