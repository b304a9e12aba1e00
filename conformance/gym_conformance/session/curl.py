"""Exchanges as shell commands that anyone can run: what a finding is reproduced with.

Cookies travel as in the real exchange: each curl dumps its reply's headers (`-D 1.head`), and a later one sends the
cookies that are in such a file (`-b 1.head`), so that a script works on a fresh server, where the ids are others. The
ids of typed sessions are made anew each time. A header that an earlier reply gave, such as a session's token, is
looked up in that reply (`tee 1.json`).
"""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from shlex import quote
from urllib.parse import quote as percent_encoded

from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_conformance.session.exchange import Exchange, Request

#: Longer bodies are packed: a shell argument may have 128 KiB, and a reader has less patience.
_INLINE_BYTES = 4_000

#: Bytes that stand for themselves between $' and '.
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\#")

#: As `contract.typed` makes them.
_SESSION_ID = re.compile(rb"resources-session-[0-9a-f]{32}")

#: The name of a header that may stand unquoted: a server chose it.
_TAME = re.compile(r"[A-Za-z0-9-]+")

#: See `printable`.
_RUNNERS = re.compile(r"##(?=\w*\[)")

#: What a path may hold as it is; a server that names one of its own may put anything there.
_IN_URLS = "".join(map(chr, range(0x20, 0x7F)))

_PREAMBLE = 'cd "$(mktemp -d)"'


def curl_script(
    exchanges: Iterable[Exchange],
    base_url: str,
    header_names: Iterable[str] = (),
    timeout: float = 60,
    secrets: Secrets = NO_SECRETS,
) -> list[str]:
    """The shell commands, one a line, that send the same requests.

    Args:
        exchanges: what to repeat, in order.
        base_url: the target's URL, path prefix included.
        header_names: headers the user gave; their values are secrets, so the commands read them from the
            environment: `Authorization` from `$GYM_HEADER_AUTHORIZATION`.
        timeout: seconds after which curl gives up.
        secrets: what is left out of paths, headers, cookies and bodies.
    """
    exchanges = [replace(exchange, request=_without(exchange.request, secrets)) for exchange in exchanges]
    fresh = _fresh(exchanges)
    wanted = {exchange.request.cookies.origin for exchange in exchanges} - {None}
    lent = {number for exchange in exchanges for number in exchange.request.borrowed.values()}
    shared = [f'-H "{name}: ${{{environment_name(name)}:?}}"' for name in header_names]  # says so where it is not set
    commands = [
        _curl(exchange, base_url, shared, timeout, fresh, dump=exchange.number in wanted)
        + (f" | tee {exchange.number}.json" if exchange.number in lent else "")
        for exchange in exchanges
    ]
    names = [f'{name}="resources-session-$(date +%s%N)-{name}"' for name in fresh.values()]
    return [*([_PREAMBLE] if wanted or lent else []), *names, *map(_tamed, commands)]


def _without(request: Request, secrets: Secrets) -> Request:
    """The request without the secrets: a JSON body is still JSON."""
    return replace(
        request,
        path=percent_encoded(secrets.redact(request.path), safe=_IN_URLS, errors="replace"),
        headers={name: secrets.redact(value) for name, value in request.headers.items()},
        cookies=replace(
            request.cookies, pairs=tuple((name, secrets.redact(value)) for name, value in request.cookies.pairs)
        ),
        body=request.body and _body_without(request.body, secrets),
    )


def _body_without(body: bytes, secrets: Secrets) -> bytes:
    try:
        parsed = json.loads(body)
        told = secrets.redact_json(parsed)
    except (ValueError, RecursionError):
        text = body.decode("latin-1")
        return secrets.redact(text).encode("latin-1")
    return body if told == parsed else json.dumps(told, separators=(",", ":")).encode()


def _tamed(command: str) -> str:
    """The command without what a CI runner obeys in a log; it only stands in single quotes, which end and begin anew."""
    return _RUNNERS.sub("##''", command)


def _fresh(exchanges: Iterable[Exchange]) -> dict[str, str]:
    """Names of shell variables that stand for the ids of typed sessions: an id that was closed is closed for ever."""
    bodies = [exchange.request.body or b"" for exchange in exchanges]
    ids = dict.fromkeys(found.decode() for body in bodies for found in _SESSION_ID.findall(body))
    return {session_id: f"S{number}" for number, session_id in enumerate(ids, 1)}


def environment_name(header: str) -> str:
    """The environment variable that a reproduction takes a header's secret value from."""
    return "GYM_HEADER_" + re.sub(r"\W", "_", header).upper()


def _curl(
    exchange: Exchange, base_url: str, shared: list[str], timeout: float, fresh: Mapping[str, str], *, dump: bool
) -> str:
    request = exchange.request
    packed, body = _body(request, fresh)
    parts = [
        f"{packed}curl -sS -m {timeout:g} -w '\\n%{{http_code}}\\n'",
        *([] if request.method == "POST" and request.body is not None else [f"-X {request.method}"]),
        quote(base_url + request.path),
        *shared,
        *(_header(request, name) for name in request.headers),
        *_cookies(request),
        *([f"-D {exchange.number}.head"] if dump else []),
        *body,
    ]
    return " ".join(parts)


def _header(request: Request, name: str) -> str:
    if name not in request.borrowed or not _TAME.fullmatch(name):
        return f"-H {quote(f'{name}: {request.headers[name]}')}"
    value = f"""grep -Eo '"{name}" *: *"[^"]*"' {request.borrowed[name]}.json | cut -d'"' -f4"""
    return f'-H "{name}: $({value})"'


def _cookies(request: Request) -> list[str]:
    if request.cookies.origin is not None:
        return [f"-b {request.cookies.origin}.head"]
    return [f"-H {_quoted('Cookie: ' + request.cookies.header)}"] if request.cookies else []


def _quoted(text: str) -> str:
    """For bash, which sends what is no printable ASCII as the bytes that were sent, and shows none of it to a terminal."""
    if text.isascii() and text.isprintable():
        return quote(text)
    escaped = (chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in text.encode("latin-1"))
    return f"$'{''.join(escaped)}'"


def _body(request: Request, fresh: Mapping[str, str]) -> tuple[str, list[str]]:
    """What stands before curl and what after it: a short text body inline, any other unpacked through a pipe."""
    if request.body is None:
        return "", []
    if len(request.body) <= _INLINE_BYTES and request.body.isascii() and request.body.decode().isprintable():
        inline = quote(request.body.decode())
        for session_id, name in fresh.items():
            inline = inline.replace(session_id, f"'\"${name}\"'")
        return "", [f"--data-binary {inline}"]
    packed = base64.b64encode(gzip.compress(request.body, mtime=0)).decode()
    known = [(session_id, name) for session_id, name in fresh.items() if session_id.encode() in request.body]
    renamed = "".join(f'LC_ALL=C sed "s/{session_id}/${name}/g" | ' for session_id, name in known)
    return f"printf %s {packed} | base64 -d | gunzip | {renamed}", ["--data-binary @-"]
