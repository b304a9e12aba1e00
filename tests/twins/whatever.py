"""Twins that answer as no server should: late, half, without end, not in HTTP, or with text made to deceive."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow, last_text
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json, Twin, changed, edited, twin

METRICS = "/aggregate_metrics"
#: A page that a proxy may put in a server's place, with bytes that would run in a terminal.
PAGE = (
    "<!doctype html><title>502</title>\x1b[2J\x1b]0;pwned\x07\r\x00"
    "<h1>Bad \u202eyawetaG</h1>\x9b31m\u2066\ud7ff\n\ue000"
).encode()


class Odd(ReferenceServer):
    """Answers aggregate_metrics with an odd reply where it gets no verdicts, as one check asks it to."""

    def __init__(self, reply: Callable[[], HttpReply]) -> None:
        super().__init__()
        self.reply = reply

    async def _aggregate_metrics(self, request: HttpRequest) -> HttpReply:
        return self.reply() if b"[]" in request.body[:24] else await super()._aggregate_metrics(request)


def odd(reply: Callable[[], HttpReply]) -> Callable[[], ASGIApp]:
    return lambda: Odd(reply)


async def half() -> AsyncIterator[bytes]:
    yield b'{"group_level_metrics": '


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 2**20
        await asyncio.sleep(0)  # once the client has gone, nothing else would let the server's loop go on


async def dripping() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.05)


def stream(body: AsyncIterator[bytes], *headers: tuple[str, str]) -> HttpReply:
    return HttpReply(200, body, (("content-type", "application/json"), *headers))


def page(_: HttpRequest, reply: HttpReply) -> HttpReply:
    return HttpReply(502, PAGE, (*reply.headers, ("content-type", "text/html")))


def to_page(_: HttpRequest, reply: HttpReply) -> HttpReply:
    return HttpReply(302, b"", (*reply.headers, ("location", "https://login.example/\x9b2J\xe2\x80\xae")))


def blocking() -> HttpReply:
    """The handler blocks the event loop: nothing is served meanwhile."""
    time.sleep(4)
    return HttpReply.json({})


class HangsInOneTool(ReferenceServer):
    """A tool waits for something that never comes."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if request.path == "/move_stock":
            await asyncio.sleep(3600)
        return await super()._call_tool(request)


class HangsOnLongText(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if len(str(response["output"])) > 100_000:
            await asyncio.sleep(3600)
        return await super().score(session_id, row, response)


class TriesAllWays(ReferenceServer):
    """Code that is never closed is sought by a pattern that repeats what repeats: for hours, from some length on."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        said = str(response["output"])
        if said.count("```") == 1 and len(said.partition("```")[2]) > 1_000:
            await asyncio.sleep(3600)
        return await super().score(session_id, row, response)


class TriesAllWords(ReferenceServer):
    """Words and the usual signs behind them are sought by such a pattern: the end does not come where another sign is."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if re.search(r"[^\W\d]{1000}[.,:;!?]*[^\w\s.,:;!?]", last_text(response["output"])):
            await asyncio.sleep(3600)
        return await super().score(session_id, row, response)


def deep(_: HttpRequest, reply: HttpReply) -> HttpReply:
    return HttpReply(reply.status, b"[" * 100_000 + b"]" * 100_000, reply.headers)


def with_object(reply: Json) -> Json:
    return reply | {"reward_components": {"answer": {"\ud800": [None]}}}


TWINS: tuple[Twin, ...] = (
    twin(
        "a handler blocks the server",
        "metrics-empty",
        odd(blocking),
        untestable="metrics-order",
        timeout=1.0,
        blocks=True,
    ),
    twin(
        "hangs on a long text",
        "verify-degenerate",
        HangsOnLongText,
        untestable="resources-loop-free",
        tempts="verify",
        timeout=1.5,
    ),
    twin(
        "a tool hangs",
        "seed-no-redirects",
        HangsInOneTool,
        untestable="""cookie-replacing-client cookie-keeping-client drift-argument-refused drift-argument-unread
            drift-option-unread calls-error-harmless cookie-unknown-session tool-bad-body tool-wrong-arguments tool-refused-call
            tool-reply-text verify-reward-components resources-session-kept resources-reward-kept repeat-recorded repeat-tool-calls repeat-declares-stateless
            repeat-compressed reward-form reward-extra-read verify-unfinished resources-loop-free drift-result cookie-foreign isolation-same-task""",
        timeout=1.5,
    ),
    twin("tries all ways to find the end of code", "verify-unfinished", TriesAllWays, timeout=1.5),
    twin("tries all ways to find the end of a word", "verify-unfinished", TriesAllWords, timeout=1.5),
    twin("closes in the middle of a body", "metrics-empty", odd(lambda: stream(half(), ("content-length", "900")))),
    twin("a body without end", "metrics-empty", odd(lambda: stream(endless()))),
    twin("a body that drips", "metrics-empty", odd(lambda: stream(dripping())), timeout=1.5),
    twin("two content lengths", "metrics-empty", odd(lambda: HttpReply(200, b"{}", (("content-length", "1"),)))),
    twin("JSON that is none", "metrics-empty", odd(lambda: HttpReply(200, b'{"key_metrics": {}'))),
    twin("JSON nested deep", "metrics-shape metrics-empty", changed(METRICS, deep)),
    twin("a seed's reply nested deep", "seed-replies-object", changed("/seed_session", deep)),
    twin(
        "a component that is an object", "verify-reward-components verify-scores-rows", edited("/verify", with_object)
    ),
    twin("an error page for a reply", "metrics-empty metrics-shape", changed(METRICS, page)),
    twin("a redirect to a log-in", "seed-no-redirects repeat-recorded", changed("/add_stock", to_page)),
)
