"""A client that hangs up on one of its requests, and sends it again: what a broken connection is to a server."""

import asyncio
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Exchange, Request

#: Seconds between hanging up and sending again; nemo-gym's client waits half a second (nemo_gym/server_utils.py).
_AGAIN: Final = 0.2

#: Seconds that a connection, or the first byte of a reply, is waited for.
_PATIENCE: Final = 5.0


class HangingUp(Channel):
    """A channel that hangs up on request number `at`, counted from 0, and then sends it.

    It hangs up `after` so many seconds, or, for None, when the reply begins: then it is the reply that is lost.
    """

    def __init__(self, endpoint: Endpoint, at: int, after: float | None) -> None:
        super().__init__(endpoint)
        self._at = at
        self._after = after
        self._seen = -1

    async def send(self, request: Request) -> Exchange:
        """Send one request, as any channel does."""
        self._seen += 1
        if self._seen == self._at:
            await _hang_up(self.endpoint, request, self._after)
            await asyncio.sleep(_AGAIN)
        return await super().send(request)


async def _hang_up(endpoint: Endpoint, request: Request, after: float | None) -> None:
    """Send a request on a connection of its own, and break it."""
    parts = urlsplit(endpoint.url)
    body = request.body or b""
    headers = {"host": parts.netloc, **endpoint.headers, **request.headers, "content-length": str(len(body))}
    if request.cookies:
        headers["cookie"] = request.cookies.header
    lines = [
        f"{request.method} {parts.path}{request.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    writer = None
    with suppress(OSError, TimeoutError):  # that the server breaks it first is all the same
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            await writer.drain()
            await (reader.read(1) if after is None else asyncio.sleep(after))
    if writer is not None:
        writer.transport.abort()
