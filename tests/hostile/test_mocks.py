"""The mocks before a browser that was lured to them, and before requests that mean harm."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import serve
from gym_mocks.wire.app import read_request

MOCKS = ("head", "policy", "resources")
FOREIGN = (
    *("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1@evil.example"),
    *(
        "",
        "[::ffff:8.8.8.8]",
        "8.8.8.8",
        "\x7f",
        "localhost\\evil.example",
        "evil.example#localhost",
        "2130706433.evil",
    ),
)
BODIES = (
    *(
        b"",
        b"null",
        b"[]",
        b"1",
        b"NaN",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"9" * 100_000,
        b"\xff",
        b'"\\ud800"',
    ),
    *(b'{"responses_create_params": 1}', b'{"model": "\x1b[31m"}', b'{"messages": {}}', b'{"input": [[[[]]]]}'),
)


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """Where each mock listens."""
    with ExitStack() as stack:
        gym = stack.enter_context(MockGym())
        yield {
            "head": gym.head_url,
            "policy": stack.enter_context(serve(FakePolicy())),
            "resources": stack.enter_context(serve(ReferenceServer())),
        }


@pytest.mark.parametrize("mock", MOCKS)
@pytest.mark.parametrize("host", FOREIGN)
def test_a_request_for_another_host_is_refused(mock: str, host: str, urls: dict[str, str]) -> None:
    """DNS rebinding: a page reaches a server on loopback under a name of its own."""
    reply = httpx.get(f"{urls[mock]}/openapi.json", headers={"host": host})
    assert reply.status_code in (400, 421)


@pytest.mark.parametrize("mock", MOCKS)
@pytest.mark.parametrize(
    "path", ["/v1/responses", "/v1/chat/completions", "/seed_session", "/verify", "/%00", "/../../x"]
)
def test_any_body_is_refused_or_taken(mock: str, path: str, urls: dict[str, str]) -> None:
    """And the mock goes on: what the last of them gets is an answer, too."""
    with httpx.Client(base_url=urls[mock], headers={"content-type": "application/json"}, timeout=20) as client:
        for body in BODIES:
            assert client.post(path, content=body).status_code < 500 or (mock, path) == ("resources", "/verify")


@pytest.mark.parametrize("mock", MOCKS)
@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"POST /", b"y" * 65_536),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"y" * 65_536),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X: " + b"y" * 8_000 + b"\r\n"),
        (
            b"POST /verify HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
            b"X: " + b"y" * 8_000 + b"\r\n",
        ),
    ],
    ids=["request line", "a header", "headers", "trailers"],
)
def test_what_is_no_body_has_an_end(mock: str, start: bytes, more: bytes, urls: dict[str, str]) -> None:
    parts = urlsplit(urls[mock])
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=20) as client:
        client.sendall(start)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(more * (64 * 2**20 // len(more)))
    assert httpx.get(f"{urls[mock]}/openapi.json").status_code < 500


def test_a_body_that_breaks_off_is_no_request() -> None:
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    scope = {"method": "POST", "path": "/verify", "headers": []}
    assert asyncio.run(read_request(scope, receive)) is None


LONG = "x y " * 20_000


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": LONG}], "n": 128}),
        ("/v1/completions", {"prompt": ["a b c d e f g"] * 4_096, "n": 128, "logprobs": 0}),
        ("/v1/completions", {"prompt": [7] * 150_000, "prompt_logprobs": 1, "n": 8}),
        ("/generate", {"text": LONG, "return_logprob": True, "token_ids_logprob": [*range(1_000)]}),
        ("/generate", {"text": LONG, "logprob_start_len": 0, "token_ids_logprob": [*range(1_000)]}),
    ],
)
def test_a_reply_has_an_end(path: str, asked: dict[str, Any], urls: dict[str, str]) -> None:
    """A small request that asks for much more: a reply of hundreds of MB, and ten times as much in memory."""
    refused = httpx.post(f"{urls['policy']}{path}", json=asked, timeout=60)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("the reply would have more than 4,194,304 values: ")


def test_a_stream_that_repeats_what_was_said_has_an_end(urls: dict[str, str]) -> None:
    """Each of SGLang's chunks has all so far, so that their number counts twice."""
    asked = {"text": LONG[:16_000], "stream": True, "return_logprob": True}
    streamed = httpx.post(f"{urls['policy']}/generate", json=asked, timeout=60)
    assert streamed.text.count("data: ") < 100
    assert len(streamed.content) < 10_000_000
