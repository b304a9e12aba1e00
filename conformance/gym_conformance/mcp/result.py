"""The result of a tool call over MCP, and its equivalent as the reply of an HTTP route. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class McpResult:
    """The result of `tools/call`.

    Attributes:
        is_error: whether it reports that the call failed; the text says how.
        text: its text blocks, concatenated.
        structured: its structured content; None if it has none.
        code: the code of a JSON-RPC error that came instead of a result; None for a result.
    """

    is_error: bool
    text: str
    structured: Any = None
    code: int | None = None

    def as_route(self, like: Any) -> Any:
        """The value that a route would have returned; `like` is what it did return.

        A route's object is the structured content. Any other value is the text, plain or as JSON; FastMCP also gives it as
        `{"result": value}`.
        """
        if isinstance(self.structured, dict):
            wrapped = self.structured.keys() == {"result"} and not (isinstance(like, dict) and "result" in like)
            return self.structured["result"] if wrapped else self.structured
        if isinstance(like, str):
            return self.text
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return self.text

    def __str__(self) -> str:
        kind = f"JSON-RPC error {self.code}" if self.code is not None else "isError" if self.is_error else "result"
        return f"{kind}: {self.text}"


def read_result(result: Mapping[str, Any]) -> McpResult:
    """Read a `CallToolResult`, given as parsed JSON."""
    content = result.get("content") or []
    texts = [str(block.get("text", "")) for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return McpResult(result.get("isError") is True, "\n".join(texts), result.get("structuredContent"))
