"""A connection of the official MCP client (PyPI `mcp`, 1.27 or newer, 2.x too)."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from gym_conformance.mcp.carrier import Carrier, NotSpoken
from gym_conformance.mcp.result import McpResult, read_result

#: How to install the client; part of each message that it is missing.
INSTALL: Final = "the official MCP client: pip install 'gym-conformance[mcp]'"

#: The most pages of `tools/list` to read: a server that has more never ends.
_PAGES: Final = 50


class NotSendable(Exception):
    """Arguments that the client cannot send, and therefore no agent that uses it."""


class McpConnection:
    """Calls tools over MCP; each answer comes within twice the channel's timeout, or not at all."""

    def __init__(self, session: Any, carrier: Carrier) -> None:
        self._session = session
        self._carrier = carrier

    async def initialize(self) -> None:
        """Perform the MCP handshake, which comes first.

        Raises:
            ServerFault: no complete reply came.
            NotSpoken: the endpoint does not speak MCP.
        """
        answer = await self._answered(self._session.initialize(), "initialize")
        if isinstance(answer, McpResult):
            raise NotSpoken("an answer to initialize", str(answer))

    async def tools(self) -> tuple[Mapping[str, Any], ...]:
        """The tools of `tools/list` as JSON objects, from all pages.

        Raises:
            ServerFault: no complete reply came.
            NotSpoken: the reply is no list of tools.
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
        raise NotSpoken(f"an end of tools/list within {_PAGES} pages", "another nextCursor on each")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> McpResult:
        """Call a tool. A tool error or a JSON-RPC error is a result, too.

        Raises:
            ServerFault: no complete reply came.
            NotSpoken: the reply is no result.
            NotSendable: the arguments cannot be expressed in UTF-8 or JSON.
        """
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            raise NotSendable(f"the official client cannot send {arguments!r}: {error}") from None
        answer = await self._answered(self._session.call_tool(tool, dict(arguments)), "tools/call")
        return answer if isinstance(answer, McpResult) else read_result(answer)

    async def _answered(self, asking: Awaitable[Any], method: str) -> dict[str, Any] | McpResult:
        """The answer as JSON, or a JSON-RPC error as a result."""
        carrier, seconds = self._carrier, 2 * self._carrier.channel.endpoint.timeout
        carrier.failure = None
        error: Exception | None = None
        try:
            async with asyncio.timeout(seconds):
                answer = await asking
        except TimeoutError:
            error = NotSpoken(f"an answer to {method}", f"nothing usable by the client within {seconds:g} s")
        except Exception as raised:  # noqa: BLE001 - the client raises anything when it cannot read a reply
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
    """What is missing and why; '' if the client can be imported. One of the env's own modules may shadow it."""
    try:
        importlib.import_module("mcp.client.streamable_http")
    except ImportError as error:
        return f"{INSTALL} ({error})"
    return ""


@asynccontextmanager
async def connected(carrier: Carrier) -> AsyncIterator[McpConnection]:
    """An initialised connection, to be used and closed within one task.

    Raises:
        ServerFault: no complete reply came.
        NotSpoken: the endpoint does not speak MCP.
    """
    streamable = importlib.import_module("mcp.client.streamable_http")
    sessions = importlib.import_module("mcp.client.session")
    failure: Exception | None = None
    # Nothing connects to this URL: the carrier has its own destination
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
    except ExceptionGroup as group:  # raised in one of the client's own tasks
        failure = NotSpoken("answers that the client can read", f"its end: {group.exceptions[0]!r}")
    if failure is not None:
        raise failure


def _client(streamable: Any, carrier: Carrier) -> Any:
    """An HTTP client over the carrier, from the library that this version of the official client uses."""
    library = getattr(streamable, "httpx2", None) or streamable.httpx

    class Carried(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        async def handle_async_request(self, request: Any) -> Any:
            status, content_type, body = await carrier.answer(request.method, request.headers, await request.aread())
            return library.Response(status, headers={"content-type": content_type}, content=body, request=request)

    return library.AsyncClient(transport=Carried(), trust_env=False)
