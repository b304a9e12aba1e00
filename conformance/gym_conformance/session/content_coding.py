"""Decodes a body with at most one content coding, and never beyond a limit.

HTTP clients decode all codings that the reply names before the caller can look at it: 234 bytes under three gzips
become a gigabyte. zlib takes the limit as an argument, so it never produces more than that.
"""

import zlib

# zlib's window bits. Servers that say deflate send it with zlib's header (RFC 9110, 8.4.1.2) or without
_GZIP = (16 + zlib.MAX_WBITS,)
_WINDOWS = {b"gzip": _GZIP, b"x-gzip": _GZIP, b"deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}


def decoded(body: bytes, coding: bytes, limit: int) -> bytes:
    """The body without its content coding; of gzip, only the first member, as httpx and urllib read it.

    Args:
        body: the body as sent, at most `limit` bytes.
        coding: the Content-Encoding, in lower case.
        limit: how many bytes it may decode to.

    Raises:
        OverflowError: it decodes to more.
        ValueError: it has several codings, one that was not requested, or is not in the coding that it declares.
    """
    codings = [name for part in coding.split(b",") if (name := part.strip()) not in {b"", b"identity"}]
    if not body or not codings:
        return body
    if len(codings) > 1 or codings[0] not in _WINDOWS:
        raise ValueError(", which was not requested")
    flaw: zlib.error | None = None
    for window in _WINDOWS[codings[0]]:
        try:
            whole = zlib.decompressobj(window).decompress(body, limit + 1)
        except zlib.error as error:
            flaw = flaw or error
        else:
            if len(whole) > limit:
                raise OverflowError
            return whole
    raise ValueError(f": {flaw}")
