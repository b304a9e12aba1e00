"""A launched server's network: closed while it is judged, and every way in which other hosts fail."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest

from gym_conformance.checks.registry import CHECKS, LAUNCHING, OUTSIDE
from gym_conformance.findings import Finding, Verdict
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.trials.launched import Launched, OtherHosts
from gym_mocks.outside import Outage, Outside
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.wire import HttpReply, HttpRequest
from tests.launch.drills import NOBODY, application
from tests.twins.innocent import CatchAll
from tests.twins.judging import ended, running, telling

#: Made once: each client would read all certificates anew.
_TLS = ssl.create_default_context()

#: Answers what came of a request that it makes itself, by several clients.
ASKING = """
    import asyncio, json, socket, subprocess, sys, urllib.request
    import httpx

    def plain(url):
        with urllib.request.urlopen(url, timeout=30) as reply:
            return reply.status

    async def apart(url):
        async with httpx.AsyncClient(timeout=30) as client:
            return (await client.get(url)).status_code

    def bare(address):
        socket.create_connection((address, 80), timeout=30).close()
        return "connected"

    def program(url):
        code = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=30).status)"
        return subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True).stdout.strip()

    async def said(ask, *given):
        try:
            found = await ask(*given) if asyncio.iscoroutinefunction(ask) else await asyncio.to_thread(ask, *given)
            return str(found)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    class Asks:
        async def __call__(self, scope, receive, send):
            if scope["type"] == "lifespan":
                for step in ("startup", "shutdown"):
                    await receive()
                    await send({"type": f"lifespan.{step}.complete"})
                return
            answers = {
                "plain": await said(plain, "http://api.example.com/search?q=1"),
                "tls": await said(apart, "https://secure.example.com/v1"),
                "bare": await said(bare, "203.0.113.7"),
                "program": await said(program, "http://third.example.com/"),
                "here": await said(apart, "http://127.0.0.1:%d/" % scope["server"][1]) if scope["path"] == "/ask" else "",
            }
            body = json.dumps(answers).encode()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
            await send({"type": "http.response.body", "body": body})

"""


def asking(folder: Path, outside: Outside, *, network: bool = False) -> Any:
    server = application(folder, "")
    (folder / "drill.py").write_text(dedent(ASKING) + "\napp = Asks()\n")
    server.launch = replace(server.launch, peers=replace(NOBODY, outside=outside.address), network=network)
    return server


def test_nothing_leaves_the_machine_and_what_was_asked_is_known(tmp_path: Path) -> None:
    with Outside(seconds=0.1) as outside, asking(tmp_path, outside) as server:
        down = httpx.get(f"{server.url}/ask", timeout=120).json()
        asked_down = outside.requests
        outside.outage = Outage.TOO_MANY
        up = httpx.get(f"{server.url}/ask", timeout=120).json()
    assert down["plain"].endswith("Name or service not known>"), down
    assert "Name or service not known" in down["tls"]
    assert down["bare"].startswith("ConnectionRefusedError")
    assert down["here"] == "200", "loopback is not outside"
    assert {"api.example.com:80", "secure.example.com:443", "203.0.113.7:80"} <= asked_down.keys()
    assert up["plain"] == "HTTPError: HTTP Error 429: TOO_MANY"
    assert up["tls"] == "429"
    assert up["bare"].startswith("ConnectionRefusedError"), "it goes around the resolver"
    assert {"GET http://api.example.com/search", "GET https://secure.example.com/v1"} <= outside.requests.keys()
    assert "GET http://third.example.com/" in outside.requests, "programs are told of a proxy"


@pytest.mark.parametrize("outage", Outage)
def test_no_file_is_made_up(outage: Outage) -> None:
    """A client would keep it: the model that wmt_translation of nemo-gym 0.7.0 fetches was `{}` ever after."""
    with Outside(outage, seconds=0.1) as outside, suppress(httpx.HTTPError):
        proxy = "http://{}:{}".format(*outside.address)
        assert httpx.get("http://example.com/model.bin", proxy=proxy).status_code >= 400


@pytest.fixture
def mocks() -> Iterator[MockPeers]:
    with ExitStack() as started:
        peers = MockPeers(started)
        assert peers.addresses.outside
        peers._outside.seconds = 0.1  # noqa: SLF001 - what is slow need not be that slow here
        yield peers


class _Searches(ReferenceServer):
    """Asks a host before it scores, and copes with what it does."""

    def __init__(self, mocks: MockPeers) -> None:
        super().__init__()
        self.host = "http://{}:{}/search?q=1".format(*mocks.addresses.outside or ())

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        try:
            async with httpx.AsyncClient(timeout=30, verify=_TLS) as client:
                self.read(await client.get(self.host))
        except httpx.HTTPError:
            pass
        return await super().score(session_id, row, response)

    def read(self, reply: httpx.Response) -> None:
        """Take anything."""


class _TakesItForGranted(_Searches):
    def read(self, reply: httpx.Response) -> None:
        _ = reply.json()["results"]


class _AsksNobody(ReferenceServer):
    def __init__(self, _: MockPeers) -> None:
        super().__init__()


def _judged(app: ReferenceServer, mocks: MockPeers, *checks: str) -> dict[str, list[Finding]]:
    """What these checks find of a server whose other hosts are the mocks."""
    with running(app, launched=Launched(outside=mocks), timeout=30.0) as run:
        return {check.id: run.judge(check) for check in (*CHECKS, *OUTSIDE) if check.id in checks}


@pytest.mark.parametrize(
    ("server", "fails", "passes"),
    [
        (_Searches, {"outside-asked"}, {"outside-answers"}),
        (_TakesItForGranted, {"outside-asked", "outside-answers"}, set[str]()),
        (_AsksNobody, set[str](), {"outside-asked"}),
    ],
)
def test_a_twin_fails_exactly_its_own(
    server: Callable[[MockPeers], ReferenceServer], fails: set[str], passes: set[str], mocks: MockPeers
) -> None:
    found = _judged(server(mocks), mocks, *(check.id for check in OUTSIDE))
    assert telling(found) == fails, found
    assert ended(found, Verdict.PASS) == passes
    if "outside-answers" in fails:
        broken = {one.subject for one in found["outside-answers"] if one.verdict is Verdict.FAIL}
        assert {"answer 200 with an empty object", "answer 429"} <= broken


class _GivesUp(_Searches):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        await super().score(session_id, row, response)
        raise RuntimeError("gave up after three attempts")


def test_a_crash_while_other_hosts_are_down_is_no_violation_of_other_rules(mocks: MockPeers) -> None:
    [found] = _judged(_GivesUp(mocks), mocks, "verify-scores-rows").values()
    assert {one.verdict for one in found} == {Verdict.UNTESTABLE}
    assert found[0].reason.startswith("the network (--gym-network): /verify asks another host, and answers ")


class _FindsNothing(_Searches):
    """Raises while the host is down, as tavily_search of nemo-gym 0.7.0 does."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        async with httpx.AsyncClient(timeout=30, verify=_TLS) as client:
            _ = (await client.get(self.host)).json().get("results", [])
        return await ReferenceServer.score(self, session_id, row, response)


