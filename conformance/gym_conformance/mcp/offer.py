"""The tools that a server serves over MCP, read when a check first needs them: without MCP, this costs one seed."""

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
    """The tools that the sessions of the gym's first rows see; a server may narrow them for each row.

    Attributes:
        block: the MCP block of the seed's reply; None if there is none, or nobody has looked.
        shown: by row, the names of the tools that `tools/list` showed to its session.
        tools: all these tools by name, as JSON objects.
    """

    block: Any = None
    shown: Mapping[Row, frozenset[str]] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def endpoint(self) -> McpEndpoint | None:
        """The endpoint, read from the block as an agent reads it."""
        return read_endpoint(self.block)

    @cached_property
    def served(self) -> Mapping[str, ServedTool]:
        """The tools as the server's side of a drift comparison."""
        return mcp_tools(list(self.tools.values()))

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools as the policy sees them: the other side of a drift comparison."""
        found = (read_definition(as_function(tool)) for tool in self.tools.values())
        return tuple(one for one in found if one is not None)

    def with_list(self, row: Row, listed: Iterable[Mapping[str, Any]]) -> "Offer":
        """The offer, extended by what was listed to a session of the row."""
        tools = {str(tool.get("name")): tool for tool in listed}
        return Offer(self.block, {**self.shown, row: frozenset(tools)}, {**tools, **self.tools})

    def own(self, call: Call) -> Call:
        """A recorded call under the tool's own name."""
        return Call(bare_name(call.name, self.endpoint.server if self.endpoint else ""), call.arguments)


def as_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The function tool that an agent makes of a tool in `tools/list`."""
    return {
        "type": "function",
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get("inputSchema"),
    }
