"""Carries a run's requests to a twin of this process without sockets, which take two fifths of a request's time.

What a check makes of replies does not hang on them. What speaks MCP, or breaks HTTP, still finds the twin at its URL.
"""

import asyncio
from urllib.parse import unquote

from gym_conformance.session.exchange import Reply
from gym_conformance.session.reply_reader import ParsedReply
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import BODY_LIMIT, as_reply
from gym_mocks.wire import App, HttpReply, HttpRequest


class InProcess:
    """Sends requests to an application, whose handlers go on if nobody waits for them any longer, as behind a socket.

    Args:
        app: answers in the event loop that it is asked in.
        deadline: seconds for a reply.
    """

    def __init__(self, app: App, deadline: float) -> None:
        self._app = app
        self._deadline = deadline
        self._handlers = set[asyncio.Task[HttpReply]]()

    async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
        """Send one request, as bytes.

        Raises:
            ServerFault: HANG, or INVALID for a content coding that the body is not in.
        """
        del fresh  # there is one process
        clock = asyncio.get_running_loop().time
        began = clock()
        handler = asyncio.ensure_future(self._app.answer(_read(method, message)))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)
        await asyncio.wait({handler}, timeout=self._deadline)
        if not handler.done():
            raise ServerFault(Fault.HANG, "no byte of the reply")
        reply = handler.result()
        assert isinstance(reply.body, bytes), "streams are for sockets"
        headers = [(name.lower(), value) for name, value in reply.headers]
        body = b"" if method == "HEAD" else reply.body
        headers.append(("content-length", str(len(reply.body))))
        return as_reply(ParsedReply(reply.status, headers, bytearray(body), True), BODY_LIMIT, clock() - began)

    async def aclose(self) -> None:
        """Stop the handlers that are still at work."""
        handlers = list(self._handlers)
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


def in_process(server: object, deadline: float) -> InProcess | None:
    """What sends requests to one of our applications; None for any other, or one that answers in a way of its own."""
    if isinstance(server, App) and {type(server).__call__, type(server).answer} == {App.__call__, App.answer}:
        return InProcess(server, deadline)
    return None


def _read(method: str, message: bytes) -> HttpRequest:
    """The request that was written (`session.request_bytes`)."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    path, _, query = first.split(" ")[1].partition("?")
    headers = dict(line.split(": ", 1) for line in lines)
    return HttpRequest(method, unquote(path), headers, body, query=query)
