"""A reproduction is run as a reader would run it: bash and curl see the statuses that the suite saw."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.policy_output import DO_NOTHING, RAW_SURROGATE
from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies
from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.contracts import CookieContract, CookieHabit, post
from gym_conformance.session.curl import bodies_of, curl_script, environment_name, with_bodies_at
from gym_conformance.session.exchange import Exchange, Reply, Request, reply_of, sessions_with
from gym_conformance.session.transport import Transport
from gym_conformance.session.typed_sessions import TypedContract
from gym_mocks.reference import ReferenceServer, SignedCookie
from gym_mocks.resources import ResourcesServer, TypedSessions
from gym_mocks.serving import serve
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.cookies import CookieOnce, ToolNeedsSession
from tests.twins.twin import dataset

URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module", autouse=True)
def _curl() -> None:
    if not shutil.which("curl") or not shutil.which("bash"):
        pytest.fail("curl and bash are needed to run reproductions: install them", pytrace=False)


def run(script: list[str], **environment: str) -> list[int]:
    """The statuses that the script prints."""
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],  # noqa: S607 - whichever bash the reader has
        capture_output=True,
        check=True,
        timeout=60,
        env=os.environ | environment,
    )
    assert done.stderr == b""
    return [int(line) for line in done.stdout.split(b"\n") if len(line) == 3 and line.isdigit()]


async def drive(channel: Channel, habit: CookieHabit) -> None:
    """A session with calls, a refused one, bytes that are no text, and a verify with a lone surrogate."""
    data = dataset()
    session = CookieContract().session(channel, data.rows[1], habit)
    await session.seed()
    rollout = next(rollout for rollout in data.rollouts if rollout.belongs_to(data.rows[1]))
    for call in rollout.calls:
        await session.call(call)
    await session.call(Call("no such 'tool' $(touch x)", {"it's": "\x1b\u202e"}))
    await session.call_raw("count_stock", b'{"a": "\xff\xfe"}')
    await session.call_raw("count_stock", None)
    await session.verify(rollout.response)
    await session.verify(RAW_SURROGATE.response)
    await channel.send(Request("GET", "/"))
    await channel.send(
        post("/verify", {**data.rows[1].data, "response": DO_NOTHING.response}, Cookies((("a'b", "\xff\x9b"),)))
    )


def recorded(app: ASGIApp, habit: CookieHabit, headers: dict[str, str] | None = None) -> tuple[list[int], list[int]]:
    """The statuses that the suite saw, and those of its reproduction on the same server."""

    async def record(url: str) -> list[Exchange]:
        transport = Transport(httpx.URL(url), deadline=5)
        try:
            channel = Channel(Endpoint(url, transport, 5, headers or {}))
            await drive(channel, habit)
        finally:
            await transport.aclose()
        return channel.exchanges

    with serve(app) as url:
        exchanges = asyncio.run(record(url))
        secrets = {environment_name(name): value for name, value in (headers or {}).items()}
        script = curl_script(exchanges, url, headers or {}, timeout=5)
        assert not any(secret in line for secret in secrets.values() for line in script)
        again = run(script, **secrets)
    return [exchange.reply.status if exchange.reply else 0 for exchange in exchanges], again


@pytest.mark.parametrize("habit", CookieHabit, ids=lambda client: client.name.lower())
@pytest.mark.parametrize("make", [ReferenceServer, CookieOnce, ToolNeedsSession], ids=lambda make: make.__name__)
def test_curl_sees_what_the_suite_saw(make: Callable[[], ASGIApp], habit: CookieHabit) -> None:
    """Cookies included: ToolNeedsSession answers 500 to a call whose session's cookie does not come along."""
    seen, again = recorded(make(), habit)
    assert seen == again
    assert seen[:3] == [200, 200, 200]


class Typed(TypedSessions, ReferenceServer):
    """The reference with typed sessions, each of which can be closed once."""


def test_typed_sessions_are_named_anew() -> None:
    """Under the same ids every request would be refused: those sessions are closed."""

    async def record(url: str) -> list[Exchange]:
        channel = Channel(Endpoint(url, transport := Transport(httpx.URL(url), deadline=5), 5))
        for row in dataset(lambda row: row.update(note="a long one " * 500)).rows + dataset().rows:
            session = TypedContract().session(channel, row)
            await session.seed()
            await session.again().seed()
            await session.call(Call("list_stock", {"category": None}))
            await session.close()
            await session.seed()
        await transport.aclose()
        return channel.exchanges

    with serve(Typed()) as url:
        exchanges = asyncio.run(record(url))
        again = run(curl_script(exchanges, url, timeout=5))
    assert again == [exchange.reply.status for exchange in exchanges if exchange.reply] == [200, 200, 200, 200, 409] * 4


