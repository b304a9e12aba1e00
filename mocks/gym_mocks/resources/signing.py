"""itsdangerous' TimestampSigner with its defaults, which Starlette signs cookies with.

The texts are the same, in a tenth of the time: every reply of every rollout carries one.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from functools import lru_cache
from hashlib import sha1
from hmac import compare_digest
from time import time

SALT = b"itsdangerous.Signersigner"
BLOCK = 64  # bytes, of SHA-1
LATEST = 256  # texts remembered: a session sends back what it got, and gets the same for a second


class Signer:
    """Signs contents with a key and the time.

    Args:
        key: what only the server knows.
    """

    def __init__(self, key: str) -> None:
        padded = sha1(SALT + key.encode()).digest().ljust(BLOCK, b"\0")  # noqa: S324 - HMAC's, as itsdangerous has it
        self._inner = sha1(bytes(byte ^ 0x36 for byte in padded))  # noqa: S324 - likewise
        self._outer = sha1(bytes(byte ^ 0x5C for byte in padded))  # noqa: S324 - likewise
        self._signed = lru_cache(LATEST)(self._sign)
        self._read = lru_cache(LATEST)(self._verify)

    def sign(self, content: bytes) -> bytes:
        """`content.time.signature`."""
        return self._signed(content, int(time()))

    def _sign(self, content: bytes, now: int) -> bytes:
        stamped = b"%b.%b" % (content, _encoded(now.to_bytes(4, "big")))
        return b"%b.%b" % (stamped, _encoded(self._signature(stamped)))

    def content(self, signed: bytes, max_age: int) -> bytes | None:
        """What was signed; None where this key has not signed it, or longer ago than `max_age` seconds."""
        content, since = self._read(signed)
        return content if 0 <= int(time()) - since <= max_age else None

    def _verify(self, signed: bytes) -> tuple[bytes | None, int]:
        """What was signed, and when; None where this key has not signed it."""
        stamped, _, signature = signed.rpartition(b".")
        content, dot, stamp = stamped.rpartition(b".")
        with suppress(ValueError):
            if dot and compare_digest(_decoded(signature), self._signature(stamped)):
                return content, int.from_bytes(_decoded(stamp), "big")
        return None, 0

    def _signature(self, message: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


def _encoded(value: bytes) -> bytes:
    return urlsafe_b64encode(value).rstrip(b"=")


def _decoded(text: bytes) -> bytes:
    return urlsafe_b64decode(text + b"=" * (-len(text) % 4))
