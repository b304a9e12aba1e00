"""The HTTP reader on any bytes, in any pieces: an answer, a flaw, or a wish for more; never an exception."""

import contextlib
import gzip
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gym_conformance.session.content_coding import decoded
from gym_conformance.session.exchange import Reply
from gym_conformance.session.reply_reader import HEAD_LIMIT, INTERIM_LIMIT, Flaw, ParsedReply, Reader

LIMIT = 1 << 16

#: What a reply is made of, right and wrong.
PIECES = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 N\r\n"),
        *(b"HTTP/1.1 101 Switching\r\n", b"HTTP/9.9 999 X\r\n", b"HTTP/1.1 000 \r\n", b"ICY 200 OK\r\n", b"HTTP/2.0 "),
        *(b"Content-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n", b"Content-Length: -1\r\n"),
        *(
            b"Content-Length: 5, 5\r\n",
            b"Content-Length: 0x5\r\n",
            b"Content-Length:\r\n",
            b"Content-Length: 5\r\n" * 2,
        ),
        *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Transfer-Encoding: x\r\n"),
        *(b"Connection: upgrade\r\nUpgrade: x\r\n", b"Connection: close\r\n", b"Content-Encoding: gzip\r\n"),
        *(b"X: y\r\n", b"X: y\n", b" folded\r\n", b": no name\r\n", b"X\0: y\r\n", b"X : y\r\n", b"\r\n", b"\n", b"\r"),
        *(b"5\r\nhello\r\n", b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"5;ext=1\r\n", b"-1\r\n", b"0\r\nX: y\r\n\r\n"),
        *(b"hello", b"\x1b[2J", bytes(100), b"x" * 70_000, b"A: " + b"b" * 70_000, b"X: y\r\n" * 5_000),
        gzip.compress(b"hello"),
    ]
)
STREAMS = st.lists(PIECES | st.binary(max_size=20), max_size=12).map(b"".join)
SOUND_REPLIES = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: \t y \t\r\nY:\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;e=f\r\nhello\r\n1\r\n!\r\n0\r\nT: u\r\n\r\n",
    b"HTTP/1.1 100 C\r\nX: y\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 200\r\n\r\nto the end",
    b"HTTP/1.1 204 N\r\nSet-Cookie: a=b\r\nSet-Cookie: c=\xff\r\n\r\n",
]
SOUND = st.sampled_from(SOUND_REPLIES)
METHODS = st.sampled_from(["GET", "POST", "HEAD"])


#: The ceilings bound what an example computes. Hypothesis's own 200 ms of the clock do not: 60,000 fields that are read
#: twice take 150 ms of an idle machine.
PATIENT = settings(deadline=None)


def expect_answer(outcome: ParsedReply | Flaw) -> ParsedReply:
    assert isinstance(outcome, ParsedReply), outcome
    return outcome


def read(stream: bytes, method: str, cuts: list[int]) -> ParsedReply | Flaw:
    """What comes of a stream that arrives in pieces and ends."""
    reader = Reader(LIMIT)
    reader.expect(method)
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        if (outcome := reader.feed(stream[start:end])) is not None:
            return outcome
    assert reader.progress()
    return reader.end()


@given(STREAMS | SOUND, METHODS, st.lists(st.integers(0, 1 << 20), max_size=6))
@PATIENT
@example(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n", "GET", [])
@example(b"HTTP/1.1 100 C\r\n\r\n" * (INTERIM_LIMIT + 2), "GET", [])
@example(b"HTTP/1.1 200 OK\r\nX: " + b"y" * HEAD_LIMIT * 2, "GET", [])
def test_any_bytes_are_an_answer_or_a_flaw(stream: bytes, method: str, cuts: list[int]) -> None:
    outcome = read(stream, method, cuts)
    if isinstance(outcome, Flaw):
        assert outcome.detail
    else:
        assert len(outcome.body) <= LIMIT
        assert sum(len(name) + len(value) for name, value in outcome.headers) <= HEAD_LIMIT


@given(STREAMS | SOUND, METHODS, st.lists(st.integers(0, 1 << 20), max_size=6))
@PATIENT
def test_where_the_pieces_are_cut_changes_no_answer(stream: bytes, method: str, cuts: list[int]) -> None:
    """Whoever reads to the end of an answer does not see what comes later; nothing else depends on the cuts."""
    whole, cut = read(stream, method, []), read(stream, method, cuts)
    if isinstance(whole, ParsedReply):
        same = expect_answer(cut)
        assert (same.status, same.headers, same.body) == (whole.status, whole.headers, whole.body)
    elif isinstance(cut, ParsedReply):
        assert "after the end" in whole.detail or "follow the end" in whole.detail


@pytest.mark.parametrize("stream", SOUND_REPLIES)
def test_a_sound_reply_is_the_same_wherever_it_is_cut(stream: bytes) -> None:
    for method in ("GET", "HEAD"):
        whole = expect_answer(read(stream, method, []))
        for cuts in [*([at] for at in range(len(stream))), list(range(len(stream)))]:
            cut = expect_answer(read(stream, method, cuts))
            assert (cut.status, cut.headers, cut.body) == (whole.status, whole.headers, whole.body)


@given(st.binary(max_size=200), st.binary(max_size=30))
@PATIENT
def test_any_body_under_any_coding(body: bytes, coding: bytes) -> None:
    with contextlib.suppress(OverflowError, ValueError):
        assert len(decoded(body, coding.lower(), LIMIT)) <= LIMIT


@given(st.binary(max_size=300) | st.sampled_from([b"[" * 99_999, b"9" * 9_999, b"[1e999, NaN]", b"-" + b"9" * 999]))
@PATIENT
def test_any_body_as_json(body: bytes) -> None:
    reply = Reply(200, (), body, 0.0)
    if reply.is_json:
        assert reply.said == reply.json()
    else:
        with pytest.raises(ValueError, match=r".+"):
            reply.json()
        assert reply.said == reply.text
