"""One content coding at most, decoded here and never beyond a limit.

HTTP clients decode whatever the reply names, however often, before their caller can look: 234 bytes under three gzips
make a gigabyte. zlib takes the limit itself, so no more than that is ever held.
"""

import zlib

# zlib's window bits. A server that says deflate may mean it with zlib's header (RFC 9110, 8.4.1.2) or without
_GZIP = (16 + zlib.MAX_WBITS,)
_WINDOWS = {b"gzip": _GZIP, b"x-gzip": _GZIP, b"deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}


def decoded(body: bytes, coding: bytes, limit: int) -> bytes:
    """The body without its content coding; gzip's first member, as httpx and urllib read it.

    Args:
        body: As sent, at most `limit` bytes.
        coding: The Content-Encoding, in lower case.
        limit: How many bytes it may decode to.

    Raises:
        OverflowError: It decodes to more.
        ValueError: It is coded more than once, by what was never asked for, or not as it says.
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
