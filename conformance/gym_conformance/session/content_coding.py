"""From an answer off the wire to an httpx response: httpx decodes, and here is the bound that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from gym_conformance.session.server_fault import PARTIAL_LIMIT, Fault, ServerFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gym_conformance.session.reply_reader import ParsedReply

# What httpx decodes whatever else is installed. One at a time: two multiply what a bomb makes of a piece
DECODABLE = frozenset({b"gzip", b"deflate"})
PIECE = 1024  # encoded bytes decoded at a time: deflate makes at most 1,032 of one, so about 1 MiB


def response(
    request: httpx.Request, answer: ParsedReply, extensions: Mapping[str, object], *, limit: int
) -> httpx.Response:
    """The answer as an httpx response, body read and decoded to at most `limit` bytes.

    Raises:
        ServerFault: OVERSIZED; or INVALID for a body that is not what its Content-Encoding says, or whose
            coding was never asked for.
    """
    body = bytes(answer.body)
    coding = b",".join(answer.values(b"content-encoding")).strip().lower()
    plain = not body or coding in {b"", b"identity"}
    made = _Bounded(
        answer.status,
        headers=answer.headers,
        stream=httpx.ByteStream(body) if plain else _Pieces(body),
        request=request,
        extensions=dict(extensions),
    )
    made.limit = limit
    named = f"content-encoding {coding.decode('latin-1')!r}"
    try:
        made.read()
    except httpx.DecodingError as error:
        fault, detail = Fault.INVALID, f"{named}: {error}"
    except OverflowError:
        fault, detail = Fault.OVERSIZED, f"{len(body)} bytes decode to more than the limit of {limit}"
    else:
        if plain or coding in DECODABLE:
            return made
        fault, detail = Fault.INVALID, f"{named}, which was not asked for"
    raise ServerFault(fault, detail, request=request, partial=body[:PARTIAL_LIMIT])


class _Bounded(httpx.Response):
    limit: int  # bytes, decoded

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        size = 0
        for part in super().iter_bytes(chunk_size):
            size += len(part)
            if size > self.limit:
                raise OverflowError
            yield part


class _Pieces(httpx.ByteStream):
    """A body given to the decoder in small pieces, so that each makes little."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._body), PIECE):
            yield self._body[start : start + PIECE]
