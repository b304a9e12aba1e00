"""A client for servers on loopback: applications of one gym are called directly, others by socket."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from gym_mocks.wire.app import BODY_LIMIT, App
from gym_mocks.wire.messages import HttpReply, HttpRequest

if TYPE_CHECKING:
    import httpx

ASGIApp = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]

DEADLINE = 600.0  # seconds for one reply: a model may take its time


class LocalClient:
    """Sends requests, keeps no cookies and follows no redirect.

    Attributes:
        apps: applications by origin (`http://127.0.0.1:1234`), which are called without a socket. How long that
            may take is the caller's matter.
    """

    def __init__(self) -> None:
        self.apps: dict[str, ASGIApp] = {}
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def request(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> HttpReply:
        """The reply to one request, its body read whole.

        Raises:
            OSError: the reply breaks off or is longer than `BODY_LIMIT`; a ConnectionError where none comes, a
                TimeoutError `DEADLINE` seconds after the request was sent by a socket.
        """
        parts = urlsplit(url)
        app = self.apps.get(f"{parts.scheme}://{parts.netloc}")
        if app is None:
            async with asyncio.timeout(DEADLINE):
                return await self._over_socket(method, url, body, headers)
        await asyncio.sleep(0)  # an agent and a policy that never wait would starve all other tasks
        asked = HttpRequest(method, unquote(parts.path), {"host": parts.netloc, **headers}, body, query=parts.query)
        reply = await app.answer(asked) if isinstance(app, App) else await call_app(app, asked)
        return await whole(reply)

    async def close(self) -> None:
        """Close the idle connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _over_socket(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> HttpReply:
        import httpx  # noqa: PLC0415 - within a gym nobody needs a socket, and it would start later

        if not url.startswith("http:"):
            raise OSError(f"{url}: only http is spoken here")
        if self._transport is None:  # not httpx's client, which would keep cookies; nor certificates, which take long
            self._transport = httpx.AsyncHTTPTransport(verify=False, limits=httpx.Limits(), trust_env=False)
        asked = httpx.Request(method, url, content=body, headers={"accept-encoding": "identity", **headers})
        try:
            response = await self._transport.handle_async_request(asked)
        except httpx.TransportError as error:
            raise ConnectionResetError(f"{url}: {error!r}") from error
        content = bytearray()
        try:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > BODY_LIMIT:
                    raise OSError(f"{url}: a body of more than {BODY_LIMIT} bytes")
        except httpx.TransportError as error:
            raise OSError(f"{url}: its reply breaks off: {error!r}") from error
        finally:
            await response.aclose()
        return HttpReply(response.status_code, bytes(content), tuple(response.headers.multi_items()))


async def call_app(app: ASGIApp, request: HttpRequest) -> HttpReply:
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
    headers = tuple(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in start.get("headers", ())
        if name.lower() != b"content-length"  # the body's own: whoever sends it on says it again
    )
    return HttpReply(start["status"], b"".join(message.get("body", b"") for message in sent[1:]), headers)


async def whole(reply: HttpReply) -> HttpReply:
    """A reply with its body read to the end."""
    if isinstance(reply.body, bytes):
        return reply
    return HttpReply(reply.status, b"".join([chunk async for chunk in reply.body]), reply.headers)
