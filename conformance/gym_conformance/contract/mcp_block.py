"""Tools over MCP: the block in the seed's reply that gives their location and the session's token.

Source: `MCPServerMetadata` in nemo_gym/base_resources_server.py (0.4.0 to 0.7.0), and `_write_rollout_mcp_config` in
responses_api_agents/claude_code_agent/app.py (0.4.0), which reads it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: The header that carries a session's token.
TOKEN_HEADER: Final = "X-NeMo-Gym-Session-Token"  # noqa: S105 - a header's name

#: The block's key in the reply to a row, and in the reply to a typed seed (0.7.0).
_KEYS: Final = ("mcp", "resources_tools")

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True)
class McpEndpoint:
    """Where a session's tools are served, as claude_code_agent interprets the block.

    Attributes:
        server: the name under which the policy sees the server: `mcp__<server>__<tool>`.
        path: below the server's own URL.
        headers: what to send with each request; their values are secrets.
    """

    server: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def block_of(reply: Any) -> Any:
    """The block of a seed's reply (parsed JSON); None if the server serves nothing over MCP."""
    found = [reply[key] for key in _KEYS if reply.get(key) is not None] if isinstance(reply, dict) else []
    return found[0] if found else None


def read_endpoint(block: Any) -> McpEndpoint | None:
    """Read the block as leniently as the agent does; None if it contains nothing to connect to."""
    if not isinstance(block, dict):
        return None
    headers = block.get("headers")
    path = str(block.get("url_path") or "/mcp").lstrip("/")
    given = headers.items() if isinstance(headers, dict) else ()
    return McpEndpoint(
        str(block.get("server_name") or ""), f"/{path}", {str(name): str(value) for name, value in given}
    )


def faults(block: Any) -> Iterator[tuple[str, str]]:
    """What an agent cannot use in the block: what it needs, and what is there instead."""
    if not isinstance(block, dict):
        yield "an object", f"{type(block).__name__} {block!r}"
        return
    if not isinstance(name := block.get("server_name"), str) or not name:
        yield "server_name: a name", repr(name)
    if not isinstance(path := block.get("url_path", "/mcp"), str) or "://" in path or not path.strip("/"):
        yield "url_path: a path on this server", repr(path)
    if (transport := block.get("transport", "http")) != "http":
        yield 'transport: "http", which is MCP\'s streamable HTTP', repr(transport)
    headers = block.get("headers")
    if not isinstance(headers, dict) or not headers:
        yield (
            "headers: an object with the session's token",
            "an empty object" if headers == {} else type(headers).__name__,
        )
    elif bad := [name for name, value in headers.items() if not _is_header(name, value)]:
        yield "headers: names and values that HTTP can carry", f"another value for {', '.join(map(repr, bad))}"


def bare_name(tool: str, server: str) -> str:
    """A tool's own name: MCP clients write it as `mcp__<server>__<tool>`.

    Source: `normalize_tool_name` in nemo_gym/base_resources_server.py (0.7.0).
    """
    return tool.removeprefix(f"mcp__{server}__")


def _is_header(name: str, value: Any) -> bool:
    return bool(isinstance(value, str) and _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value))
