"""Writes a request as the bytes of HTTP/1.1."""

import re
from collections.abc import Mapping
from typing import Final

import httpx

from gym_conformance.session.exchange import Request

# RFC 9110, 5.1 and 5.5: a token; a value without bytes that end the line, in the standard or in common servers
_START: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP/1\.1")
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\0\r\n]*")

#: Requests whose header lines are cached: a client sends few kinds, and these lines take most of the time.
_KEPT: Final = 256

#: Methods whose requests state a length even without a body (RFC 9110, 8.6).
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})


class NotWritable(ValueError):
    """A part of the request cannot be written as exactly one line of HTTP."""


class RequestBytes:
    """Writes the requests to one target.

    Args:
        url: the target's URL, without a trailing slash; its path is a prefix.
        headers: the user's headers, sent with every request unless it has its own header of that name.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self._kept: dict[tuple[str, str, tuple[tuple[str, str], ...]], bytes] = {}

    def written(self, request: Request) -> bytes:
        """The complete request, for a connection that is kept alive.

        Raises:
            NotWritable: a part of it cannot be written as exactly one line.
        """
        kind = (request.method, request.path, tuple(request.headers.items()))
        first = self._kept.get(kind)
        if first is None:
            first = self._first_lines(request)
            if len(self._kept) < _KEPT:
                self._kept[kind] = first
        body = request.body or b""
        if request.cookies:
            first += b"%s\r\n" % _field("cookie", request.cookies.header)
        if body or request.method in _WITH_LENGTH:
            first += b"content-length: %d\r\n" % len(body)
        return b"%s\r\n%s" % (first, body)

    def _first_lines(self, request: Request) -> bytes:
        """All header lines except cookie and length."""
        try:
            url = httpx.URL(self._url + request.path)
        except httpx.InvalidURL as error:  # the path is longer than any server reads
            raise NotWritable(f"the path of {len(request.path)} characters: {error}") from error
        start = b"%s %s HTTP/1.1" % (request.method.encode(), url.raw_path)
        if not _START.fullmatch(start):
            raise NotWritable(f"illegal request line {start!r}")
        # Accept-Encoding: we want the bytes that the server wrote
        headers = {"host": url.netloc.decode("ascii"), "accept": "*/*", "user-agent": "gym-conformance"}
        headers["accept-encoding"] = "identity"
        for given in (self._headers, request.headers):
            headers |= {name.lower(): value for name, value in given.items()}
        return b"".join(b"%s\r\n" % line for line in (start, *(_field(*each) for each in headers.items())))


def _field(name: str, value: str) -> bytes:
    line = f"{name}: {value}".encode("latin-1")
    if not _FIELD.fullmatch(line):
        raise NotWritable(f"illegal header line {line!r}")
    return line
