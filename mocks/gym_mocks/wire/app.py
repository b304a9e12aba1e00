import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from gym_mocks.wire.bodies import HttpRefusal
from gym_mocks.wire.messages import HttpReply, HttpRequest

Handler = Callable[[HttpRequest], Awaitable[HttpReply]]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_LIMIT = 64 * 2**20  # bytes: a rollout with its token ids is some 10 MB at most

log = logging.getLogger("gym_mocks")


class Dropped(Exception):
    """Raised inside a reply's stream: the connection breaks there, with the reply unfinished."""


class App:
    """An ASGI application of exact paths: `handlers` maps (method, path) to one.

    Attributes:
        url: where it is served, without a last slash; empty while it is not.

    What it answers beside its handlers is what FastAPI answers: 404 and 405 as `{"detail": ...}`, a 307 for a
    path that only lacks or has a last slash, and, with nemo-gym's exception middleware, 500 with `repr(e)` as
    a JSON string (nemo_gym/server_utils.py of 0.4.0, `setup_exception_middleware`).
    """

    def __init__(self, handlers: Mapping[tuple[str, str], Handler]) -> None:
        self.handlers = dict(handlers)
        self.url = ""

    async def answer(self, request: HttpRequest) -> HttpReply:
        """The reply to one request; never raises an `Exception`."""
        try:
            return await self.dispatch(request)
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            return HttpReply.json(repr(error), 500)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """The reply of the handler, or of what stands in for one; raises what a handler raises."""
        try:
            return await self.find(request)(request)
        except HttpRefusal as refused:
            return HttpReply.json({"detail": refused.detail}, refused.status, refused.headers)

    def find(self, request: HttpRequest) -> Handler:
        """The handler of a request.

        Raises:
            HttpRefusal: 404, 405 or 307 as Starlette's router answers.
        """
        handler = self.handlers.get((request.method, request.path))
        if handler is not None:
            return handler
        allowed = sorted(method for method, path in self.handlers if path == request.path)
        if allowed:
            raise HttpRefusal(405, "Method Not Allowed", (("allow", ", ".join(allowed)),))
        twin = request.path.rstrip("/") if request.path.endswith("/") else request.path + "/"
        if any(path == twin for _, path in self.handlers):
            return _redirect_to(twin)
        raise HttpRefusal(404, "Not Found")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        request = await read_request(scope, receive)
        reply = HttpReply.json({"detail": "Body too large"}, 413) if request is None else await self.answer(request)
        await write_reply(reply, send)


def _redirect_to(path: str) -> Handler:
    async def redirect(request: HttpRequest) -> HttpReply:
        query = f"?{request.query}" if request.query else ""
        return HttpReply(307, b"", (("location", f"http://{request.headers.get('host', '')}{path}{query}"),))

    return redirect


async def live(_: HttpRequest) -> HttpReply:
    """What each server of a gym answers on its liveness paths."""
    return HttpReply.json({"status": "ok"})


async def _lifespan(receive: Receive, send: Send) -> None:
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


async def read_request(scope: Scope, receive: Receive) -> HttpRequest | None:
    """A request with its body read whole; None where that is longer than `BODY_LIMIT`, or its client went before its end."""
    chunks: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > BODY_LIMIT or message["type"] == "http.disconnect":  # half a request is never taken for one
            return None
        chunks.append(chunk)
        more = message.get("more_body", False)
    headers: dict[str, str] = {}
    for raw, content in scope["headers"]:
        name, value = raw.decode("latin-1").lower(), content.decode("latin-1")
        headers[name] = f"{headers[name]}; {value}" if name == "cookie" and name in headers else value
    query = scope.get("query_string", b"").decode("latin-1")
    return HttpRequest(scope["method"], scope["path"], headers, b"".join(chunks), query=query)


async def write_reply(reply: HttpReply, send: Send) -> None:
    """Send a reply."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
    if isinstance(reply.body, bytes):
        headers.append((b"content-length", str(len(reply.body)).encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})
        return
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    with suppress(Dropped):
        await _stream(reply.body, send)


async def _stream(chunks: AsyncIterator[bytes], send: Send) -> None:
    async for chunk in chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
