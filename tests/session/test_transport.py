"""The transport against servers that do what servers should not: each outcome, within its deadline."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import socket
import struct
import time
from asyncio import trsock
from typing import TYPE_CHECKING

import httpx
import pytest

from gym_conformance.session import http_connection
from gym_conformance.session.exchange import Reply
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import Transport
from tests.session.event_loop import in_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]

DEADLINE = 0.5
MARGIN = 5.0  # what a busy machine may add: far below anything endless
OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


async def heard(reader: asyncio.StreamReader) -> bytes:
    """One request, head and body; empty when the client has gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    _, _, length = head.lower().partition(b"content-length: ")
    return head + await reader.readexactly(int(length.partition(b"\r")[0] or 0))


def says(*pieces: bytes, then: str = "close", every: float = 0.0) -> Script:
    """Answer each request with these pieces; then close, reset, go on, or hold until the client leaves."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        while await heard(reader):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(every)
            if then == "hold":
                await reader.read()
            if then == "reset":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if then != "go on":
                return

    return script


def repeats(start: bytes, piece: bytes, every: float = 0.0) -> Script:
    """Answer with a start and then the same piece until the client leaves."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await heard(reader)
        writer.write(start)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every)

    return script


@contextlib.asynccontextmanager
async def served(script: Script, host: str = "127.0.0.1") -> AsyncIterator[httpx.URL]:
    """Serve; at the end every connection must have been closed by the client, or the test fails."""
    numbers = itertools.count()
    ended: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        ended.append(task)
        with contextlib.suppress(ConnectionError):
            await script(reader, writer, next(numbers))
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(handle, host, 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield httpx.URL(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
    finally:
        server.close()
        async with asyncio.timeout(MARGIN):
            await asyncio.gather(*ended)


async def ask(transport: Transport, method: str = "GET") -> Reply:
    return await transport.send(method, b"%s / HTTP/1.1\r\nhost: here\r\n\r\n" % method.encode())


async def fault_of(script: Script, *, limit: int = 100_000) -> ServerFault:
    async with served(script) as url, Transport(url, deadline=DEADLINE, limit=limit) as transport:
        started = time.monotonic()
        with pytest.raises(ServerFault) as caught:
            await ask(transport)
        assert time.monotonic() - started < DEADLINE + MARGIN
        assert len(caught.value.partial or b"") <= 4096
        return caught.value


BOMB = gzip.compress(bytes(10_000_000))
TWICE = gzip.compress(gzip.compress(b"hello"))


def coded(coding: bytes, body: bytes) -> Script:
    head = OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding, len(body))
    return says(head, body, then="go on")


@pytest.mark.parametrize(
    ("fault", "detail", "script"),
    [
        pytest.param(fault, detail, script, id=name)
        for name, fault, detail, script in [
            ("silence", Fault.HANG, "no byte", says(then="hold")),
            ("head-hangs", Fault.HANG, "headers were unfinished", says(OK, then="hold")),
            ("head-drips", Fault.HANG, "headers were unfinished", repeats(OK + b"A: ", b"a", 0.02)),
            ("fields-drip", Fault.HANG, "headers were unfinished", repeats(OK, b"A: a\r\n", 0.02)),
            (
                "body-drips",
                Fault.HANG,
                "of 99999",
                repeats(OK + b"Content-Length: 99999\r\n\r\n", b"a", 0.02),
            ),
            ("chunks-drip", Fault.HANG, "body was unfinished", repeats(CHUNKED, b"1\r\na\r\n", 0.02)),
            (
                "length-too-long-hold",
                Fault.HANG,
                "5 of 9 bytes",
                says(HELLO.replace(b"5", b"9"), then="hold"),
            ),
            ("interims-drip", Fault.HANG, "headers", repeats(b"", b"HTTP/1.1 102 P\r\n\r\n", 0.05)),
            ("length-too-long", Fault.BROKEN, "5 of 9 bytes", says(HELLO.replace(b"5", b"9"))),
            ("closed-at-once", Fault.BROKEN, "no byte", says()),
            ("closed-in-head", Fault.BROKEN, "headers were unfinished", says(OK + b"A: b")),
            ("closed-in-chunks", Fault.BROKEN, "at 1 bytes", says(CHUNKED + b"5\r\nh")),
            ("closed-before-last-chunk", Fault.BROKEN, "at 5 bytes", says(CHUNKED + b"5\r\nhello\r\n")),
            ("reset-at-once", Fault.BROKEN, "no byte", says(then="reset")),
            ("reset-in-body", Fault.BROKEN, "", says(OK + b"Content-Length: 9\r\n\r\nh", then="reset")),
            (
                "length-too-short",
                Fault.INVALID,
                "end of the answer",
                says(HELLO.replace(b"5", b"2"), then="hold"),
            ),
            ("second-answer", Fault.INVALID, "end of the answer", says(HELLO + HELLO, then="hold")),
            ("garbage", Fault.INVALID, "HTTP/", says(b"SSH-2.0-OpenSSH_9.6\r\n", then="hold")),
            ("garbage-unfinished", Fault.INVALID, "HTTP/", says(b"\x16\x03\x01", then="hold")),
            ("status-not-a-number", Fault.INVALID, "status", says(b"HTTP/1.1 2xx OK\r\n\r\n")),
            ("nul-in-header", Fault.INVALID, "header", says(OK + b"A: a\0b\r\n\r\n", then="hold")),
            ("space-in-name", Fault.INVALID, "header", says(OK + b"A b: c\r\n\r\n", then="hold")),
            ("bad-byte-in-name", Fault.INVALID, "header", says(OK + b"A\xff: c\r\n\r\n", then="hold")),
            ("length-negative", Fault.INVALID, "Content-Length", says(HELLO.replace(b"5", b"-5"))),
            (
                "length-twice",
                Fault.INVALID,
                "Content-Length",
                says(OK + b"Content-Length: 1\r\n" + HELLO[17:]),
            ),
            (
                "length-beside-chunked",
                Fault.INVALID,
                "",
                says(CHUNKED[:-2] + b"Content-Length: 5\r\n\r\nhello"),
            ),
            ("chunk-size-no-number", Fault.INVALID, "chunk size", says(CHUNKED + b"five\r\nhello")),
            ("interim-flood", Fault.INVALID, "interim", repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99)),
            (
                "switching",
                Fault.INVALID,
                "",
                says(b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
            ),
            (
                "huge-length",
                Fault.OVERSIZED,
                "content-length",
                says(HELLO.replace(b"5", b"5" * 15), then="hold"),
            ),
            (
                "huger-length",
                Fault.INVALID,
                "Content-Length",
                says(HELLO.replace(b"5", b"5" * 25), then="hold"),
            ),
            (
                "endless-chunks",
                Fault.OVERSIZED,
                "body",
                repeats(CHUNKED, b"1000\r\n" + bytes(4096) + b"\r\n"),
            ),
            ("endless-until-close", Fault.OVERSIZED, "body", repeats(OK + b"\r\n", bytes(4096))),
            ("endless-header", Fault.OVERSIZED, "headers", repeats(OK + b"A: ", b"a" * 4096)),
            ("endless-headers", Fault.OVERSIZED, "headers", repeats(OK, b"A: a\r\n" * 999)),
            ("endless-chunk-extension", Fault.OVERSIZED, "framing", repeats(CHUNKED + b"5;a=", b"a" * 4096)),
            ("endless-trailer", Fault.OVERSIZED, "framing", repeats(CHUNKED + b"0\r\nA: ", b"a" * 4096)),
            ("endless-trailers", Fault.OVERSIZED, "headers", repeats(CHUNKED + b"0\r\n", b"A: a\r\n" * 999)),
            ("gzip-bomb", Fault.OVERSIZED, "decode to more", coded(b"gzip", BOMB)),
            ("no-gzip", Fault.INVALID, "gzip", coded(b"gzip", b"hello")),
            ("gzip-twice", Fault.INVALID, "gzip, gzip", coded(b"gzip, gzip", TWICE)),
            ("brotli", Fault.INVALID, "'br'", coded(b"br", b"hello")),
        ]
    ],
)
@in_loop
async def test_unusable_answers(fault: Fault, detail: str, script: Script) -> None:
    caught = await fault_of(script)
    assert (caught.fault, detail in caught.detail) == (fault, True), str(caught)


@in_loop
async def test_partial_is_what_came() -> None:
    assert (await fault_of(says(OK + b"A: b"))).partial == OK + b"A: b"
    assert (await fault_of(says(then="hold"))).partial is None


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        pytest.param(200, b"hello", says(HELLO, then="go on"), id="length"),
        pytest.param(200, b"hello", says(*(bytes([byte]) for byte in HELLO), then="go on"), id="byte-by-byte"),
        pytest.param(200, b"hello", says(CHUNKED + b"5\r\nhello\r\n0\r\nX: y\r\n\r\n", then="go on"), id="chunked"),
        pytest.param(200, b"hello", says(b"HTTP/1.0 200 OK\r\n\r\nhello"), id="until-close"),
        pytest.param(200, b"hello", says(OK + b"Connection: close\r\n" + HELLO[17:]), id="close"),
        pytest.param(200, b"hello", says(b"HTTP/1.1 103 E\r\nLink: x\r\n\r\n" * 3 + HELLO, then="go on"), id="1xx"),
        pytest.param(200, b"hello", coded(b"gzip", gzip.compress(b"hello")), id="gzip"),
        pytest.param(204, b"", says(b"HTTP/1.1 204 No Content\r\n\r\n", then="go on"), id="no-content"),
        pytest.param(
            307,
            b"",
            says(b"HTTP/1.1 307 T\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", then="go on"),
            id="redirect",
        ),
    ],
)
@in_loop
async def test_usable_answers(status: int, body: bytes, answer: Script) -> None:
    """Twice each, as the second shows that the connection was left as it should be."""
    async with served(answer) as url, Transport(url, deadline=MARGIN) as transport:
        for _ in range(2):
            response = await ask(transport)
            assert (response.status, response.body) == (status, body)
            assert 0 < response.elapsed < MARGIN


