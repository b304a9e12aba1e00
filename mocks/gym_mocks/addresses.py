"""Where mocks listen, what clients are told, and whom they answer.

A page in a browser can reach servers on loopback under a name of its own (DNS rebinding). So a request is answered only
where its Host header names this machine: an address of its own, or a name that was given.
"""

import logging
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache, lru_cache
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from gym_mocks.wire.client import ASGIApp
from gym_mocks.wire.messages import JSON, to_json

LOOPBACK = "127.0.0.1"
BACKLOG = 2048  # connections that wait to be taken; the system may allow fewer

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("gym_mocks")


def listen(host: str, port: int, *, at_once: bool = True) -> socket.socket:
    """A socket that listens, or that has a port and still refuses connections.

    Raises:
        OSError: the port is taken, or the host is not this machine's; OverflowError if it is not a port.
    """
    if not is_loopback(host):
        warn(host)
    family, _, _, _, found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    # names the protocol: asyncio disables Nagle's algorithm only then
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix" and at_once:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        elif os.name != "posix":  # there it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1)
        listener.bind((found[0], port, *found[2:]))
        if at_once:
            listener.listen(BACKLOG)
    except BaseException as error:
        listener.close()
        if isinstance(error, OSError):  # the system's own words do not say which port is taken
            raise OSError(error.errno, f"{error.strerror}: {host}:{port}") from None
        raise
    return listener


def base_url(host: str, port: int) -> str:
    """The URL that clients are told: of the address that was given, or of this machine's where that is all of them."""
    told = _own_address() if _is_any(host) else host
    return f"http://[{told}]:{port}" if ":" in told else f"http://{told}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


class HostCheck:
    """An application whose requests are refused with 421 where they are for another host.

    Args:
        app: what is served.
        host: the address or name that it listens at.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app = app
        self._ours = {host.lower(), "localhost"}
        if _is_any(host):
            self._ours |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._any = _is_any(host)
        self._known = lru_cache(256)(self._is_ours)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if not all(map(self._known, hosts)):
                await _refuse(hosts, send)
                return
        await self.app(scope, receive, send)

    def _is_ours(self, header: str) -> bool:
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        address = _address(name)
        if address is None:
            return name in self._ours
        return self._any or address.is_loopback or name in self._ours


async def _refuse(hosts: list[str], send: Send) -> None:
    told = f"this server is not {', '.join(hosts)[:100]}: start it with host= (or --host) to have it answer there"
    headers = [(b"content-type", JSON.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": HTTPStatus.MISDIRECTED_REQUEST, "headers": headers})
    await send({"type": "http.response.body", "body": to_json({"detail": told})})


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_any(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_unspecified


@cache
def _own_address() -> str:
    """The address that this machine is reached at; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of a network for examples: only the route to it is looked up
            return str(probe.getsockname()[0])
        except OSError:
            return LOOPBACK


@cache
def warn(host: str) -> None:
    """Say, once for a host, that others can reach what is served there."""
    log.warning("serving at %s: whoever reaches this machine can use the mock gym", host)
