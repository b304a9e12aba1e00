"""What is counted of requests and replies, and for how long."""

import gc
import json
import tracemalloc
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.session.channel import Channel, Endpoint, NoRoom
from gym_conformance.session.contracts import CookieContract
from gym_conformance.session.exchange import Exchange, Reply, Request, reply_of
from gym_conformance.session.held import Held
from tests.session.event_loop import in_loop

MB = 1 << 20


class Answering:
    """Answers with as many bytes always, which are other ones each time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.asked = 0

    async def send(self, _method: str, _message: bytes, *, fresh: bool = False) -> Reply:
        assert not fresh
        self.asked += 1
        return Reply(200, (), b"%02d" % self.asked * (self.size // 2), 0.01)

    async def aclose(self) -> None:
        raise AssertionError


def replies(*bodies: bytes) -> list[Reply]:
    return [Reply(200, (), body, 0.0) for body in bodies]


def different(count: int, body: bytes) -> list[Reply]:
    """So many, of which no two say the same."""
    return replies(*[b"%d " % number + body for number in range(count)])


def different_values(count: int, value: object) -> list[Reply]:
    return replies(*[json.dumps([number, value]).encode() for number in range(count)])


def room_after(kept: list[Reply]) -> bool:
    held = Held()
    shared = [held.shared(reply) for reply in kept]
    return not held.over() and len(shared) == len(kept)


def test_small_ones_are_not_counted() -> None:
    assert room_after(different(20_000, b"x" * 10_000))


def test_what_nobody_holds_is_not_counted() -> None:
    held = Held()
    for _ in range(12):
        held.shared(Reply(200, (), bytes(8 * MB), 0.0))
        held.shared(Request("POST", "/", bytes(8 * MB)))
        assert not held.over()


@in_loop
async def test_a_row_is_not_counted_with_each_request_that_has_it() -> None:
    """Such as a row with an image of a megabyte, of which many verifies are kept for reproductions."""
    row = Row({"responses_create_params": {"input": "x" * MB}, "gold": "4"}, Source(Path("rows.jsonl"), 1))
    endpoint = Endpoint("http://127.0.0.1:1", Answering(10), 1)
    channel = Channel(endpoint)
    for number in range(100):
        session = CookieContract().session(channel, row)
        await session.seed()
        await session.verify({"output": [number]}, reward_id=number)
    assert not endpoint.held.over()
    first, *_, last = (json.loads(exchange.request.body or b"") for exchange in channel.exchanges)
    assert first == row.data
    assert last == {**row.data, "reward_id": 99, "response": {"output": [99]}}


def test_text_counts_as_wide_as_it_is() -> None:
    def room(sign: str) -> bool:
        kept = different(16, sign.encode() + b"x" * (3 * MB // 2))
        return all(reply.said == reply.text for reply in kept) and room_after(kept)

    assert [room("e"), room("é"), room("四"), room("😀")] == [True, False, False, False]


def test_what_is_no_json_has_no_value() -> None:
    kept = different(24, b"{,[" * (MB // 3))
    assert not any(reply.is_json for reply in kept)
    assert room_after(kept)


def test_a_value_counts_once_it_is_made() -> None:
    kept = different_values(12, [{"a": {}}] * 20_000)
    assert room_after(kept)
    assert all(reply.is_json for reply in kept)
    assert not room_after(kept)


@pytest.mark.parametrize(
    "body",
    [
        "x" * MB,
        "é" + "x" * MB,
        "x" * MB + "四",
        "😀" + "x" * MB,
        json.dumps({"rules": "x" * MB}),
        json.dumps({"rules": "x" * MB + "四"}),
        json.dumps({"rules": "x" * MB + "😀"}),
        json.dumps({"rules": "x" * MB + "😀"}, ensure_ascii=False),
        json.dumps([{"a": {}}] * 20_000),
    ],
    ids=["ASCII", "é", "BMP", "beyond", "JSON", "escaped", "escaped beyond", "JSON beyond", "objects"],
)
def test_what_has_room_takes_no_more_memory(body: str) -> None:
    """Also where each reply is another one, and its text and its value are kept."""
    held, kept = Held(), list[tuple[Reply, str, object]]()
    tracemalloc.start()
    try:
        while not held.over():
            reply = held.shared(Reply(200, (), b"[%d,%s]" % (len(kept), body.encode()), 0.0))
            kept.append((reply, reply.text, reply.said))
        assert tracemalloc.get_traced_memory()[0] < 110 * MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", ["x四" * MB, json.dumps({"rules": "x" * MB, "a": [{}]})], ids=["text", "JSON"])
def test_the_same_large_body_is_held_once(body: str) -> None:
    held = Held()
    tracemalloc.start()
    try:
        kept = [held.shared(Reply(200, (), body.encode(), 0.0)) for _ in range(60)]
        said = [(reply.text, reply.said) for reply in kept]
        assert tracemalloc.get_traced_memory()[0] < 16 * MB
    finally:
        tracemalloc.stop()
    assert not held.over()
    assert said == [(body, Reply(200, (), body.encode(), 0.0).said)] * 60
    assert kept[-1].beginning(9).text == body.encode()[:9].decode(errors="replace")
    asked = [held.shared(Request("POST", "/verify", body.encode())) for _ in range(60)]
    assert len({id(each.body) for each in asked}) == 1
    assert not held.over()
    others = different(40, body.encode() * (4 * MB // len(body) + 1))
    assert not room_after(others)


def test_a_body_that_nobody_holds_any_more_is_counted_anew() -> None:
    held = Held()
    for _ in range(4):
        kept = [held.shared(Reply(200, (), bytes(13 * MB), 0.0)) for _ in range(8)]
        assert not held.over()
        assert all(reply.text for reply in kept)
    held.shared(Request("POST", "/", bytes(40 * MB)))  # which nobody holds
    assert not held.over()
    kept += [held.shared(Reply(200, (), bytes(13 * MB) + b"x", 0.0)) for _ in range(8)]
    assert all(reply.text for reply in kept)
    assert not held.over()
    last = held.shared(Reply(200, (), bytes(13 * MB) + b"y", 0.0))
    assert last.text
    assert held.over()


@in_loop
async def test_a_run_stops_asking_while_too_much_is_held_and_goes_on_after() -> None:
    channel = Channel(Endpoint("http://127.0.0.1:1", Answering(8 * MB), 5.0))
    kept: list[Exchange] = [await channel.send(Request("GET", "/")) for _ in range(8)]
    with pytest.raises(NoRoom, match="smaller rows and replies: more than 64 MB"):
        await channel.send(Request("GET", "/"))
    kept.clear()
    channel.exchanges.clear()
    assert len(reply_of(await channel.send(Request("GET", "/"))).body) == 8 * MB


def test_sessions_with_large_but_sound_replies_have_room() -> None:
    """As many as are ever open at once, each with a row and an echo of it of 100 KB."""
    echo = {"reward": 1.0, "tools": [{"name": "book", "parameters": {"to": "x" * 60}}] * 1_000}
    assert room_after(different_values(256, echo))


def test_what_is_being_sent_counts_though_a_twin_takes_its_place() -> None:
    held = Held()
    sending = [Request("POST", "/verify", bytes(bytearray(14 * MB))) for _ in range(8)]
    kept = [held.shared(each) for each in sending]
    assert held.over()
    sending.clear()
    assert not held.over()
    assert len(kept) == 8


def test_cycles_are_looked_for_again_only_once_there_may_be_many() -> None:
    held = Held()
    kept = [held.shared(reply) for reply in different(9, bytes(7 * MB - 10))]
    gc.collect()
    before = gc.get_stats()[-1]["collections"]
    for number in range(64):
        rollout: list[object] = [held.shared(Reply(200, (), b"%d" % number + bytes(MB), 0.0))]
        rollout.append(rollout)
        del rollout
        assert not held.over()
    assert gc.get_stats()[-1]["collections"] - before < 20
    kept += [held.shared(reply) for reply in different(9, bytes(MB))]
    assert held.over()
    del kept[9:]
    assert not held.over()