class NeedsToken(ReferenceServer):
    """Answers 401 to whoever does not know the word."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.headers.get("authorization") != "Bearer open 'sesame'":
            return HttpReply.json({}, 401)
        return await super().dispatch(request)


def test_a_secret_header_comes_from_the_environment() -> None:
    seen, again = recorded(NeedsToken(), CookieHabit.REPLACING, {"Authorization": "Bearer open 'sesame'"})
    assert seen == again
    assert 401 not in seen


def exchange(number: int, request: Request) -> Exchange:
    return Exchange(number, request, Reply(200, (), b"", 0.1))


def test_short_text_stands_in_the_command_and_anything_else_in_a_file() -> None:
    given = {1: b'{"a": 1}', 2: b"\xff\x1b", 3: b"it's long " * 100, 4: b"a" * 5_000}
    script = curl_script([exchange(number, Request("POST", "/a", body)) for number, body in given.items()], URL)
    assert "--data-binary '{\"a\": 1}'" in script[1]
    assert bodies_of(script) == {f"{number}.body": body for number, body in given.items() if number > 1}
    assert all(command.isprintable() for command in script)
    assert all(len(command) < 200 for command in script if command.startswith("curl"))


def test_bodies_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is the same, from wherever the script starts."""
    place = tmp_path / "a folder"
    place.mkdir()
    ids = "resources-session-" + "0" * 32
    long = [
        exchange(1, Request("POST", "/a", b"\xff" * 600)),
        exchange(2, Request("POST", "/b", f'{{"id": "{ids}", "note": "{"it is long " * 100}"}}'.encode())),
    ]
    script = curl_script(long, URL)
    for name, body in bodies_of(script).items():
        (place / f"x.{name}").write_bytes(body)
    monkeypatch.chdir(tmp_path)
    short = with_bodies_at(script, "a folder/x.")
    assert max(map(len, short)) < 250
    curl = 'curl() { cat "${!##@}"; printf \' by %s\\n\' "$S1"; }'  # shows the body, which is the last argument
    said = [
        subprocess.run(["bash", "-c", "\n".join([curl, *lines])], capture_output=True, check=True, timeout=60).stdout  # noqa: S607
        for lines in (script, short)
    ]
    for one in said:
        assert ids.encode() not in one
        assert one.startswith(b"\xff" * 600)
        assert b'"note": "it is long it is long' in one


def test_cookies_are_taken_from_the_reply_that_set_them() -> None:
    seed = exchange(1, post("/seed_session", {}))
    call = exchange(2, post("/add", {}, Cookies((("a", "1"),), origin=1)))
    folder, first, second = curl_script([seed, call], URL)
    assert folder.startswith("cd ")
    assert " -D 1.head" in first
    assert " -b 1.head" in second
    assert "Cookie" not in second


def test_made_up_cookies_stand_in_the_command_as_bytes() -> None:
    [plain] = curl_script([exchange(1, post("/a", {}, Cookies((("a", "it's"),))))], URL)
    [odd] = curl_script([exchange(1, post("/a", {}, Cookies((("a\x9b", "\\x'\xff"),))))], URL)
    assert "'Cookie: a=it'\"'\"'s'" in plain
    assert r"$'Cookie: a\x9b=\x5cx\x27\xff'" in odd


def test_no_cookie_no_option() -> None:
    [command] = curl_script([exchange(1, Request("GET", "/", cookies=NO_COOKIES))], URL)
    assert "-b" not in command
    assert "-X GET" in command


def test_the_reference_signs_with_a_key_of_its_own() -> None:
    """So that a script that works on a fresh server has not carried its cookies along."""
    assert SignedCookie("a").key != SignedCookie("a").key
    assert isinstance(ReferenceServer(), ResourcesServer)


def test_only_the_sessions_that_show_it_are_reproduced() -> None:
    """Each from its seed to what shows it; all of them where one of the replies is not there."""

    def exchange(number: int, path: str) -> Exchange:
        return Exchange(number, Request("POST", path), Reply(200, (), b"{}", 0.1))

    paths = ["/seed_session", "/look", "/move", "/seed_session", "/move", "/reset", "/step", "/step", "/move"]
    record = [exchange(number, path) for number, path in enumerate(paths)]
    shown = [reply_of(record[2]), reply_of(record[7])]
    assert [one.number for one in sessions_with(shown, record)] == [0, 1, 2, 5, 6, 7]
    assert sessions_with([*shown, Reply(200, (), b"{}", 0.1)], record) == record
