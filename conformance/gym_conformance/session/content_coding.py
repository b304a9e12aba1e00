"""From a parsed reply to an httpx response: one content coding at most, decoded here and never beyond a limit.

httpx would decode whatever the reply names, however often, before its caller can look: 234 bytes under three gzips make
a gigabyte. zlib takes the limit itself, so no more than that is ever held.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import httpx

from gym_conformance.session.server_fault import PARTIAL_LIMIT, Fault, ServerFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gym_conformance.session.reply_reader import ParsedReply

# zlib's window bits. A server that says deflate may mean it with zlib's header (RFC 9110, 8.4.1.2) or without
_GZIP = (16 + zlib.MAX_WBITS,)
_WINDOWS = {b"gzip": _GZIP, b"x-gzip": _GZIP, b"deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}


def response(
    request: httpx.Request, answer: ParsedReply, extensions: Mapping[str, object], *, limit: int
) -> httpx.Response:
    """The answer as an httpx response, body read and decoded to at most `limit` bytes.

    Raises:
        ServerFault: OVERSIZED; or INVALID for a body that is not what its Content-Encoding says, or whose
            coding was never asked for.
    """
    coding = b",".join(answer.values(b"content-encoding")).strip().lower()
    try:
        body = decoded(bytes(answer.body), coding, limit)
    except OverflowError:
        fault, detail = Fault.OVERSIZED, f"{len(answer.body)} bytes decode to more than the limit of {limit}"
    except ValueError as error:
        fault, detail = Fault.INVALID, f"content-encoding {coding.decode('latin-1')!r}{error}"
    else:
        stream = httpx.ByteStream(body)
        made = _Decoded(
            answer.status, headers=answer.headers, stream=stream, request=request, extensions=dict(extensions)
        )
        made.read()
        return made
    raise ServerFault(fault, detail, request=request, partial=bytes(answer.body[:PARTIAL_LIMIT]))


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


class _Decoded(httpx.Response):
    """A response whose stream is decoded, though its headers are as they came."""

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        yield from self.iter_raw(chunk_size)
