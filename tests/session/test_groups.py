"""A verify that is answered only in company is sent in company; one that hangs in any case is not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
import pytest

from gym_conformance.contract.policy_output import DO_NOTHING, message, response
from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.contracts import CookieContract
from gym_conformance.session.curl import curl_script
from gym_conformance.session.exchange import Exchange, reply_of
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import Transport
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve
from tests.session.test_curl import run
from tests.twins.groups import SIZE, Grouped, Numbered, Waiting
from tests.twins.twin import dataset

T = TypeVar("T")
ROW = dataset().rows[0]
ANSWER = response([message("It is 7.")])


class OnePool(Grouped):
    """Scores any four rollouts together, whatever their prompt."""

    def key(self, _: dict[str, Any]) -> object:
        return "all"

    def place(self, _: dict[str, Any], group: Waiting) -> int:
        return len(group)


class Ponders(Numbered):
    """Takes its time to compare them: longer than it takes to send as many as are tried."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        scored = await super().score(session_id, row, response)
        await asyncio.sleep(0.7)
        return scored


class Hangs(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        await asyncio.sleep(60)
        return await super().score(session_id, row, response)


class HangsOnOne(ReferenceServer):
    """Scores each rollout alone, and never comes to the end of one answer."""

    asked = 0

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        self.asked += 1
        if response["output"] == ANSWER["output"]:
            await asyncio.sleep(60)
        return await super().score(session_id, row, response)


def against(server: ReferenceServer, drive: Callable[[Endpoint], Awaitable[T]], timeout: float = 2.0) -> T:
    """What comes of it with the server's endpoint."""

    async def within(url: str) -> T:
        transport = Transport(httpx.URL(url), deadline=timeout)
        try:
            return await drive(Endpoint(url, transport, timeout))
        finally:
            await transport.aclose()

    with serve(server) as url:
        return asyncio.run(within(url))


async def verified(endpoint: Endpoint, output: dict[str, Any] = DO_NOTHING.response) -> Exchange:
    session = CookieContract().session(Channel(endpoint), ROW)
    await session.seed()
    return await session.verify(output)


@pytest.mark.parametrize("server", [Grouped, Numbered, OnePool, Ponders])
def test_a_rollout_is_sent_with_the_rest_of_its_group(server: type[Grouped]) -> None:
    async def drive(endpoint: Endpoint) -> list[Exchange]:
        first = await verified(endpoint)
        return [first, *await asyncio.gather(*(verified(endpoint, ANSWER) for _ in range(3)))]

    exchanges = against(server(), drive)
    assert [reply_of(exchange).status for exchange in exchanges] == [200] * 4
    assert {len(exchange.group) for exchange in exchanges} == {SIZE - 1}
    own, others = exchanges[1].request.body or b"", exchanges[1].group[0].body or b""
    assert b"It is 7." in own
    assert b"It is 7." not in others, "the others are copies of what was scored first, by which all are measured"


def test_a_verify_that_hangs_in_company_is_a_hang() -> None:
    async def drive(endpoint: Endpoint) -> tuple[int, int]:
        with pytest.raises(ServerFault) as raised:
            await verified(endpoint)
        assert raised.value.fault is Fault.HANG
        return endpoint.groups.size, endpoint.hangs["/verify"]

    assert against(Hangs(), drive, timeout=1.0) == (1, 1)


def test_a_verify_that_scores_alone_is_not_asked_for_groups_of_what_hangs() -> None:
    """Dozens of them would take all threads that a server has."""
    server = HangsOnOne()

    async def drive(endpoint: Endpoint) -> None:
        for _ in range(2):
            await verified(endpoint)
        with pytest.raises(ServerFault):
            await verified(endpoint, ANSWER)

    against(server, drive, timeout=1.0)
    assert server.asked == 3


def test_a_reproduction_sends_the_whole_group() -> None:
    async def drive(endpoint: Endpoint) -> list[int]:
        channel = Channel(endpoint)
        session = CookieContract().session(channel, ROW)
        await session.seed()
        await session.verify(ANSWER)
        script = curl_script(channel.exchanges, endpoint.url, timeout=5)
        return await asyncio.to_thread(run, script)

    assert against(Grouped(), drive)[-1] == 200
