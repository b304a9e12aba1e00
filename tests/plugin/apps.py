"""Servers that go wrong, and how their tests look at a run."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from gym_mocks.wire.client import ASGIApp

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Answer = Callable[[Message, Receive, Send], Awaitable[None]]

#: What stands in any traceback, whoever's it is.
TRACES = ("Traceback", "INTERNALERROR", "gym-conformance itself failed")


def http_only(answer: Answer) -> ASGIApp:
    """An application that answers every request with `answer`, and starts and stops as asked."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        await answer(scope, receive, send)

    return app


async def reply(send: Send, status: int, content_type: str, body: bytes) -> None:
    headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@http_only
async def hangs(_scope: Message, _receive: Receive, _send: Send) -> None:
    """Takes every request and never answers."""
    await asyncio.sleep(3600)


@http_only
async def wants_credentials(_scope: Message, _receive: Receive, send: Send) -> None:
    """Answers nobody that it does not know."""
    await reply(send, 401, "application/json", b'{"detail": "Not authenticated"}')


@http_only
async def html(_scope: Message, _receive: Receive, send: Send) -> None:
    """A web site."""
    await reply(send, 200, "text/html", b"<!DOCTYPE html><html>" + b"<p>Welcome!</p>" * 1_000 + b"</html>")


@http_only
async def echo(scope: Message, receive: Receive, send: Send) -> None:
    """An error page that shows the request, as debug pages do: its headers as they stand, and as JSON spells them."""
    await receive()
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    page = "\n".join([*(f"{name}: {value}" for name, value in headers.items()), json.dumps(headers), repr(headers)])
    await reply(send, 500, "text/plain", page.encode("latin-1"))


def behind(prefix: str, app: ASGIApp) -> ASGIApp:
    """The application as a proxy shows it: below a prefix, and nothing elsewhere."""

    async def proxied(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
        elif scope["path"].startswith(prefix + "/"):
            inner = scope["path"].removeprefix(prefix)
            await app({**scope, "path": inner, "raw_path": inner.encode()}, receive, send)
        else:
            await reply(send, 404, "text/plain", b"no such site")

    return proxied


def hanging_on(path: str, app: ASGIApp, asked: Path) -> ASGIApp:
    """The application, but requests for one path hang; the file `asked` is made by the first of them."""

    async def partly(scope: Message, receive: Receive, send: Send) -> None:
        if scope.get("path") == path:
            asked.touch()  # noqa: ASYNC240 - an empty file
            await asyncio.sleep(3600)
        await app(scope, receive, send)

    return partly


def no_trace(run: pytest.RunResult) -> None:
    """Hold a run to no traceback, neither Python's nor pytest's."""
    said = run.stdout.str() + run.stderr.str()
    assert not [trace for trace in TRACES if trace in said], said


def read_report(path: Path) -> dict[str, dict[str, Any]]:
    """A report's findings by check, in its order; of several subjects, a failed one."""
    found: dict[str, dict[str, Any]] = {}
    for finding in json.loads(path.read_text())["findings"]:
        if finding["verdict"] == "fail" or found.get(finding["check"], {}).get("verdict") != "fail":
            found[finding["check"]] = finding
    return found
