"""The official client over our channel: what it gets, what becomes of what it cannot use, and what is never shown."""

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from gym_conformance.contract.mcp_block import TOKEN_HEADER, block_of, read_endpoint
from gym_conformance.gym_under_test import BARE_ROW
from gym_conformance.mcp.carrier import Carrier, NotSpoken
from gym_conformance.mcp.connection import McpConnection, NotSendable, connected
from gym_conformance.mcp.result import McpResult
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import make_endpoint
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieContract
from gym_conformance.session.curl import curl_script
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import serve
from gym_mocks.wire import HttpReply, HttpRequest

T = TypeVar("T")
CALL = ("list_stock", {"category": None})


class Answers(ReferenceServer):
    """Answers `tools/call` in a way of its own."""

    def __init__(self, answer: Callable[[Any], HttpReply | None]) -> None:
        super().__init__(expose_tools_over_mcp=True)
        self.answer_call = answer
        assert self.over_mcp is not None
        self.usual = self.over_mcp
        self.handlers["POST", "/mcp"] = self._mcp

    async def _mcp(self, request: HttpRequest) -> HttpReply:
        message = json.loads(request.body)
        if message["method"] != "tools/call":
            return await self.usual(request)
        reply = self.answer_call(message["id"])
        if reply is None:
            await asyncio.sleep(30)
        return reply or HttpReply(500)


def talk(server: ReferenceServer, asking: Callable[[McpConnection], Awaitable[T]]) -> tuple[T, Channel]:
    """What comes of asking in a fresh session, and the channel that it went over."""

    async def within(url: str) -> tuple[T, Channel]:
        endpoint = make_endpoint(url, Options(url=url, timeout=1.0))
        channel = Channel(endpoint)
        try:
            seeded = await CookieContract().session(channel, BARE_ROW).seed()
            mcp = read_endpoint(block_of(reply_of(seeded).json()))
            assert mcp
            async with connected(Carrier(channel, mcp.path, mcp.headers, seeded.number)) as connection:
                return await asking(connection), channel
        finally:
            await endpoint.transport.aclose()

    with serve(server) as url:
        return asyncio.run(within(url))


def call(server: ReferenceServer) -> McpResult:
    return talk(server, lambda connection: connection.call(*CALL))[0]


def test_tools_are_listed_and_called() -> None:
    tools, _ = talk(ReferenceServer(expose_tools_over_mcp=True), lambda connection: connection.tools())
    assert [tool["name"] for tool in tools] == ["add_stock", "move_stock", "count_stock", "list_stock"]
    assert call(ReferenceServer(expose_tools_over_mcp=True)) == McpResult(
        is_error=False, text='{"lines":[]}', structured={"lines": []}
    )


def test_a_tool_error_and_a_json_rpc_error_are_results() -> None:
    server = ReferenceServer(expose_tools_over_mcp=True)
    refused, _ = talk(server, lambda connection: connection.call("list_stock", {"category": 1}))
    assert refused.is_error
    assert "HTTP 422" in refused.text
    error = {"code": -32602, "message": "no such tool"}
    got = call(Answers(lambda number: HttpReply.json({"jsonrpc": "2.0", "id": number, "error": error})))
    assert got == McpResult(is_error=True, text="no such tool", code=-32602)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: HttpReply.json("KeyError()", 500), "status 500"),
        (lambda _: HttpReply(307, b"", (("location", "/mcp/"),)), "status 307"),
        (lambda _: HttpReply(200, b"<html>", (("content-type", "application/json"),)), "<html>"),
        (lambda _: HttpReply.json([]), "body \\[\\]"),
        (lambda number: HttpReply.json({"jsonrpc": "2.0", "id": number, "result": {"content": 5}}), "content"),
        (lambda number: HttpReply.json({"jsonrpc": "2.0", "id": f"{number}0", "result": {}}), "body"),
        (lambda _: HttpReply(200, b"event: ping\n\n", (("content-type", "text/event-stream"),)), "ping"),
        (lambda _: HttpReply(200, b"data: {\n\n" * 20_000, (("content-type", "text/event-stream"),)), "20,000 of them"),
    ],
)
def test_what_the_client_cannot_use_is_said_at_once(answer: Callable[[Any], HttpReply], said: str) -> None:
    started = time.monotonic()
    with pytest.raises(NotSpoken, match=said):
        call(Answers(answer))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("indent", [None, 1], ids=["in one line", "in several"])
def test_a_result_may_come_as_an_event(indent: int | None) -> None:
    """Its text may have what other formats take for the end of a line."""

    def event(number: Any) -> HttpReply:
        content = [{"type": "text", "text": "se\u2028en\x85"}]
        result = {"jsonrpc": "2.0", "id": number, "result": {"content": content}}
        data = json.dumps(result, indent=indent, ensure_ascii=False).replace("\n", "\r\ndata: ")
        body = f"event: message\r\ndata: {data}\r\n\r\n".encode()
        return HttpReply(200, body, (("content-type", "text/event-stream"),))

    assert call(Answers(event)).text == "se\u2028en\x85"


def test_a_reply_that_never_comes_is_a_fault() -> None:
    with pytest.raises(ServerFault) as caught:
        call(Answers(lambda _: None))
    assert caught.value.fault is Fault.HANG


def test_what_the_asker_raises_comes_out_as_it_is() -> None:
    async def asking(_: McpConnection) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        talk(ReferenceServer(expose_tools_over_mcp=True), asking)


def test_what_the_client_cannot_send_is_said() -> None:
    """A lone surrogate is no UTF-8, and the client escapes nothing: no agent could send it."""
    with pytest.raises(NotSendable, match="surrogate"):
        talk(ReferenceServer(expose_tools_over_mcp=True), lambda connection: connection.call("a", {"b": "\ud800"}))


def test_the_token_is_a_secret_and_the_reproduction_finds_it_anew() -> None:
    """The commands work on a server that has never seen the session."""
    _, channel = talk(ReferenceServer(expose_tools_over_mcp=True), lambda connection: connection.call(*CALL))
    token = json.loads(reply_of(channel.exchanges[0]).text)["mcp"]["headers"][TOKEN_HEADER]
    assert channel.endpoint.secrets.redact(f"token {token}.") == "token [redacted]."
    with serve(ReferenceServer(expose_tools_over_mcp=True)) as url:
        script = curl_script(channel.exchanges, url)
        assert token not in "\n".join(script)
        run = subprocess.run(["bash"], input="\n".join(script), capture_output=True, text=True, check=True, timeout=60)  # noqa: S607
    assert '"structuredContent":{"lines":[]}' in run.stdout


def test_a_header_with_a_wild_name_is_not_given_to_the_shell() -> None:
    _, channel = talk(ReferenceServer(expose_tools_over_mcp=True), lambda connection: connection.tools())
    last = channel.exchanges[-1]
    wild = replace(last.request, headers={"`id`": "x"}, borrowed={"`id`": 1})
    (command,) = curl_script([replace(last, request=wild)], "http://x")[-1:]
    assert "'`id`: x'" in command
