"""The hosts that a server asks on the network, all of them played by one recorder on loopback.

It speaks HTTP, also as a proxy and within TLS (to clients that need no certificate), and notes each request. What it
answers is one `Outage`: nothing of what is outside is ever reached.
"""

import socket
import socketserver
import ssl
import threading
from collections import Counter
from contextlib import suppress
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, Self

from gym_mocks.addresses import LOOPBACK

#: Bytes that are read of a request, and seconds that one is waited for.
_HEAD, _BODY, _PATIENCE = 64 << 10, 16 << 20, 10.0

#: Different requests that are told apart.
_KINDS = 200

_TLS_HANDSHAKE = 0x16


class Outage(StrEnum):
    """What becomes of a request to another host.

    A plain GET, without a query, fetches a file: a 200 would leave what we made up in somebody's cache, as the model of
    wmt_translation (nemo-gym 0.7.0) in ~/.sacrebleu. It is answered 503 in the place of a 200.
    """

    DOWN = "no name is found, and no connection made"
    SLOW = "503, after some seconds"
    TOO_MANY = "429"
    FAILURE = "500"
    GARBAGE = "200, with what is no JSON"
    EMPTY = "200, with an empty JSON object"


_ANSWERS: Final[dict[Outage, tuple[int, str, bytes]]] = {
    Outage.SLOW: (503, "application/json", b'{"error": "unavailable"}'),
    Outage.TOO_MANY: (429, "application/json", b'{"error": "too many requests"}'),
    Outage.FAILURE: (500, "application/json", b'{"error": "internal error"}'),
    Outage.GARBAGE: (200, "application/json", b'{"results": [[[ \xe2\x98\x83 </html>'),
    Outage.EMPTY: (200, "application/json", b"{}"),
}


class Outside:
    """Everything that is not this machine. Close it, or use it as a context manager.

    Attributes:
        outage: what becomes of requests from now on.
        seconds: how long `SLOW` takes.
    """

    def __init__(self, outage: Outage = Outage.DOWN, seconds: float = 2.0) -> None:
        self.outage = outage
        self.seconds = seconds
        self._requests: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._tls = _anonymous()
        self._server = _Server((LOOPBACK, 0), self._serve)
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="gym-outside", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def requests(self) -> dict[str, int]:
        """What was asked for, such as `GET http://example.com/a`, and how often; `example.com:443` where no connection was made."""
        with self._lock:
            return dict(self._requests)

    def forget(self) -> None:
        """Begin to count anew."""
        with self._lock:
            self._requests.clear()

    def close(self) -> None:
        """Stop listening; answers that wait are dropped."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note(self, what: str) -> None:
        with self._lock:
            if what in self._requests or len(self._requests) < _KINDS:
                self._requests[what] += 1

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_PATIENCE)
        first = connection.recv(1, socket.MSG_PEEK)
        if first and first[0] == _TLS_HANDSHAKE:
            self._converse(connection, "https")
        elif first:
            self._converse(connection, "http")

    def _converse(self, connection: socket.socket, scheme: str, proxied: str = "") -> None:
        """Answer one request, which may ask for a tunnel to another."""
        if scheme == "https":
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection, connection.makefile("rb") as reader:
            line = reader.readline(_HEAD).decode("latin-1")
            if line.startswith("ASK "):
                self._asked(connection, line.split())
                return
            method, _, rest = line.partition(" ")
            headers = _headers(reader)
            target = rest.split(" ")[0].strip()
            if method == "CONNECT":
                self._tunnel(connection, target)
                return
            reader.read(min(int(headers.get("content-length", "0") or 0), _BODY))
            fetches = method in ("GET", "HEAD") and "?" not in target
            host = proxied or headers.get("host", "?")
            self._note(f"{method} {target if '://' in target else f'{scheme}://{host}{target}'}".partition("?")[0])
            self._answer(connection, fetches=fetches)

    def _asked(self, connection: socket.socket, words: list[str]) -> None:
        if self.outage is Outage.DOWN and len(words) > 2:  # noqa: PLR2004 - host and port
            self._note(f"{words[1]}:{words[2]}")
        connection.sendall(b"no\n" if self.outage is Outage.DOWN else b"yes\n")

    def _tunnel(self, connection: socket.socket, target: str) -> None:
        if self.outage is Outage.DOWN:
            self._note(target)
            return
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        first = connection.recv(1, socket.MSG_PEEK)
        if first and first[0] == _TLS_HANDSHAKE:
            self._note(f"CONNECT {target}")  # a program that asks for a certificate goes no further
        with suppress(OSError):
            self._converse(connection, "https" if first and first[0] == _TLS_HANDSHAKE else "http", target)

    def _answer(self, connection: socket.socket, *, fetches: bool) -> None:
        outage = self.outage
        if outage is Outage.DOWN:
            return
        if outage is Outage.SLOW:
            self._closed.wait(self.seconds)
        status, kind, body = _ANSWERS[outage]
        if fetches and status == HTTPStatus.OK:
            status, kind, body = _ANSWERS[Outage.SLOW]
        head = f"HTTP/1.1 {status} {outage.name}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
        connection.sendall(f"{head}connection: close\r\n\r\n".encode() + body)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], serve: Any) -> None:
        self._serve = serve
        super().__init__(address, socketserver.BaseRequestHandler)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as it is called
        with suppress(OSError, ValueError):  # the client's own affair: it closed, or spoke no HTTP
            self._serve(request)


def _headers(reader: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    while len(found) < 100 and (line := reader.readline(_HEAD).strip()):  # noqa: PLR2004 - as http.client has it
        name, _, value = line.decode("latin-1").partition(":")
        found[name.strip().lower()] = value.strip()
    return found


def _anonymous() -> ssl.SSLContext:
    """TLS without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("aNULL:@SECLEVEL=0")
    return context
