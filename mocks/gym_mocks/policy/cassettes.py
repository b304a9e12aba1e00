"""A proxy to a real OpenAI-compatible upstream that records what passes, and a server that replays it."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from gym_mocks.policy.server import PATHS
from gym_mocks.wire import App, HttpRefusal, HttpReply, HttpRequest, json_body
from gym_mocks.wire.app import BODY_LIMIT

if TYPE_CHECKING:
    import httpx

REDACTED = "[redacted]"
DEADLINE = 600.0  # seconds for one answer of the upstream


class Proxy(App):
    """Forwards requests to an upstream and records each exchange as a line of a cassette.

    Headers are not recorded, and the API keys, wherever they occur in a body, are redacted.

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
        posts = {("POST", f"/v1{path}"): self._forward for path in PATHS}
        super().__init__({**posts, ("GET", "/v1/models"): self._forward, ("GET", "/health"): _live})

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
        keys = {self.api_key, given.removeprefix("Bearer "), request.headers.get("x-api-key", "")} - {""}
        self._record(
            {
                "path": path,
                "request": _redacted(request.body, keys),
                "status": reply.status_code,
                "content_type": kind,
                "reply": _redacted(content, keys),
            }
        )
        return HttpReply(reply.status_code, content, (("content-type", kind),))

    def _record(self, line: dict[str, Any]) -> None:
        with self._lock, self.cassette.open("a", encoding="utf-8") as file:
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
        for number, line in enumerate(cassette.read_text(encoding="utf-8").splitlines(), 1):
            try:
                each = json.loads(line)
                key = _key(each["path"], each["request"].encode())
                reply = HttpReply(each["status"], each["reply"].encode(), (("content-type", each["content_type"]),))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{cassette}:{number} is no recorded exchange: {error!r}") from error
            self._answers[key].append(reply)
        posts = {("POST", f"/v1{path}"): self._replay for path in PATHS}
        super().__init__({**posts, ("GET", "/v1/models"): self._replay, ("GET", "/health"): _live})

    async def _replay(self, request: HttpRequest) -> HttpReply:
        if request.method == "POST":
            json_body(request)
        answers = self._answers.get(_key(request.path.removeprefix("/v1"), request.body))
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


async def _live(_: HttpRequest) -> HttpReply:
    return HttpReply.json({"status": "ok"})


def _redacted(body: bytes, keys: set[str]) -> str:
    text = body.decode(errors="replace")
    for key in keys:
        text = text.replace(key, REDACTED)
    return text


def _key(path: str, body: bytes) -> str:
    value = json.loads(body) if body else None
    return f"{path} {json.dumps(value, sort_keys=True)}"
