"""Tools over MCP as nemo-gym 0.7.0 serves them: streamable HTTP, without sessions of its own, JSON replies.

Reference: nemo_gym/mcp_auto_exposure.py (0.7.0). Written against the protocol, so that it needs no SDK.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.resources.signed_cookie import MAX_AGE
from gym_mocks.resources.signing import Signer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from gym_mocks.wire.messages import to_json

TOKEN_HEADER = "X-NeMo-Gym-Session-Token"  # noqa: S105 - a header's name
PATH = "/mcp"
VERSION = "2025-06-18"

_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD = -32700, -32600, -32601

Json = dict[str, Any]
CallTool = Callable[[str, FunctionTool, Json], Awaitable[Any]]


@dataclass(frozen=True)
class Claims:
    """What a token says: the session, and the tools that it may call; None for all."""

    session_id: str
    tools: Sequence[str] | None = None


class ToolsOverMCP:
    """The endpoint of one server, as a handler of `POST /mcp`; override a step to break one thing.

    Args:
        name: the server's name.
        tools: by name.
        call: runs a tool in a session: its id, the tool, its arguments.
        key: signs the tokens.
    """

    def __init__(self, name: str, tools: Mapping[str, FunctionTool], call: CallTool, key: str) -> None:
        self.name = name
        self.tools = tools
        self.call_in_session = call
        self.signer = Signer(f"{key}/mcp")

    def block(self, claims: Claims) -> Json:
        """What the seed's reply says under `mcp`."""
        headers = {TOKEN_HEADER: self.token(claims)}
        return {"server_name": self.name, "url_path": PATH, "transport": "http", "headers": headers}

    def token(self, claims: Claims) -> str:
        """A signed token; no store is needed to read it."""
        content = json.dumps({"sid": claims.session_id, "tools": claims.tools}).encode()
        return self.signer.sign(urlsafe_b64encode(content)).decode()

    def claims(self, token: str) -> Claims | None:
        """What a token says; None where this server has not signed it."""
        content = self.signer.content(token.encode(), MAX_AGE)
        if content is None:
            return None
        said = json.loads(urlsafe_b64decode(content))
        return Claims(said["sid"], said["tools"])

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one JSON-RPC message."""
        try:
            message = json.loads(request.body)
        except ValueError:
            return HttpReply.json(_error(None, _PARSE_ERROR, "Parse error"), 400)
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return HttpReply.json(_error(None, _INVALID_REQUEST, "Invalid Request"), 400)
        if "id" not in message:
            return HttpReply(202)
        answer = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list,
            "tools/call": self._call,
        }
        method = answer.get(message["method"])
        if method is None:
            return HttpReply.json(_error(message["id"], _NO_METHOD, "Method not found"))
        params = message.get("params")
        result = await method(params if isinstance(params, dict) else {}, request.headers.get(TOKEN_HEADER.lower(), ""))
        return HttpReply.json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def listed(self, claims: Claims | None) -> list[Json]:
        """The tools as `tools/list` shows them to the bearer of a token, or to whoever has none."""
        allowed = None if claims is None else claims.tools
        return [
            {"name": name, "description": tool.description, "inputSchema": tool.arguments.model_json_schema()}
            for name, tool in self.tools.items()
            if allowed is None or name in allowed
        ]

    async def called(self, name: str, arguments: Json, token: str) -> Json:
        """What `tools/call` comes to; whatever goes wrong is a tool error, which the policy can read."""
        tool = self.tools.get(name)
        if tool is None:
            return tool_error(f"Unknown tool: {name!r}. Available tools: {sorted(self.tools)}")
        claims = self.claims(token)
        if claims is None:
            return tool_error(
                "Invalid Gym MCP session token." if token else f"Missing {TOKEN_HEADER} for Gym MCP tool call."
            )
        if claims.tools is not None and name not in claims.tools:
            return tool_error(f"Tool {name!r} is not allowed for this session.")
        try:
            result = await self.call_in_session(claims.session_id, tool, tool.bind(arguments))
        except HttpRefusal as refused:
            return tool_error(f"HTTP {refused.status} from POST /{name}: {_told(refused.detail)}")
        except Exception as error:  # noqa: BLE001 - as the exception middleware of a route
            return tool_error(f"HTTP 500 from POST /{name}: {error!r}")
        structured = {"structuredContent": result} if isinstance(result, dict) else {}
        text = result if isinstance(result, str) else to_json(result).decode()
        return {"content": _text(text), **structured, "isError": False}

    async def _initialize(self, params: Json, _token: str) -> Json:
        return {
            "protocolVersion": params.get("protocolVersion", VERSION),
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": self.name, "version": "0.1.0"},
        }

    async def _ping(self, _params: Json, _token: str) -> Json:
        return {}

    async def _list(self, _params: Json, token: str) -> Json:
        return {"tools": await self.listed(self.claims(token))}

    async def _call(self, params: Json, token: str) -> Json:
        return await self.called(str(params.get("name")), params.get("arguments") or {}, token)


def tool_error(text: str) -> Json:
    """A result that says what went wrong."""
    return {"content": _text(text), "isError": True}


def _told(detail: Any) -> str:
    """What a route refuses, in the words of direct dispatch: as text, or pydantic's errors, which know of no body."""
    if not isinstance(detail, list):
        return str(detail)
    return json.dumps([each | {"loc": each["loc"][1:]} for each in detail])


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _error(number: Any, code: int, text: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}
