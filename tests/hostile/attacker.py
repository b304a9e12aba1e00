"""A server that attacks whoever asks it: `python attacker.py MODE`; it prints its port."""

import asyncio
import functools
import gzip
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator

#: What a reply says of anything, so that it is shown somewhere.
HOSTILE = "\x1b]0;pwned\x07\n::error file=x::y\r\n##[error]z \u202e<script>alert(1)</script> "

COOKIE = b"Set-Cookie: session=x; path=/\r\n"

_NUMBERS = itertools.count()


def framed(body: bytes, head: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (
        status,
        head,
        len(body),
        body,
    )


def coded(times: int) -> bytes:
    body = bytes(200 << 20)
    for _ in range(times):
        body = gzip.compress(body, 9)
    return framed(body, b"Content-Encoding: %s\r\n" % b", ".join([b"gzip"] * times))


def document(paths: int, schema: object) -> bytes:
    """An OpenAPI document of so many tools that all take this schema."""
    body = {"content": {"application/json": {"schema": schema}}}
    routes = {f"/tool_{at}": {"post": {"requestBody": body}} for at in range(paths)}
    routes |= {path: {"post": {"requestBody": body}} for path in ("/seed_session", "/verify")}
    return framed(json.dumps({"openapi": "3.1.0", "paths": routes, "components": {"schemas": {}}}).encode())


#: What becomes of a path, a shell's word, a file's name, an option, a tag or a command, where it is taken for one.
NAMES = (
    *(
        "../../../x",
        "$(touch pwned)",
        "`touch pwned`",
        "a'b\"c;touch pwned",
        "--help",
        "-opwned",
        "..",
        "a\nb",
        "a\x00b",
    ),
    *(
        "<img src=x onerror=alert(1)>",
        "::error::x",
        "\u202egnp",
        "a?b#c",
        "@127.0.0.1:9",
        "/evil/x",
        "%2e%2e",
        "x" * 5_000,
    ),
)


def named() -> bytes:
    """An OpenAPI document of tools of such names."""
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    body = {"content": {"application/json": {"schema": schema}}}
    routes = {f"/{name}": {"post": {"requestBody": body}} for name in (*NAMES, "seed_session", "verify")}
    return framed(json.dumps({"openapi": "3.1.0", "paths": routes}).encode(), COOKIE)


def cookies(path: bytes, head: bytes, body: bytes) -> bytes:
    """Hundreds of cookies, of other names each time."""
    del path, head, body
    number = next(_NUMBERS)
    return framed(
        b'{"reward": 1}', b"".join(b"Set-Cookie: c%d-%d=%s\r\n" % (number, at, b"v" * 40) for at in range(900))
    )


def echo(path: bytes, head: bytes, body: bytes) -> bytes:
    """All that was asked, secrets included, as JSON and beside it."""
    said = {"path": path.decode(), "head": head.decode("latin-1"), HOSTILE: HOSTILE, "reward": 1.0}
    return framed(json.dumps(said).encode() + body[:0])


def anew(path: bytes, head: bytes, body: bytes) -> bytes:
    """Other cookies, statuses and values each time."""
    del head, body
    number = next(_NUMBERS)
    cookies = b"".join(b"Set-Cookie: c%d=%s; path=/\r\n" % (at, b"\x80v" * 20) for at in range(number % 40))
    status = (b"200 OK", b"201 C", b"404 N", b"500 E", b"422 U", b"307 T\r\nLocation: file:///etc/passwd")[number % 6]
    said: dict[str, object] = {
        "reward": [1, None, "1", float("inf"), [], {}][number % 6],
        "path": path.decode(),
        "n": number,
    }
    return framed(json.dumps(said).encode(), cookies, status)


@functools.cache
def forms() -> str:
    """A text of megabytes that shows how to act, in many ways."""
    return "".join(f"{HOSTILE}<go>{at}</go> [do {at}] `{at}` " for at in range(60_000))


def episodes(path: bytes, head: bytes, body: bytes) -> bytes:
    """A gymnasium-style server whose observations are of megabytes, and new each time."""
    del head, body
    if path not in {b"/reset", b"/step"}:
        return framed(b"{}", status=b"404 Not Found")
    outputs = [{"call_id": HOSTILE, "output": HOSTILE}]
    said = {"observation": f"{next(_NUMBERS)}{forms()}", "reward": None, "info": {"tool_outputs": outputs}}
    return framed(json.dumps(said).encode(), COOKIE)


def always(make: Callable[[], bytes]) -> Callable[[bytes, bytes, bytes], bytes]:
    """The same reply to everything, made once and only where it is asked for."""
    made = functools.cache(make)
    return lambda *_: made()


#: Each mode's reply to any request, from its path, head and body.
MODES: dict[str, Callable[[bytes, bytes, bytes], bytes]] = {
    "bomb": always(lambda: coded(1)),
    "stacked": always(lambda: coded(3)),
    "large": always(lambda: framed(b'{"a": [%s1]}' % (b"1," * 7_000_000))),
    "objects": always(lambda: framed(b"[%s{}]" % (b'{"a":{}},' * 900_000))),
    "heavy": always(lambda: framed(b'{"reward": 1.0, "a": [%s{}]}' % (b'{"a":{}},' * 24_000), COOKIE)),
    "heavy text": always(lambda: framed(b'{"reward": 1.0, "a": "%s"}' % (b"x" * 8_000_000), COOKIE)),
    "deep": lambda *_: framed(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "digits": lambda *_: framed(b'{"reward": %s}' % (b"9" * 100_000)),
    "beyond doubles": lambda *_: framed(b'{"reward": -1e999, "a": [1e999, 1e-999]}'),
    "NaN": lambda *_: framed(b'{"reward": NaN}'),
    "surrogates": lambda *_: framed(b'{"reward": 1, "a": "\\ud800"}'),
    "no UTF-8": lambda *_: framed(b'{"reward": 1, "a": "\xff"}'),
    "no bodies": lambda *_: framed(b""),
    "null": lambda *_: framed(b"null"),
    "echo": echo,
    "anew": anew,
    "names": always(named),
    "cookies": cookies,
    "episodes": episodes,
    "interim": lambda *_: b"HTTP/1.1 103 E\r\n\r\n" * 10_000,
    "headers": lambda *_: b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
    "garbage": lambda *_: bytes(range(256)) * 100,
    "two replies": lambda *_: framed(b"{}") * 2,
    "paths": always(lambda: document(2_000, {"type": "object"})),
    "paths without slash": lambda *_: framed(b'{"paths": {"seed_session": {"post": {}}, "x": {"post": {}}}}'),
    "schema in a circle": lambda *_: document(5, {"$ref": "#/components/schemas/A"}),
    "schema elsewhere": lambda *_: document(5, {"$ref": "file:///etc/passwd"}),
    "pattern": lambda *_: document(
        5, {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}, "required": ["a"]}
    ),
    "mcp": lambda *_: framed(
        json.dumps(
            {"mcp": {"url_path": HOSTILE, "headers": {HOSTILE: HOSTILE, "X": "t0k3n-of-mcp"}}, "token": "t0k3n-of-mcp"}
        ).encode()
    ),
}


def drip() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    while True:
        yield b"x"


async def pieces(mode: str, path: bytes, head: bytes, body: bytes) -> AsyncIterator[bytes]:
    if mode == "drip":
        for piece in drip():
            yield piece
            await asyncio.sleep(0.3)
    elif mode == "slow":
        await asyncio.sleep(1.8)
        yield framed(b'{"reward": 1}')
    elif mode == "trailers":
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
        while True:
            yield b"X: %s\r\n" % (b"y" * 1_000)
    elif mode == "endless verify" and path != b"/verify":
        yield framed(b"{}", COOKIE)
    elif mode in {"endless", "endless verify"}:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        while True:
            yield b"10000\r\n%s\r\n" % bytes(1 << 16)
    else:
        yield MODES[mode](path, head, body)


async def answer(mode: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            body = await reader.readexactly(length)
            async for piece in pieces(mode, head.split(b" ")[1], head, body):
                writer.write(piece)
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(mode: str) -> None:
    server = await asyncio.start_server(lambda *pair: answer(mode, *pair), "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - whoever started us waits for it
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
