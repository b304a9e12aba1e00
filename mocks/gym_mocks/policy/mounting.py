"""A fake policy as respx routes: httpx-based clients are answered in process, with no socket."""

import asyncio
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gym_mocks.wire import App, HttpReply, HttpRequest
from gym_mocks.wire.app import Dropped
from gym_mocks.wire.client import whole

if TYPE_CHECKING:
    import httpx
    import respx


def mount(app: App, router: "respx.MockRouter", base_url: str) -> "respx.Route":
    """Answer every request below a base URL by an application; the respx route, with its calls.

    Args:
        app: what answers.
        router: respx's, such as its `respx_mock` fixture.
        base_url: such as `https://api.openai.com/v1`, with or without a path; one that ends in `/v1` is where
            the application's own `/v1` is.
    """
    prefix = urlsplit(base_url).path.rstrip("/").removesuffix("/v1")
    root = base_url.rstrip("/").removesuffix("/v1")

    async def answer(request: "httpx.Request") -> "httpx.Response":
        return await _answered(app, request, prefix)

    def answer_now(request: "httpx.Request") -> "httpx.Response":
        return _in_a_thread(app, request, prefix)

    return router.route(url__startswith=root).mock(side_effect=_Either(answer, answer_now))


class _Either:
    """respx's side effect for sync clients and, in an event loop, for async ones."""

    def __init__(self, later: Any, now: Any) -> None:
        self.later = later
        self.now = now

    def __call__(self, request: "httpx.Request") -> Any:
        import httpx  # noqa: PLC0415 - only where somebody mounts

        is_async = isinstance(request.stream, httpx.AsyncByteStream) and not isinstance(
            request.stream, httpx.SyncByteStream
        )
        return self.later(request) if is_async else self.now(request)


async def _answered(app: App, request: "httpx.Request", prefix: str) -> "httpx.Response":
    import httpx  # noqa: PLC0415

    headers = {name.lower(): value for name, value in request.headers.items()}
    path = request.url.path.removeprefix(prefix)
    asked = HttpRequest(request.method, path, headers, request.content, query=request.url.query.decode())
    try:
        reply: HttpReply = await whole(await app.answer(asked))
    except Dropped:
        raise httpx.RemoteProtocolError("peer closed connection", request=request) from None
    sent = [(name, value) for name, value in reply.headers if name != "content-length"]
    return httpx.Response(reply.status, headers=sent, content=reply.body)


def _in_a_thread(app: App, request: "httpx.Request", prefix: str) -> "httpx.Response":
    """The same for a sync client, which may itself be called inside an event loop."""
    found: list[httpx.Response | BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(_answered(app, request, prefix)))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
