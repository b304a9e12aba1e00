"""A client for servers on loopback: applications of one gym are called directly, others by socket."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote, urlsplit

from gym_mocks.wire.app import BODY_LIMIT, App
from gym_mocks.wire.messages import Reply, Request

ASGIApp = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

DEADLINE = 600.0  # seconds for one reply: a model may take its time
LINE_LIMIT = 2**16


class Client:
    """Sends requests, keeps no cookies, follows no redirect, and reuses idle connections.

    Args:
        apps: applications by origin (`http://127.0.0.1:1234`), which are called without a socket. How long that
            may take is the caller's matter.
    """

    def __init__(self, apps: MutableMapping[str, ASGIApp] | None = None) -> None:
        self.apps = {} if apps is None else apps
        self._idle: defaultdict[str, list[Connection]] = defaultdict(list)

    async def request(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Reply:
        """The reply to one request, its body read whole.

        Raises:
            OSError: no connection, or it breaks; TimeoutError `DEADLINE` seconds after it was sent by a socket.
        """
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        headers = {"host": parts.netloc, **headers}
        app = self.apps.get(origin)
        if app is None:
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            async with asyncio.timeout(DEADLINE):
                return await self._over_socket(origin, method, target or "/", body, headers)
        asked = Request(method, unquote(parts.path), headers, body, query=parts.query)
        reply = await app.answer(asked) if isinstance(app, App) else await call_app(app, asked)
        return await whole(reply)

    def close(self) -> None:
        """Close the idle connections."""
        for connections in self._idle.values():
            for _, writer in connections:
                writer.close()
        self._idle.clear()

    async def _over_socket(self, origin: str, method: str, target: str, body: bytes, headers: dict[str, str]) -> Reply:
        head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        sent = "\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode("latin-1") + body
        while idle := self._idle[origin]:
            try:
                return await self._exchange(origin, idle.pop(), sent)
            except ConnectionError:  # the server closed it while it was idle
                continue
        parts = urlsplit(origin)
        if parts.scheme != "http":
            raise OSError(f"{origin}: only http is spoken here")
        connection = await asyncio.open_connection(parts.hostname, parts.port or 80, limit=LINE_LIMIT)
        return await self._exchange(origin, connection, sent)

    async def _exchange(self, origin: str, connection: Connection, sent: bytes) -> Reply:
        reader, writer = connection
        keep = False
        try:
            writer.write(sent)
            await writer.drain()
            reply, keep = await _read_reply(reader)
        except (asyncio.IncompleteReadError, ValueError) as error:
            raise ConnectionResetError(f"{origin} broke the connection") from error
        finally:
            if keep:
                self._idle[origin].append(connection)
            else:
                writer.close()
        return reply


async def call_app(app: ASGIApp, request: Request) -> Reply:
    """The reply of any ASGI application."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode("latin-1"),
        "root_path": "",
        "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in request.headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    sent: list[MutableMapping[str, Any]] = []
    asked = iter([{"type": "http.request", "body": request.body, "more_body": False}])
    done = asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        message = next(asked, None)
        if message is None:
            await done.wait()
            return {"type": "http.disconnect"}
        return message

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            done.set()

    await app(scope, receive, send)
    start = sent[0]
    headers = tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in start.get("headers", ()))
    return Reply(start["status"], b"".join(message.get("body", b"") for message in sent[1:]), headers)


async def whole(reply: Reply) -> Reply:
    """A reply with its body read to the end."""
    if isinstance(reply.body, bytes):
        return reply
    return Reply(reply.status, b"".join([chunk async for chunk in reply.body]), reply.headers)


async def _read_reply(reader: asyncio.StreamReader) -> tuple[Reply, bool]:
    """A reply off the wire, and whether the connection may be used again."""
    status = int((await reader.readuntil(b"\r\n")).split(b" ", 2)[1])
    headers: list[tuple[str, str]] = []
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.lower(), value.strip()))
    fields = dict(headers)
    keep = fields.get("connection", "").lower() != "close"
    if "chunked" in fields.get("transfer-encoding", ""):
        body = bytearray()
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await reader.readexactly(_held(len(body) + size) - len(body))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return Reply(status, bytes(body), tuple(headers)), keep
    if "content-length" in fields:
        return Reply(status, await reader.readexactly(_held(int(fields["content-length"]))), tuple(headers)), keep
    body = bytearray()
    while chunk := await reader.read(LINE_LIMIT):
        body += chunk
        _held(len(body))
    return Reply(status, bytes(body), tuple(headers)), False


def _held(size: int) -> int:
    """The size of a body that is held whole.

    Raises:
        ValueError: it is longer than any that we hold.
    """
    if size > BODY_LIMIT:
        raise ValueError(f"a body of more than {BODY_LIMIT} bytes")
    return size
