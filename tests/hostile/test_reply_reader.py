"""The HTTP reader on any bytes, in any pieces: an answer, a flaw, or a wish for more; never an exception."""

import contextlib
import gzip
from itertools import pairwise

import pytest
from hypothesis import example, given
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
METHODS = st.sampled_from(["GET", "POST", "HEAD"])


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


@given(STREAMS, METHODS, st.lists(st.integers(0, 1 << 20), max_size=6))
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


@given(st.binary(max_size=200), st.binary(max_size=30))
def test_any_body_under_any_coding(body: bytes, coding: bytes) -> None:
    with contextlib.suppress(OverflowError, ValueError):
        assert len(decoded(body, coding.lower(), LIMIT)) <= LIMIT


@given(st.binary(max_size=300) | st.sampled_from([b"[" * 99_999, b"9" * 9_999, b"[1e999, NaN]", b"-" + b"9" * 999]))
def test_any_body_as_json(body: bytes) -> None:
    reply = Reply(200, (), body, 0.0)
    if reply.is_json:
        assert reply.said == reply.json()
    else:
        with pytest.raises(ValueError, match=r".+"):
            reply.json()
        assert reply.said == reply.text
