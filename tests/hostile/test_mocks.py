"""The mocks before a browser that was lured to them, and before requests that mean harm."""

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import serve

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
