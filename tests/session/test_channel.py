"""How many requests an endpoint has under way."""

import asyncio
from traceback import walk_tb

import pytest

from gym_conformance.session.backoff import Backoff
from gym_conformance.session.channel import Channel, Endpoint, OutOfTime
from gym_conformance.session.exchange import Exchange, Reply, Request, reply_of
from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from tests.session.event_loop import in_loop


class Counting:
    """Answers with so many bytes; `most` were under way at once."""

    def __init__(self, size: int) -> None:
        self.body = bytes(size)
        self.now = self.most = 0

    async def send(self, _method: str, _message: bytes, *, fresh: bool = False) -> Reply:
        assert not fresh
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return Reply(200, (), self.body, 0.01)

    async def aclose(self) -> None:
        raise AssertionError


@pytest.mark.parametrize(("size", "asked", "most"), [(10, 40, 30), (8 << 20, 9, 4), (20 << 20, 3, 1)])
@in_loop
async def test_large_replies_are_asked_for_a_few_at_a_time(size: int, asked: int, most: int) -> None:
    transport = Counting(size)
    endpoint = Endpoint("http://127.0.0.1:1", transport, 5.0, in_flight=30)

    async def ask() -> None:  # and hold nothing
        await Channel(endpoint).send(Request("GET", "/"))

    await ask()
    await asyncio.gather(*(ask() for _ in range(asked)))
    assert transport.most == most
    assert endpoint.requests == asked + 1


@in_loop
async def test_a_fault_holds_nothing_of_what_was_read_and_large_replies_are_expected_after_it() -> None:
    class Oversized(Counting):
        async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
            read = await super().send(method, message, fresh=fresh)
            raise ServerFault(Fault.OVERSIZED, f"over {len(read.body)} bytes")

    endpoint = Endpoint("http://127.0.0.1:1", transport := Oversized(10), 5.0)
    asked = (Channel(endpoint).send(Request("GET", "/")) for _ in range(9))
    faults = [
        *await asyncio.gather(next(asked), return_exceptions=True),
        *await asyncio.gather(*asked, return_exceptions=True),
    ]
    for fault in faults:
        assert isinstance(fault, ServerFault)
        held = [value for frame, _ in walk_tb(fault.__traceback__) for value in frame.f_locals.values()]
        assert not any(isinstance(value, Reply) for value in held)
    assert transport.most == 2


@in_loop
async def test_a_fault_in_another_channel_comes_with_its_session() -> None:
    class Hanging(Counting):
        async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
            if b"/hangs" in message:
                raise ServerFault(Fault.HANG, "no byte")
            return await super().send(method, message, fresh=fresh)

    endpoint = Endpoint("http://127.0.0.1:1", Hanging(1), 5.0)
    paths = ["/seed_session", "/first", "/seed_session", "/tool", "/hangs"]

    async def fault() -> ServerFault:
        channel = Channel(endpoint)
        for path in paths[:-1]:
            await channel.send(Request("POST", path))
        with pytest.raises(ServerFault) as raised:
            await channel.send(Request("POST", paths[-1]))
        return raised.value

    empty, other = Channel(endpoint), Channel(endpoint)
    await other.send(Request("GET", "/"))
    for channel in (empty, other):
        channel.adopt_fault(await fault())
    assert [one.request.path for one in empty.exchanges] == paths[2:]
    assert [one.request.path for one in other.exchanges] == ["/", "/hangs"]
    assert [one.number for one in empty.exchanges] == [
        3,
        4,
        5,
    ]  # by which later requests name the reply with their cookie


@in_loop
async def test_nothing_is_sent_after_the_end_of_a_run() -> None:
    endpoint = Endpoint("http://127.0.0.1:1", Counting(1), 5.0, until=0.0, bound=7.0)
    with pytest.raises(OutOfTime, match="after 7 s"):
        await Channel(endpoint).send(Request("GET", "/"))
    assert endpoint.requests == 0


@in_loop
async def test_a_record_keeps_the_beginning_of_old_replies() -> None:
    channel = Channel(Endpoint("http://127.0.0.1:1", Counting(5 << 20), 5.0))
    for _ in range(6):
        await channel.send(Request("GET", "/"))
    kept = [len(one.reply.body) for one in channel.exchanges if one.reply]
    assert sum(kept) <= 16 << 20
    assert kept[0] < kept[-1] == 5 << 20


class Full(Counting):
    """Refuses so often, and says when to come again."""

    def __init__(self, often: int, retry_after: str = "0", status: int = 503) -> None:
        super().__init__(1)
        self.often, self.status = often, status
        self.headers = (("retry-after", retry_after),)
        self.asked = 0

    async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
        reply = await super().send(method, message, fresh=fresh)
        self.asked += 1
        return reply if self.asked > self.often else Reply(self.status, self.headers, b"full", 0.01)


@pytest.mark.parametrize(
    ("server", "status", "asked"),
    [
        (Full(3), 200, 4),
        (Full(3, status=429), 200, 4),
        (Full(3, status=500), 500, 1),
        (Full(3, "3600"), 503, 1),
        (Full(3, "Wed, 21 Oct 2026 07:28:00 GMT"), 503, 1),
    ],
)
@in_loop
async def test_a_request_that_is_to_come_again_later_does_so_in_bounds(server: Full, status: int, asked: int) -> None:
    endpoint = Endpoint("http://127.0.0.1:1", server, 5.0)
    channel = Channel(endpoint)
    assert reply_of(await channel.send(Request("GET", "/"))).status == status
    assert (server.asked, len(channel.exchanges)) == (asked, 1)


@in_loop
async def test_time_that_requests_wait_side_by_side_counts_once_and_comes_to_an_end() -> None:
    server = Full(1_000_000)
    endpoint = Endpoint("http://127.0.0.1:1", server, 5.0, backoff=Backoff(0.3))
    replies = await asyncio.gather(*(Channel(endpoint).send(Request("GET", "/")) for _ in range(10)))
    assert {reply_of(each).status for each in replies} == {503}
    assert server.asked >= 30


class Endless(Counting):
    """Answers with more than is read."""

    async def send(self, _method: str, _message: bytes, *, fresh: bool = False) -> Reply:
        assert not fresh
        raise ServerFault(Fault.OVERSIZED, "over the limit")


@pytest.mark.parametrize(
    ("request_", "raised", "says"),
    [
        (Request("POST", "/verify", bytes(5 << 20)), NotSent, "smaller rows: a request has 5 MB"),
        (Request("POST", "/verify", b"{}"), ServerFault, "over the limit"),
        (Request("POST", "/" + "n" * 100_000), NotSent, "requests that HTTP can carry"),
    ],
)
@in_loop
async def test_what_a_request_itself_makes_impossible_is_no_fault_of_the_server(
    request_: Request, raised: type[Exception], says: str
) -> None:
    """Verify repeats the row, so the reply to a row of 16 MB cannot be read; no server reads a path of 100 kB."""
    with pytest.raises(raised, match=says):
        await Channel(Endpoint("http://127.0.0.1:1", Endless(0), 5.0)).send(request_)


def test_a_record_of_which_only_the_requests_matter_keeps_the_beginning_of_replies() -> None:
    light = Exchange(1, Request("GET", "/"), Reply(200, (("set-cookie", "a=b"),), b"x" * 10_000, 0.1)).light()
    assert reply_of(light).body == b"x" * 4096
    assert reply_of(light).set_cookies == ("a=b",)
    assert light.light() is light
