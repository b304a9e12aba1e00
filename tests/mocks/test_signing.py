"""Our signer and itsdangerous' take each other's cookies, and refuse the same ones."""

import itsdangerous
import pytest

from gym_mocks.resources.signing import Signer

OURS, THEIRS = Signer("key"), itsdangerous.TimestampSigner("key")
SIGNED = THEIRS.sign(b"eyJhIjogMX0=")
BROKEN = [
    b"",
    b".",
    b"..",
    b"a",
    b"a.b",
    b"a.b.c",
    SIGNED[:-1],
    SIGNED + b"A",
    b"x" + SIGNED,
    SIGNED.replace(b".", b""),
]
BROKEN += [SIGNED[:place] + b"%" + SIGNED[place + 1 :] for place in (0, len(SIGNED) // 2, len(SIGNED) - 1)]
BROKEN += [SIGNED[:-1] + bytes([letter]) for letter in b"AEIMQUYcgkosw048_-=%"]
BROKEN += [Signer("another").sign(b"a"), "é".encode()]


@pytest.mark.parametrize("content", [b"", b"a", b"a.b", bytes(range(33, 127))])
def test_each_reads_what_the_other_signed(content: bytes) -> None:
    assert THEIRS.unsign(OURS.sign(content), max_age=60) == content
    assert OURS.content(THEIRS.sign(content), 60) == content


@pytest.mark.parametrize("place", range(len(BROKEN)))  # the texts hold the time, and workers must agree on names
def test_they_refuse_alike(place: int) -> None:
    signed = BROKEN[place]
    try:
        theirs = THEIRS.unsign(signed, max_age=60)
    except itsdangerous.BadSignature:
        theirs = None
    assert OURS.content(signed, 60) == theirs


def test_what_is_too_old_or_of_the_future_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    signed = OURS.sign(b"a")
    for later, read in ((60, b"a"), (62, None), (-2, None)):
        monkeypatch.setattr("gym_mocks.resources.signing.time", lambda now=later: THEIRS.get_timestamp() + now)
        assert OURS.content(signed, 60) == read
