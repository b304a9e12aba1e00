"""What is counted of requests and replies, and for how long."""

import asyncio
import json

import pytest

from gym_conformance.session.channel import Channel, Endpoint, NotSent
from gym_conformance.session.exchange import Exchange, Reply, Request, reply_of
from gym_conformance.session.held import Held

MB = 1 << 20


class Answering:
    """Answers with the same body always."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def send(self, _method: str, _message: bytes, *, fresh: bool = False) -> Reply:
        assert not fresh
        return Reply(200, (), self.body, 0.01)

    async def aclose(self) -> None:
        raise AssertionError


def replies(*bodies: bytes) -> list[Reply]:
    return [Reply(200, (), body, 0.0) for body in bodies]


def room_after(kept: list[Reply]) -> bool:
    held = Held()
    for reply in kept:
        held.add(reply)
    return not held.over()


def test_small_ones_are_not_counted() -> None:
    assert room_after(replies(*[b"x" * 10_000] * 20_000))


def test_what_nobody_holds_is_not_counted() -> None:
    held = Held()
    for _ in range(12):
        held.add(Reply(200, (), bytes(8 * MB), 0.0))
        held.add(Request("POST", "/", bytes(8 * MB)))
        assert not held.over()


def test_text_counts_as_wide_as_it_may_become() -> None:
    assert room_after(replies(*[b"x" * MB] * 40))
    assert not room_after(replies(*["é".encode() + b"x" * MB] * 40))


def test_a_value_counts_once_it_is_made() -> None:
    body = json.dumps([{"a": {}}] * 20_000).encode()
    kept = replies(*[body] * 12)
    assert room_after(kept)
    assert all(reply.is_json for reply in kept)
    assert not room_after(kept)


def test_a_run_stops_asking_while_too_much_is_held_and_goes_on_after() -> None:
    async def test() -> None:
        channel = Channel(Endpoint("http://127.0.0.1:1", Answering(b"x" * 8 * MB), 5.0))
        kept: list[Exchange] = [await channel.send(Request("GET", "/")) for _ in range(6)]
        with pytest.raises(NotSent, match="smaller rows and replies: more than 96 MB"):
            await channel.send(Request("GET", "/"))
        kept.clear()
        channel.exchanges.clear()
        assert len(reply_of(await channel.send(Request("GET", "/"))).body) == 8 * MB

    asyncio.run(test())


def test_sessions_with_large_but_sound_replies_have_room() -> None:
    """As many as are ever open at once, each with a row and an echo of it of 100 KB."""
    echo = json.dumps({"reward": 1.0, "tools": [{"name": "book", "parameters": {"to": "x" * 60}}] * 1_000}).encode()
    assert room_after(replies(*[echo] * 256))