@in_loop
async def test_headers_as_sent() -> None:
    cookies = [("set-cookie", "a=1; path=/"), ("set-cookie", "b=2"), ("set-cookie", "a=3")]
    head = OK + b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in cookies)
    async with served(says(head + HELLO[17:])) as url, Transport(url, deadline=MARGIN) as transport:
        response = await ask(transport)
    assert response.headers == (*cookies, ("content-length", "5"))


@in_loop
async def test_head_has_no_body() -> None:
    huge = OK + b"Content-Length: 99999999\r\n\r\n"
    async with served(says(huge, then="go on")) as url, Transport(url, deadline=MARGIN) as transport:
        assert (await ask(transport, "HEAD")).body == b""


@in_loop
async def test_ipv6() -> None:
    with contextlib.closing(socket.socket(socket.AF_INET6)) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
    async with served(says(HELLO), "::1") as url, Transport(url, deadline=MARGIN) as transport:
        assert (await ask(transport)).text == "hello"


@pytest.mark.parametrize(("pieces", "asked"), [((HELLO,), 0), ((HELLO[:-5], b"hello"), 1)])
@in_loop
async def test_what_is_not_all_is_acknowledged_at_once(
    pieces: tuple[bytes, ...], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that writes head and body apart may wait for that, which the kernel would put off by 40 ms."""
    options: list[tuple[int, ...]] = []
    monkeypatch.setattr(http_connection, "_ACKNOWLEDGE", 12)  # as on Linux
    monkeypatch.setattr(trsock.TransportSocket, "setsockopt", lambda _, *option: options.append(option))
    async with served(says(*pieces, then="go on", every=0.05)) as url, Transport(url, deadline=10.0) as transport:
        assert (await ask(transport)).body == b"hello"
    assert options.count((socket.IPPROTO_TCP, 12, 1)) == asked
