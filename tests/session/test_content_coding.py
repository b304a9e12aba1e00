"""Bodies under a content coding: decoded once, to at most the limit, with memory to match."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_conformance.session.content_coding import decoded

LIMIT = 1 << 20


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


CODERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": gzip.compress,
    b"x-gzip": gzip.compress,
    b"identity": bytes,
    b"": bytes,
}


@given(st.binary(max_size=2000))
def test_each_coding_gives_back_what_went_in(body: bytes) -> None:
    for coding, coder in CODERS.items():
        assert decoded(coder(body), coding, LIMIT) == body
    assert decoded(zlib.compress(body), b"deflate", LIMIT) == body
    assert decoded(gzip.compress(body), b"identity, gzip,", LIMIT) == body


@given(st.binary(min_size=1, max_size=2000))
def test_deflate_without_its_header(body: bytes) -> None:
    assert decoded(raw_deflate(body), b"deflate", LIMIT) == body


@given(st.binary(max_size=300), st.sampled_from([b"gzip", b"deflate", b"br", b"zstd", b"gzip,gzip", b"a" * 50]))
def test_any_bytes_are_decoded_or_refused(body: bytes, coding: bytes) -> None:
    try:
        whole = decoded(body, coding, 1000)
    except (ValueError, OverflowError):
        return
    assert len(whole) <= 1000


#: Bytes that a bomb unfolds to.
BOMB = 200 << 20


def nested(times: int) -> bytes:
    body = bytes(BOMB)
    for _ in range(times):
        body = gzip.compress(body)
    return body


@pytest.mark.parametrize(
    ("make", "coding", "error"),
    [
        pytest.param(lambda: nested(1), b"gzip", OverflowError, id="bomb"),
        pytest.param(lambda: zlib.compress(bytes(BOMB)), b"deflate", OverflowError, id="deflate-bomb"),
        pytest.param(lambda: nested(3), b"gzip, gzip, gzip", ValueError, id="stacked"),
        pytest.param(lambda: nested(2), b"gzip, identity, deflate", ValueError, id="stacked-apart"),
        pytest.param(lambda: gzip.compress(b"") * 400_000, b"gzip", None, id="many-members"),
    ],
)
def test_a_bomb_takes_no_more_than_the_limit(
    make: Callable[[], bytes], coding: bytes, error: type[Exception] | None
) -> None:
    body = make()
    tracemalloc.start()
    try:
        if error:
            with pytest.raises(error):
                decoded(body, coding, LIMIT)
        else:
            decoded(body, coding, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < len(body) + 4 * LIMIT
    finally:
        tracemalloc.stop()
