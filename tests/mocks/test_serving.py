"""Serving leaves nothing behind, whatever the application does."""

import asyncio
import contextlib
import errno
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from gym_mocks import addresses
from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.reference import reference_app
from gym_mocks.serving import Host, serve
from gym_mocks.wire import App, HttpReply, HttpRequest
from tests.mocks.conftest import census


@pytest.fixture(scope="module", autouse=True)
def first_host() -> None:
    """A process's first event loop opens a pipe for good (libuv's); it is no host's."""
    Host().close()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = census()
    yield
    assert census() == before


def test_starts_and_stops_many_times() -> None:
    for _ in range(10):
        with serve(reference_app()) as url:
            assert httpx.get(url).json() == {"status": "ok"}
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)


def test_one_host_serves_several() -> None:
    host = Host()
    try:
        urls = [host.serve(reference_app()) for _ in range(5)]
        assert len(set(urls)) == 5
        assert [httpx.get(url).status_code for url in urls] == [200] * 5
    finally:
        host.close()
    host.close()


def test_a_failure_inside_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError), serve(reference_app()):
        _ = 1 / 0


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = f"{os.strerror(errno.EADDRINUSE)}: 127.0.0.1:{port}"
        with pytest.raises(OSError, match=told), serve(reference_app(), port=port):
            pass


def test_an_application_that_does_not_start_is_an_error() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(RuntimeError, match="does not start"), serve(broken):
        pass


def test_a_hanging_request_does_not_hold_the_stop() -> None:
    entered = threading.Event()

    async def hang(_: HttpRequest) -> HttpReply:
        entered.set()
        await asyncio.sleep(3600)
        return HttpReply(200)

    def call(url: str) -> None:
        with contextlib.suppress(httpx.HTTPError):
            assert httpx.get(url, timeout=30).status_code == 500

    with serve(App({("GET", "/"): hang})) as url:
        caller = threading.Thread(target=call, args=(url,))
        caller.start()
        assert entered.wait(5)
        start = time.monotonic()
    assert time.monotonic() - start < 9  # seconds; it would hold for longer
    caller.join(5)


def test_an_idle_connection_does_not_hold_the_stop() -> None:
    with serve(reference_app()) as url, httpx.Client(base_url=url) as client:
        client.get("/")
        start = time.monotonic()
        # The client's connection is still open when the server goes.
    assert time.monotonic() - start < 9  # seconds; it would be 30


def test_what_a_forked_process_holds_ends_with_the_server() -> None:
    """Such as a worker that loads data: whoever asks the server that is gone hears so at once, and its port is free."""
    host = Host()
    url = host.serve(reference_app())
    address = ("127.0.0.1", urlsplit(url).port or 0)
    with socket.create_connection(address, timeout=5) as client, contextlib.ExitStack() as forked:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(1 << 16)
        for each in psutil.Process().net_connections("tcp"):
            if each.laddr == address:
                forked.callback(os.close, os.dup(each.fd))  # the copies that a fork has
        host.close()
        assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
        with serve(reference_app(), port=address[1]) as again:
            assert httpx.get(again).status_code == 200


def test_a_reply_comes_in_one_piece() -> None:
    with (
        serve(reference_app()) as url,
        socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as client,
    ):
        for _ in range(100):
            client.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            head, _, body = client.recv(2**20).partition(b"\r\n\r\n")
            assert f"content-length: {len(body)}".encode() in head.lower()


def test_a_long_stream_waits_for_its_reader() -> None:
    made = 0

    async def long() -> AsyncIterator[bytes]:
        nonlocal made
        while made < 1000:
            made += 1
            yield b" " * 2**20

    async def stream(_: HttpRequest) -> HttpReply:
        return HttpReply(200, long())

    with (
        serve(App({("GET", "/"): stream})) as url,
        socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        client.recv(1)
        time.sleep(0.2)
        assert made < 900


def test_a_body_past_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_mocks.wire.app.BODY_LIMIT", 1000)
    with serve(reference_app()) as url:
        assert httpx.post(f"{url}/verify", content=b"x" * 1001).status_code == 413


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("[::1]:80", 200),
        ("127.8.9.10", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("localhost.evil.example", 421),
        ("10.0.0.1", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_only_hosts_of_this_machine_are_answered(header: str, status: int) -> None:
    """A page in a browser that has its own name point here sends that name."""
    with serve(reference_app()) as url:
        reply = httpx.get(url, headers={"host": header})
        assert reply.status_code == status
        assert status == 200 or "start it with host=" in reply.json()["detail"]


def test_every_server_of_a_gym_checks_its_host() -> None:
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        for url in (gym.head_url, *map(gym.url, gym.names)):
            assert httpx.get(url, headers={"host": "evil.example"}).status_code == 421


def test_a_host_that_was_given_is_served_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    addresses.warn.cache_clear()
    with MockGym(host="0.0.0.0") as gym:  # noqa: S104 - that is what is tested
        gym.add_env(weather.server(), weather.ROWS)
        assert urlsplit(gym.head_url).hostname not in {"0.0.0.0", "localhost"}  # noqa: S104 - likewise
        port, told = urlsplit(gym.head_url).port, urlsplit(gym.head_url).netloc
        for header, status in {told: 200, "10.0.0.1": 200, socket.gethostname(): 200, "evil.example": 421}.items():
            assert httpx.get(f"http://127.0.0.1:{port}/health", headers={"host": header}).status_code == status
    assert [record.getMessage() for record in caplog.records if record.name == "gym_mocks"] == [
        "serving at 0.0.0.0: whoever reaches this machine can use the mock gym"
    ]


def test_a_host_of_no_interface_is_an_error() -> None:
    with pytest.raises(OSError, match=r"."), serve(reference_app(), host="192.0.2.1"):
        pass
