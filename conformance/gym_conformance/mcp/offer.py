"""What a server serves over MCP: learned when a check first asks, so that a server without it costs one seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gym_conformance.contract.mcp import Endpoint, bare_name, read_endpoint
from gym_conformance.contract.rows import Call
from gym_conformance.drift.definitions import Definition, read_definition
from gym_conformance.drift.served import Served, mcp_tools


@dataclass
class Offer:
    """The offer to the sessions of one row, the gym's first.

    Attributes:
        block: of the seed's reply; None where there is none, or nobody has asked.
        listed: the tools of `tools/list` as JSON objects; () where nobody has asked.
    """

    block: Any = None
    listed: tuple[Mapping[str, Any], ...] = ()

    @property
    def endpoint(self) -> Endpoint | None:
        """Where it is, as an agent understands the block."""
        return read_endpoint(self.block)

    @cached_property
    def served(self) -> Mapping[str, Served]:
        """The tools as a server's side of drift."""
        return mcp_tools(list(self.listed))

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools as they are shown to the policy: the other side of drift."""
        found = (read_definition(shown(tool)) for tool in self.listed)
        return tuple(one for one in found if one is not None)

    def own(self, call: Call) -> Call:
        """A recorded call with the tool's own name."""
        return Call(bare_name(call.name, self.endpoint.server if self.endpoint else ""), call.arguments)


def shown(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of `tools/list` as the function tool that an agent makes of it."""
    return {
        "type": "function",
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get("inputSchema"),
    }
