"""What a server serves over MCP: learned when a check first asks, so that a server without it costs one seed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.mcp_block import McpEndpoint, bare_name, read_endpoint
from gym_conformance.drift.definitions import Definition, read_definition
from gym_conformance.drift.served import ServedTool, mcp_tools


@dataclass(frozen=True)
class Offer:
    """The offer to the sessions of the gym's first rows: a server may narrow it for each.

    Attributes:
        block: of the seed's reply; None where there is none, or nobody has asked.
        shown: the names that a row's session was shown by `tools/list`.
        tools: all of these tools by name, as JSON objects.
    """

    block: Any = None
    shown: Mapping[Row, frozenset[str]] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def endpoint(self) -> McpEndpoint | None:
        """Where it is, as an agent understands the block."""
        return read_endpoint(self.block)

    @cached_property
    def served(self) -> Mapping[str, ServedTool]:
        """The tools as a server's side of drift."""
        return mcp_tools(list(self.tools.values()))

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools as they are shown to the policy: the other side of drift."""
        found = (read_definition(as_function(tool)) for tool in self.tools.values())
        return tuple(one for one in found if one is not None)

    def with_list(self, row: Row, listed: Iterable[Mapping[str, Any]]) -> "Offer":
        """The offer with what a session of the row was shown besides."""
        tools = {str(tool.get("name")): tool for tool in listed}
        return Offer(self.block, {**self.shown, row: frozenset(tools)}, {**tools, **self.tools})

    def own(self, call: Call) -> Call:
        """A recorded call with the tool's own name."""
        return Call(bare_name(call.name, self.endpoint.server if self.endpoint else ""), call.arguments)


def as_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of `tools/list` as the function tool that an agent makes of it."""
    return {
        "type": "function",
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get("inputSchema"),
    }
