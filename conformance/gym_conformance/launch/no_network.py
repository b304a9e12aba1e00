"""Closes the network to this process: run by its path in a launched server's interpreter, which may lack our package.

Requests of the server to other hosts go to a recorder on loopback, which first decides whether a name resolves. A name
that does gets an address of ours, and connections to that address go to the recorder; TLS connections are made without
a certificate, since nobody has one for that name. Connections to any other address are refused. Programs that the
server starts get the recorder as their proxy.
"""

import errno
import inspect
import ipaddress
import os
import socket
import ssl
import subprocess
from collections.abc import Callable
from typing import Any

#: Addresses that nobody else uses (RFC 2544).
_UNUSED_NETWORK = ipaddress.ip_network("198.18.0.0/15")

#: Seconds within which the recorder answers.
_TIMEOUT = 5.0

_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")

_connect, _connect_ex, _getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo


def closing(recorder: tuple[str, int]) -> Callable[[], None]:
    """A function that closes the network for good."""
    closed = False

    def close() -> None:
        nonlocal closed
        if not closed:
            closed = True
            _close(recorder, _own_addresses())

    return close


def _own_addresses() -> set[str]:
    """This machine's own addresses, by its name: servers find themselves by them."""
    own = {"", "0.0.0.0", "::", "localhost", "localhost.localdomain", socket.gethostname(), socket.getfqdn()}  # noqa: S104
    for name in tuple(own):
        try:
            own |= {str(found[4][0]) for found in _getaddrinfo(name or None, 0)}
        except (OSError, UnicodeError):
            continue
    return own


class _Network:
    """The network once it is closed: this machine, and the recorder in place of all names that it lets resolve."""

    def __init__(self, recorder: tuple[str, int], own: set[str]) -> None:
        self._recorder = recorder
        self._own = own
        self._addresses: dict[str, str] = {}
        self._free = _UNUSED_NETWORK.hosts()

    def is_own(self, host: str) -> bool:
        """Whether the host is this machine."""
        return host in self._own or (_is_address(host) and ipaddress.ip_address(host.partition("%")[0]).is_loopback)

    def getaddrinfo(self, host: Any, port: Any, family: int = 0, *more: int, **named: int) -> Any:
        """Replaces `socket.getaddrinfo`."""
        name = host.decode() if isinstance(host, bytes) else host
        if not isinstance(name, str) or self.is_own(name) or _is_address(name):
            return _getaddrinfo(host, port, family, *more, **named)
        if family not in (0, socket.AF_INET) or not self._is_found(name, port):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if name not in self._addresses:
            self._addresses[name] = str(next(self._free))
        return _getaddrinfo(self._addresses[name], port, socket.AF_INET, *more, **named)

    def gethostbyname(self, host: str) -> str:
        """Replaces `socket.gethostbyname`."""
        return str(self.getaddrinfo(host, None, socket.AF_INET)[0][4][0])

    def place(self, sock: socket.socket, address: Any) -> Any:
        """Where a connection to an address really goes.

        Raises:
            ConnectionRefusedError: it goes nowhere.
        """
        if sock.family not in (socket.AF_INET, socket.AF_INET6) or sock.type != socket.SOCK_STREAM:
            return address
        host = str(address[0])
        if self.is_own(host):
            return address
        if not _is_address(host):
            host = self.getaddrinfo(host, address[1], socket.AF_INET)[0][4][0]
        if host in self._addresses.values() and sock.family == socket.AF_INET:
            return self._recorder
        self._is_found(host, address[1])
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    def _is_found(self, host: str, port: object) -> bool:
        """Whether the recorder, which also counts the request, lets the name resolve."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as asking:
                asking.settimeout(_TIMEOUT)
                _connect(asking, self._recorder)
                asking.sendall(f"ASK {host} {port}\n".encode())
                return asking.recv(8).startswith(b"yes")
        except OSError:
            return False


def _close(recorder: tuple[str, int], own: set[str]) -> None:
    network = _Network(recorder, own)

    def connect(self: socket.socket, address: Any) -> None:
        _connect(self, network.place(self, address))

    def connect_ex(self: socket.socket, address: Any) -> int:
        try:
            return _connect_ex(self, network.place(self, address))
        except ConnectionRefusedError as refused:
            return refused.errno or errno.ECONNREFUSED

    vars(socket).update(getaddrinfo=network.getaddrinfo, gethostbyname=network.gethostbyname)
    for name, instead in (("connect", connect), ("connect_ex", connect_ex)):
        setattr(socket.socket, name, instead)
    for name in ("wrap_socket", "wrap_bio"):
        setattr(ssl.SSLContext, name, _without_certificate(name, network.is_own))
    _tell_programs(recorder)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _without_certificate(method: str, is_own: Callable[[str], bool]) -> Callable[..., Any]:
    """Replaces a method of `SSLContext`: connections to other hosts use a cipher that needs no certificate."""
    original = getattr(ssl.SSLContext, method)

    signature = inspect.signature(original)

    def wrap(self: ssl.SSLContext, *given: Any, **options: Any) -> Any:
        named = signature.bind(self, *given, **options).arguments
        host = named.get("server_hostname")
        host = host.decode() if isinstance(host, bytes) else host
        if named.get("server_side") or not isinstance(host, str) or is_own(host):
            return original(self, *given, **options)
        anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anonymous.check_hostname = False
        anonymous.verify_mode = ssl.CERT_NONE
        anonymous.maximum_version = ssl.TLSVersion.TLSv1_2
        anonymous.set_ciphers("aNULL:@SECLEVEL=0")
        return original(**{**named, "self": anonymous, "session": None})

    return wrap


def _tell_programs(recorder: tuple[str, int]) -> None:
    """Make the recorder the proxy of programs that are started, whatever environment they are given."""
    start = subprocess.Popen.__init__
    proxies = dict.fromkeys(_NAMES, "http://{}:{}".format(*recorder))
    proxies |= dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")

    def init(self: Any, *given: Any, **options: Any) -> None:
        options["env"] = {**(options.get("env") or os.environ), **proxies}
        start(self, *given, **options)

    subprocess.Popen.__init__ = init  # type: ignore[method-assign]
