"""What is held of unfinished answers: a limit, and nobody is lost who waits for it."""

import asyncio

import pytest

from gym_conformance.session import transport as transport_module
from gym_conformance.session.exchange import Reply
from gym_conformance.session.intake import Intake
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import Transport
from tests.session.event_loop import in_loop
from tests.session.test_transport_connections import Server, ask, until

SIZE = 1 << 20  # more than is read at once


class Recorded:
    """Says whether it reads."""

    reads = True

    def wait(self) -> None:
        assert self.reads
        self.reads = False

    def read_on(self) -> None:
        assert not self.reads
        self.reads = True


def test_one_at_a_time_reads_on() -> None:
    intake, each = Intake(10), [Recorded() for _ in range(4)]
    for reader in each:
        intake.take(reader, 3)
    assert [reader.reads for reader in each] == [True] * 4  # the last is the one that goes on
    for reader in each:
        intake.take(reader, 1)
    assert [reader.reads for reader in each] == [False, False, False, True]
    intake.release(each[1], 4)  # it gave up, and 12 are held still
    intake.release(each[3], 4)
    assert [reader.reads for reader in each] == [True, False, True, True]  # 8 are held, and room for all that wait
    intake.take(each[0], 5)
    intake.take(each[2], 5)
    assert [each[0].reads, each[2].reads].count(True) == 1


def large(sent: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (SIZE, bytes(sent))


@in_loop
async def test_who_waits_gets_its_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deadline waits, too: the one that goes on hangs, and no other."""
    monkeypatch.setattr(transport_module, "_UNFINISHED", 0)
    server = Server(lambda connection, _: large(SIZE // 2 if connection == 0 else SIZE))
    async with server.served() as url, Transport(url, deadline=1.0) as transport:
        first = asyncio.ensure_future(ask(transport))
        await until(lambda: bool(server.writers) and bool(transport._intake._held))  # noqa: SLF001
        replies = await asyncio.gather(first, *(ask(transport) for _ in range(4)), return_exceptions=True)
    assert isinstance(replies[0], ServerFault)
    assert replies[0].fault is Fault.HANG
    assert [len(reply.body) for reply in replies[1:] if isinstance(reply, Reply)] == [SIZE] * 4
    assert transport._intake._held == 0  # noqa: SLF001
