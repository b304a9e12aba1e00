"""A connection of the official MCP client (PyPI `mcp`, 1.27 or newer, 2.x too)."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from gym_conformance.mcp.carrier import Carrier, NotSpoken
from gym_conformance.mcp.result import McpResult, read_result

#: How to get the client; said wherever it is missing.
INSTALL: Final = "the official MCP client: pip install 'gym-conformance[mcp]'"

#: Pages of `tools/list`: a server that has more never ends.
_PAGES: Final = 50


class NotSendable(Exception):
    """Arguments that the client cannot send, and so no agent that uses it."""


class McpConnection:
    """Calls tools over MCP; every answer comes within twice the line's timeout, or not at all."""

    def __init__(self, session: Any, carrier: Carrier) -> None:
        self._session = session
        self._carrier = carrier

    async def initialize(self) -> None:
        """Shake hands, as every client does first.

        Raises:
            ServerFault: no whole reply came.
            NotSpoken: what answers does not speak MCP.
        """
        answer = await self._answered(self._session.initialize(), "initialize")
        if isinstance(answer, McpResult):
            raise NotSpoken("an answer to initialize", str(answer))

    async def tools(self) -> tuple[Mapping[str, Any], ...]:
        """The tools of `tools/list`, all pages, as JSON objects.

        Raises:
            ServerFault: no whole reply came.
            NotSpoken: what came is no list of tools.
        """
        found: list[Mapping[str, Any]] = []
        page: dict[str, Any] = {}
        for _ in range(_PAGES):
            listed = await self._answered(self._session.list_tools(**page), "tools/list")
            if isinstance(listed, McpResult):
                raise NotSpoken("a list of tools", str(listed))
            found += listed["tools"]
            if not listed.get("nextCursor"):
                return tuple(found)
            params = importlib.import_module("mcp.types").PaginatedRequestParams
            page = {"params": params(cursor=listed["nextCursor"])}
        raise NotSpoken(f"an end of tools/list within {_PAGES} pages", "one more cursor")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> McpResult:
        """Call a tool. A tool error and a JSON-RPC error are results.

        Raises:
            ServerFault: no whole reply came.
            NotSpoken: what came is no result.
            NotSendable: they hold what UTF-8 or JSON has not.
        """
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            raise NotSendable(f"the official client cannot send {arguments!r}: {error}") from None
        answer = await self._answered(self._session.call_tool(tool, dict(arguments)), "tools/call")
        return answer if isinstance(answer, McpResult) else read_result(answer)

    async def _answered(self, asking: Awaitable[Any], method: str) -> dict[str, Any] | McpResult:
        """The answer as JSON, or the JSON-RPC error as a result."""
        carrier, seconds = self._carrier, 2 * self._carrier.channel.endpoint.timeout
        carrier.failure = None
        error: Exception | None = None
        try:
            async with asyncio.timeout(seconds):
                answer = await asking
        except TimeoutError:
            error = NotSpoken(f"an answer to {method}", f"nothing usable by the client within {seconds:g} s")
        except Exception as raised:  # noqa: BLE001 - the client raises what it likes at what it cannot read
            error = raised
        if carrier.failure is not None:
            raise carrier.failure
        if error is None:
            found: dict[str, Any] = answer.model_dump(mode="json", by_alias=True)
            return found
        if isinstance(error, NotSpoken):
            raise error
        data = getattr(error, "error", None)
        if isinstance(code := getattr(data, "code", None), int):
            return McpResult(is_error=True, text=str(getattr(data, "message", "")), code=code)
        raise NotSpoken(f"an answer to {method} that the client can read", f"{type(error).__name__}: {error}")


def missing() -> str:
    """What is missing, and why; '' where the client can be imported. A module of the env's may stand in its way."""
    try:
        importlib.import_module("mcp.client.streamable_http")
    except ImportError as error:
        return f"{INSTALL} ({error})"
    return ""


@asynccontextmanager
async def connected(carrier: Carrier) -> AsyncIterator[McpConnection]:
    """An initialised connection, to be used and left within one task.

    Raises:
        ServerFault: no whole reply came.
        NotSpoken: what answers does not speak MCP.
    """
    streamable = importlib.import_module("mcp.client.streamable_http")
    sessions = importlib.import_module("mcp.client.session")
    failure: Exception | None = None
    # The url is never connected to: the carrier knows where to go
    url = carrier.channel.endpoint.url + carrier.path
    try:
        async with (
            _client(streamable, carrier) as client,
            streamable.streamable_http_client(url, http_client=client) as (read, write, *_),
            sessions.ClientSession(read, write) as session,
        ):
            connection = McpConnection(session, carrier)
            try:
                await connection.initialize()
                yield connection
            except Exception as raised:  # noqa: BLE001 - the client's task groups would wrap it
                failure = raised
    except ExceptionGroup as group:  # a task of the client's own
        failure = NotSpoken("answers that the client can read", f"its end: {group.exceptions[0]!r}")
    if failure is not None:
        raise failure


def _client(streamable: Any, carrier: Carrier) -> Any:
    """An HTTP client, of the library that this version of the official client is made for, over the carrier."""
    library = getattr(streamable, "httpx2", None) or streamable.httpx

    class Carried(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        async def handle_async_request(self, request: Any) -> Any:
            status, content_type, body = await carrier.answer(request.method, request.headers, await request.aread())
            return library.Response(status, headers={"content-type": content_type}, content=body, request=request)

    return library.AsyncClient(transport=Carried(), trust_env=False)
