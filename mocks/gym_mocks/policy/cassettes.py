"""A proxy to a real OpenAI-compatible upstream that records what passes, and a server that replays it."""

import asyncio
import json
import os
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from gym_mocks.hidden_keys import keys_in, redacted
from gym_mocks.policy.shapes import SHAPES
from gym_mocks.wire import App, HttpRefusal, HttpReply, HttpRequest, json_body, live
from gym_mocks.wire.app import BODY_LIMIT

if TYPE_CHECKING:
    import httpx

DEADLINE = 600.0  # seconds for one answer of the upstream


class Proxy(App):
    """Forwards requests to an upstream and records each exchange as a line of a cassette.

    Headers are not recorded, and the keys that they carry are redacted wherever they occur in a body: as they are, or
    escaped or encoded; not where a stream breaks them in pieces. The file is its owner's alone.

    Args:
        upstream: its OpenAI base URL, such as `https://api.openai.com/v1`.
        cassette: the JSONL file; appended to.
        api_key: sent to the upstream; the client's own where empty.
        headers: sent to the upstream too.
    """

    def __init__(
        self,
        upstream: str,
        cassette: Path,
        *,
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.upstream = upstream.rstrip("/")
        self.cassette = cassette
        self.api_key = api_key
        self.headers = dict(headers or {})
        self._lock = Lock()
        posts = {("POST", path): self._forward for path in SHAPES if path.startswith("/v1/")}
        super().__init__({**posts, ("GET", "/v1/models"): self._forward, ("GET", "/health"): live})

    async def _forward(self, request: HttpRequest) -> HttpReply:
        import httpx  # noqa: PLC0415 - only a proxy needs it

        given = request.headers.get("authorization", "")
        authorization = f"Bearer {self.api_key}" if self.api_key else given
        headers = {"content-type": request.headers.get("content-type", "application/json"), **self.headers}
        if authorization:
            headers["authorization"] = authorization
        path = request.path.removeprefix("/v1")
        asked = httpx.Request(request.method, f"{self.upstream}{path}", content=request.body, headers=headers)
        try:
            async with asyncio.timeout(DEADLINE), httpx.AsyncClient(timeout=DEADLINE) as client:
                reply = await client.send(asked, stream=True)
                content = await _limited(reply)
        except (httpx.HTTPError, TimeoutError) as error:
            raise HttpRefusal(502, f"the upstream does not answer: {error!r}") from None
        kind = reply.headers.get("content-type", "application/json")
        keys = keys_in(request.headers) | keys_in({**self.headers, "api-key": self.api_key})
        self._record(
            {
                "path": path,
                "request": redacted(request.body.decode(errors="replace"), keys),
                "status": reply.status_code,
                "content_type": kind,
                "reply": redacted(content.decode(errors="replace"), keys),
            }
        )
        return HttpReply(reply.status_code, content, (("content-type", kind),))

    def _record(self, line: dict[str, Any]) -> None:
        with self._lock, open(self.cassette, "a", encoding="utf-8", opener=_for_its_owner) as file:
            file.write(json.dumps(line) + "\n")


class Cassette(App):
    """Replays a cassette: to each request what the upstream answered to an equal one.

    Equal requests are answered in the order of their recording, the last answer again and again. What was not
    recorded gets 404.

    Raises:
        OSError: the cassette cannot be read.
        ValueError: a line is no exchange; the message names it.
    """

    def __init__(self, cassette: Path) -> None:
        self._answers: defaultdict[str, deque[HttpReply]] = defaultdict(deque)
        for number, line in enumerate(cassette.read_bytes().splitlines(), 1):
            try:
                key, reply = _recorded(line)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise ValueError(f"{cassette}:{number} is no recorded exchange: {error!r:.200}") from error
            self._answers[key].append(reply)
        posts = {("POST", path): self._replay for path in SHAPES if path.startswith("/v1/")}
        super().__init__({**posts, ("GET", "/v1/models"): self._replay, ("GET", "/health"): live})

    async def _replay(self, request: HttpRequest) -> HttpReply:
        if request.method == "POST":
            json_body(request)
        asked = redacted(request.body.decode(errors="replace"), keys_in(request.headers))  # as it was recorded
        answers = self._answers.get(_key(request.path.removeprefix("/v1"), asked))
        if not answers:
            raise HttpRefusal(404, "the cassette has no such request")
        return answers.popleft() if len(answers) > 1 else answers[0]


async def _limited(reply: "httpx.Response") -> bytes:
    """The body of an upstream's reply.

    Raises:
        HttpRefusal: 502, it has no end in sight.
    """
    content = bytearray()
    async for chunk in reply.aiter_bytes():
        content += chunk
        if len(content) > BODY_LIMIT:
            raise HttpRefusal(502, f"the upstream's reply is longer than {BODY_LIMIT} bytes")
    return bytes(content)


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _recorded(line: bytes) -> tuple[str, HttpReply]:
    """A line's request and reply.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: it is no exchange.
    """
    each = json.loads(line)
    status, kind = each["status"], each["content_type"]
    if not isinstance(status, int) or not 200 <= status <= 599 or not isinstance(kind, str):  # noqa: PLR2004 - of a reply
        raise ValueError(f"a reply of status {status!r} and type {kind!r}")
    kind.encode("latin-1")
    return _key(each["path"], each["request"]), HttpReply(status, each["reply"].encode(), (("content-type", kind),))


def _key(path: str, body: str) -> str:
    value = json.loads(body) if body else None
    return f"{path} {json.dumps(value, sort_keys=True)}"
