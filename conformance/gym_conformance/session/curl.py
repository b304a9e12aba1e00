"""Exchanges as shell commands that anyone can run, to reproduce a finding.

Cookies travel as in the real exchange: each curl saves the headers of its reply (`-D 1.head`), and later ones send the
cookies in such a file (`-b 1.head`), so that the script also works on a fresh server, which assigns other ids. The ids
of typed sessions are generated anew on each run. A header whose value an earlier reply gave, such as a session's token,
is read from that reply (`tee 1.json`). If a rollout is scored only in a group, a loop sends the rest of the group.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from shlex import quote, split
from urllib.parse import quote as percent_encoded

from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_conformance.session.exchange import Exchange, Request

#: Bytes above which a body goes into a file, so that a command fits on a screen, and above which that is compressed.
_INLINE_BYTES = 400
_PLAIN_BYTES = 4_000

#: The body's file in a command: at its end, or before the replacement of a session id or the saving of the reply.
_BODY_FILE = re.compile(r"[\d-]+\.body(?=\)?(?: \| tee \d+\.json| & done)?$)")
_MAKES_FILE = "printf %s "

#: Bytes that need no escape between $' and '.
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\#")

#: The form that `contract.typed` gives to session ids.
_SESSION_ID = re.compile(rb"resources-session-[0-9a-f]{32}")

#: Header names that need no quotes; others may be chosen by a server.
_UNQUOTED_HEADER = re.compile(r"[A-Za-z0-9-]+")

#: See `printable`.
_RUNNERS = re.compile(r"##(?=\w*\[)")

#: Characters that are not escaped in a path: a server that names its own paths may put anything there.
_UNESCAPED = "".join(map(chr, range(0x20, 0x7F)))

_PREAMBLE = 'cd "$(mktemp -d)"'


def curl_script(
    exchanges: Iterable[Exchange],
    base_url: str,
    header_names: Iterable[str] = (),
    timeout: float = 60,
    secrets: Secrets = NO_SECRETS,
) -> list[str]:
    """The shell commands, one per line, that send the same requests.

    Args:
        exchanges: the exchanges to repeat, in order.
        base_url: the target's URL, with its path prefix.
        header_names: headers that the user gave; their values are secret, so the commands read them from the
            environment: `Authorization` from `$GYM_HEADER_AUTHORIZATION`.
        timeout: of each request, in seconds.
        secrets: redacted in paths, headers, cookies and bodies.
    """
    exchanges = [
        replace(
            exchange,
            request=_without(exchange.request, secrets),
            group=tuple(_without(other, secrets) for other in exchange.group[:1]) * len(exchange.group),
        )
        for exchange in exchanges
    ]
    fresh = _fresh(exchanges)
    wanted = {exchange.request.cookies.origin for exchange in exchanges} - {None}
    lent = {number for exchange in exchanges for number in exchange.request.borrowed.values()}
    shared = [f'-H "{name}: ${{{environment_name(name)}:?}}"' for name in header_names]  # an error if it is not set
    commands = []
    for exchange in exchanges:
        file, body = _body(exchange, fresh)
        tee = f" | tee {exchange.number}.json" if exchange.number in lent else ""
        dump = exchange.number in wanted
        commands += _others(exchange, base_url, shared, timeout)
        commands += [*file, _curl(exchange, base_url, shared, timeout, body, dump=dump) + tee]
    names = [f'{name}="resources-session-$(date +%s%N)-{name}"' for name in fresh.values()]
    files = any(command.startswith(_MAKES_FILE) for command in commands)
    return [
        *([_PREAMBLE] if wanted or lent or files else []),
        *names,
        *(_RUNNERS.sub("##''", command) for command in commands),
    ]


def bodies_of(commands: Iterable[str]) -> dict[str, bytes]:
    """The bodies that a script of `curl_script` puts into files, by file name."""
    found = {}
    for words in (split(command) for command in commands if command.startswith(_MAKES_FILE)):
        content = words[2].encode()
        found[words[-1]] = gzip.decompress(base64.b64decode(content)) if "gunzip" in words else content
    return found


def with_bodies_at(commands: Iterable[str], place: str) -> list[str]:
    """A script of `curl_script` without its long bodies, which it reads from files whose names are prefixed by `place`.

    A relative path is relative to where the script is started, since its first command changes to a new folder.
    """
    before = f'"$OLDPWD"/{quote(place)}'
    short = (command for command in commands if not command.startswith(_MAKES_FILE))
    return [_BODY_FILE.sub(lambda file: before + file[0], command) for command in short]


def _without(request: Request, secrets: Secrets) -> Request:
    """The request with secrets redacted; a JSON body stays JSON."""
    return replace(
        request,
        path=percent_encoded(secrets.redact(request.path), safe=_UNESCAPED, errors="replace"),
        headers={name: secrets.redact(value) for name, value in request.headers.items()},
        cookies=replace(
            request.cookies, pairs=tuple((name, secrets.redact(value)) for name, value in request.cookies.pairs)
        ),
        row=b"",
        written=request.body and _body_without(request.body, secrets),
    )


def _body_without(body: bytes, secrets: Secrets) -> bytes:
    try:
        parsed = json.loads(body)
        told = secrets.redact_json(parsed)
    except (ValueError, RecursionError):
        text = body.decode("latin-1")
        return secrets.redact(text).encode("latin-1")
    return body if told == parsed else json.dumps(told, separators=(",", ":")).encode()


def _fresh(exchanges: Iterable[Exchange]) -> dict[str, str]:
    """Shell variables for the ids of typed sessions, by id: a closed id cannot be used again."""
    bodies = [exchange.request.body or b"" for exchange in exchanges]
    ids = dict.fromkeys(found.decode() for body in bodies for found in _SESSION_ID.findall(body))
    return {session_id: f"S{number}" for number, session_id in enumerate(ids, 1)}


def environment_name(header: str) -> str:
    """The environment variable from which a reproduction reads the secret value of a header."""
    return "GYM_HEADER_" + re.sub(r"\W", "_", header).upper()


def _curl(exchange: Exchange, base_url: str, shared: list[str], timeout: float, body: list[str], *, dump: bool) -> str:
    request = exchange.request
    parts = [
        f"curl -sSi -m {timeout:g} -w '\\n%{{http_code}}\\n'",
        *([] if request.method == "POST" and request.body is not None else [f"-X {request.method}"]),
        quote(base_url + request.path),
        *shared,
        *(_header(request, name) for name in request.headers),
        *_cookies(request),
        *([f"-D {exchange.number}.head"] if dump else []),
        *body,
    ]
    return " ".join(parts)


def _others(exchange: Exchange, base_url: str, shared: list[str], timeout: float) -> list[str]:
    """Commands that send the rest of a group, whose members differ only in a number at the end of the body."""
    if not exchange.group:
        return []
    file = f"{exchange.number}-1.body"
    packed = base64.b64encode(gzip.compress(exchange.group[0].body or b"", mtime=0)).decode()
    each = _curl(replace(exchange, request=exchange.group[0]), base_url, shared, timeout, [], dump=False)
    counted = rf"""--data-binary @<(sed "s/:1}}\$/:$i}}/" {file})"""
    return [
        f"{_MAKES_FILE}{packed} | base64 -d | gunzip > {file}",
        f"for i in $(seq {len(exchange.group)}); do {each} -o {exchange.number}-$i.out {counted} & done",
    ]


def _header(request: Request, name: str) -> str:
    if name not in request.borrowed or not _UNQUOTED_HEADER.fullmatch(name):
        return f"-H {quote(f'{name}: {request.headers[name]}')}"
    value = f"""grep -Eo '"{name}" *: *"[^"]*"' {request.borrowed[name]}.json | cut -d'"' -f4"""
    return f'-H "{name}: $({value})"'


def _cookies(request: Request) -> list[str]:
    if request.cookies.origin is not None:
        return [f"-b {request.cookies.origin}.head"]
    return [f"-H {_quoted('Cookie: ' + request.cookies.header)}"] if request.cookies else []


def _quoted(text: str) -> str:
    """Quoted for bash: bytes other than printable ASCII are sent as they were, but not shown to the terminal."""
    if text.isascii() and text.isprintable():
        return quote(text)
    escaped = (chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in text.encode("latin-1"))
    return f"$'{''.join(escaped)}'"


def _body(exchange: Exchange, fresh: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Commands that write a long or binary body to a file, and the arguments that send the body."""
    body, file = exchange.request.body, f"{exchange.number}.body"
    if body is None:
        return [], []
    plain = len(body) <= _PLAIN_BYTES and body.isascii() and body.decode().isprintable()
    if plain and len(body) <= _INLINE_BYTES:
        inline = quote(body.decode())
        for session_id, name in fresh.items():
            inline = inline.replace(session_id, f"'\"${name}\"'")
        return [], [f"--data-binary {inline}"]
    packed = base64.b64encode(gzip.compress(body, mtime=0)).decode()
    content = quote(body.decode()) if plain else f"{packed} | base64 -d | gunzip"
    renamed = ";".join(f"s/{session_id}/${name}/g" for session_id, name in fresh.items() if session_id.encode() in body)
    sent = f'<(LC_ALL=C sed "{renamed}" {file})' if renamed else file
    return [f"{_MAKES_FILE}{content} > {file}"], [f"--data-binary @{sent}"]
