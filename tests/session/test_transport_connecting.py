"""What the transport says when no connection comes about, and that TLS is trusted only where it should be."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import ssl
from functools import cache
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme

from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from gym_conformance.session.transport import Transport
from tests.session.event_loop import in_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEADLINE = 0.5
MARGIN = 10.0  # seconds that a busy machine may need
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@cache
def authority() -> tuple[trustme.CA, trustme.LeafCert]:
    """An authority made for this run, and its certificate for this machine."""
    made = trustme.CA()
    return made, made.issue_cert("127.0.0.1", "localhost")


@contextlib.asynccontextmanager
async def served(*, tls: bool, greeting: bytes = b"") -> AsyncIterator[httpx.URL]:
    """Answer every request, after a greeting on connecting; the URL is https whatever is served."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority()[1].configure_cert(context)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while tls and await reader.readuntil(b"\n\r\n"):
                writer.write(HELLO)
            await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context if tls else None)
    try:
        yield httpx.URL(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    finally:
        server.close()
        async with asyncio.timeout(MARGIN):
            while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.01)


async def fault_of(url: httpx.URL, context: ssl.SSLContext | None = None) -> ServerFault:
    async with Transport(url, deadline=DEADLINE, ssl_context=context) as transport:
        with pytest.raises(ServerFault) as caught:
            await transport.send("GET", b"GET / HTTP/1.1\r\n\r\n")
    assert caught.value.partial is None
    return caught.value


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority()[0].configure_trust(context)
    return context


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    fault = asyncio.run(fault_of(httpx.URL(f"http://127.0.0.1:{port}")))
    assert fault.fault is Fault.UNREACHABLE
    assert f"127.0.0.1 port {port}" in fault.detail


def test_nobody_accepts() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        for _ in range(3):  # fill the queue: further connections get no answer at all
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        fault = asyncio.run(fault_of(httpx.URL(f"http://127.0.0.1:{listener.getsockname()[1]}")))
    assert fault.fault is Fault.UNREACHABLE
    assert "not connected within 0.5 s" in fault.detail


def test_files_of_ours_that_are_used_up_are_no_fault_of_the_server() -> None:
    """A low `ulimit -n`, as on macOS, made a MUST of it: that the server had crashed."""

    async def test() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with Transport(httpx.URL("http://127.0.0.1:9"), deadline=MARGIN) as transport:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                with pytest.raises(NotSent, match="one more connection from this machine: too many open files"):
                    await transport.send("GET", b"GET / HTTP/1.1\r\n\r\n")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    asyncio.run(test())


def test_no_such_host() -> None:
    fault = asyncio.run(fault_of(httpx.URL("http://host.invalid:1")))  # RFC 6761: never resolves
    assert fault.fault is Fault.UNREACHABLE


@in_loop
async def test_trusted_certificate() -> None:
    async with (
        served(tls=True) as url,
        Transport(url, deadline=MARGIN, ssl_context=trusting()) as transport,
    ):
        for _ in range(3):
            response = await transport.send("GET", b"GET / HTTP/1.1\r\n\r\n")
            assert response.text == "hello"


@pytest.mark.parametrize(
    ("tls", "trusted", "greeting", "detail"),
    [
        pytest.param(True, False, b"", "unable to get local issuer certificate", id="untrusted"),
        pytest.param(False, True, b"220 smtp.example ESMTP\r\n", "WRONG_VERSION_NUMBER", id="no-tls"),
    ],
)
@in_loop
async def test_tls_faults(tls: bool, trusted: bool, greeting: bytes, detail: str) -> None:
    async with served(tls=tls, greeting=greeting) as url:
        fault = await fault_of(url, trusting() if trusted else None)
    assert fault.fault is Fault.TLS
    assert detail in fault.detail


@in_loop
async def test_tls_handshake_hangs() -> None:
    async with served(tls=False) as url:
        fault = await fault_of(url, trusting())
    assert fault.fault is Fault.UNREACHABLE