def test_a_server_that_needs_other_hosts_is_judged_with_ones_that_answer_an_empty_object(mocks: MockPeers) -> None:
    checks = [check for check in CHECKS if check.id in ("verify-scores-rows", "repeat-recorded")] + [OUTSIDE[-1]]
    with running(_FindsNothing(mocks), launched=Launched(outside=mocks), timeout=30.0) as run:
        found = {check.id: run.judge(check) for check in checks}
    assert {one.verdict for one in found["verify-scores-rows"]} == {Verdict.PASS}
    assert {one.verdict for one in found["repeat-recorded"]} == {Verdict.NOT_APPLICABLE}
    assert "other hosts answer 200 with an empty object, except for" in found["outside-asked"][0].hint
    mocks.forget()
    assert mocks.settled is OtherHosts.DOWN


class _Fetches(_Searches):
    """Fetches what a session needs, and keeps it, as job_bench of nemo-gym 0.7.0 does."""

    kept: bytes = b""

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if not self.kept:
            async with httpx.AsyncClient(timeout=30, verify=_TLS) as client:
                self.kept = (await client.get(self.host)).raise_for_status().content
        return await super().seed(session_id, row)


def test_what_a_session_needs_is_not_made_up(mocks: MockPeers) -> None:
    server = _Fetches(mocks)
    found = _judged(server, mocks, "seed-accepts-rows", "outside-answers")
    assert {one.verdict for each in found.values() for one in each} == {Verdict.UNTESTABLE}
    assert not server.kept


class _CannotConnect(CatchAll):
    """Says of every call what came of asking its host, as finance_agent_v2 of nemo-gym 0.7.0 does."""

    def __init__(self, mocks: MockPeers) -> None:
        super().__init__()
        self.searches = _Searches(mocks)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if not request.path.endswith("_stock"):
            return await super().dispatch(request)
        async with httpx.AsyncClient(timeout=30, verify=_TLS) as client:
            await client.get(self.searches.host)
        return HttpReply.json({"results": "Cannot connect to host api.example.com:443"})


def test_a_host_that_is_not_there_is_no_refusal_of_arguments(mocks: MockPeers) -> None:
    [found] = _judged(_CannotConnect(mocks), mocks, "drift-argument-refused").values()
    assert {one.verdict for one in found} == {Verdict.NOT_APPLICABLE}, found
    assert found[0].not_examined


def test_what_is_made_up_is_said(mocks: MockPeers) -> None:
    launched = Launched(outside=mocks, made_up=("search_api_key",))
    with running(_AsksNobody(mocks), launched=launched, timeout=30.0) as run:
        [found] = run.judge(OUTSIDE[-1])
    assert found.verdict is Verdict.NOTE
    assert found.actual == "search_api_key made up"


def _listening() -> Callable[[], tuple[str, ...]]:
    return tuple


def test_what_nemo_gym_refuses_of_the_yaml_is_told(mocks: MockPeers) -> None:
    [check] = LAUNCHING
    ended = []
    for launched in (
        Launched(),
        Launched(refused=("agent: license: it cannot be 'mine'",), listen=_listening),
        Launched(listen=_listening),
    ):
        with running(_AsksNobody(mocks), launched=launched) as run:
            [found] = run.judge(check)
        ended.append(found.verdict)
    assert ended == [Verdict.NOT_APPLICABLE, Verdict.FAIL, Verdict.PASS]


class _KnowsItsClients(ReferenceServer):
    async def dispatch(self, request: HttpRequest) -> HttpReply:
        return await super().dispatch(request) if request.path in ("/", "/openapi.json") else HttpReply.json({}, 401)


@pytest.mark.parametrize(("made_up", "verdict"), [(("$SHOP_TOKEN",), Verdict.UNTESTABLE), ((), Verdict.FAIL)])
def test_where_its_token_is_made_up_it_knows_no_client(made_up: tuple[str, ...], verdict: Verdict) -> None:
    """Nobody could send the token; a server that needs none of ours is refused as by NeMo Gym's clients, which send none."""
    for name in ("seed-accepts-rows", "seed-sets-cookie"):
        [check] = [each for each in CHECKS if each.id == name]
        with running(_KnowsItsClients(), launched=Launched(made_up=made_up)) as run:
            found = run.judge(check)
        assert {each.verdict for each in found} == {verdict}, found
