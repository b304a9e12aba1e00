"""Tools over MCP: the `mcp` block of the seed's reply, and `tools/list` compared with rows and routes.

Source: `MCPResourcesServer` in nemo_gym/base_resources_server.py (0.4.0), nemo_gym/mcp_auto_exposure.py (0.7.0), and
the agent that reads the block, responses_api_agents/claude_code_agent/app.py (0.4.0).
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from gym_conformance.checks.tools.drift import expect_unconfirmed
from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.contract.endpoints import RESERVED, TOOL_NAME
from gym_conformance.contract.mcp_block import faults
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.drift.definitions import Definition, read_definition
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.drift.tool_drift import Drift, DriftKind, Witness
from gym_conformance.mcp.offer import as_function
from gym_conformance.mcp.result import McpResult
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.probes.refused_over_mcp import drifts_over_mcp, is_refused_over_mcp
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import TOOLS
from gym_conformance.trials.over_mcp import MCP_BLOCK, MCP_CLIENT, MCP_TOOLS, over_mcp
from gym_conformance.trials.trial import Trial


@check(
    "mcp-block",
    "The seed's mcp block MUST say everything that an agent needs to connect",
    why="the agent silently starts without the environment's tools, and every rollout earns nothing.",
    needs=MCP_BLOCK,
)
async def mcp_block(trial: Trial, _: object) -> None:
    """Reads the block's `server_name`, `url_path`, `transport` and `headers`. Without a block, the server has no MCP.

    Source: `MCPServerMetadata` in nemo_gym/base_resources_server.py, and `_write_rollout_mcp_config` in
    claude_code_agent/app.py, which joins the path to the server's own URL (0.4.0).
    """
    await trial.session().seed()
    for expected, actual in faults(trial.learned.offer.block):
        raise Violation(
            expected, actual, "Return `build_mcp_session_metadata(request)`, or set expose_tools_over_mcp (0.5.0 on)."
        )


@check(
    "mcp-lists-tools",
    "The MCP endpoint MUST complete the handshake and list its tools",
    why="otherwise the client gives up before the first call, and the policy never sees a tool.",
    needs=MCP_CLIENT,
)
async def mcp_lists_tools(trial: Trial, _: object) -> None:
    """Connects with the official client and the session's token, and reads every page of `tools/list`.

    Each tool needs a unique name and a JSON Schema of an object for its arguments.
    Source: https://modelcontextprotocol.io/specification/2025-06-18/server/tools, as the official SDK implements it, with
    which nemo-gym itself serves (0.4.0 to 0.7.0).
    """
    async with over_mcp(trial) as (_, connection):
        listed = await connection.tools()
    hint = "The list was written by hand and is wrong; let the SDK derive it."
    names = Counter(str(tool.get("name")) for tool in listed)
    if twice := [name for name, count in names.items() if count > 1]:
        raise Violation("each tool listed once", f"{', '.join(twice)} listed twice", hint)
    for tool in listed:
        definition = read_definition(as_function(tool))
        if definition and not_json_schema(definition):
            raise Violation(f"a JSON Schema of an object for {definition}", f"{tool.get('inputSchema')!r}", hint)
    trial.note = f"{len(listed)} tools"


@check(
    "mcp-tool-names",
    "A tool's name over MCP MUST be legal and not reserved",
    why="clients refuse the tool, or its calls cannot be told apart from another's when the rollout is scored.",
    needs=MCP_TOOLS,
)
async def mcp_tool_names(trial: Trial, _: object) -> None:
    """Checks each listed name against `[A-Za-z0-9_-]{1,64}` and the framework's endpoints. Sends nothing.

    Source: `_validate_tools` in nemo_gym/mcp_auto_exposure.py (0.7.0), `RESERVED_MCP_TOOL_NAMES` in
    nemo_gym/base_resources_server.py (0.4.0).
    """
    for name in trial.learned.offer.served:
        if not TOOL_NAME.fullmatch(name) or name in RESERVED:
            raise Violation("letters, digits, _ and -, and no endpoint's name", name, "Rename the tool.")


@check(
    "mcp-argument-refused",
    "A call that the definition allows MUST NOT be refused over MCP for its arguments",
    why="the policy calls the tool as the definition says, and gets an error that it cannot fix.",
    needs=MCP_TOOLS,
    subjects=lambda trial: list(drifts_over_mcp(trial.gym, trial.learned.offer)) or ("server",),
)
async def mcp_argument_refused(trial: Trial, drift: Any) -> None:
    """Compares `tools/list` with the route that runs the call or, if there is no route, the rows with the list.

    A call that only one side allows is sent over MCP in a session of a row that declares the tool, along with one that
    both allow. An error that does not blame the argument does not count.

    Source: `call_direct` in nemo_gym/mcp_auto_exposure.py (0.7.0) validates with the route's own model.
    """
    if not isinstance(drift, Drift):
        trial.note = f"{len(trial.learned.offer.definitions)} listed tools compared"
        return

    async def ask(arguments: Any) -> McpResult:
        async with over_mcp(trial, trial.gym.row_for(drift)) as (_, connection):
            return await connection.call(drift.tool, arguments)

    hint = "One of the two is out of date; derive the listed schema from the code that runs."
    await expect_unconfirmed(trial, drift, is_refused_over_mcp(drift, ask), "as the definition allows it", hint)


def _unserved(trial: Trial) -> Iterable[Tool]:
    """What rows declare and neither a route nor `tools/list` has. If an agent calls routes, tool-routed reports it."""
    if trial.gym.kind is not ServerKind.SINGLE_TURN or trial.gym.agents:
        return ()
    return [
        tool
        for tool in trial.gym.tools.values()
        if trial.learned.offer.own(Call(tool.name, {})).name not in trial.learned.offer.served
    ]


@check(
    "mcp-tool-served",
    "A declared tool without a route SHOULD be served over MCP",
    why="the policy is offered a tool that always fails, and learns not to call it.",
    needs=[*MCP_TOOLS, TOOLS],
    subjects=lambda trial: _unserved(trial) or ("server",),
)
async def mcp_tool_served(trial: Trial, tool: Any) -> None:
    """Calls over MCP each tool that has no route and is not listed, in a session of a row that declares it.

    A server that lists other tools and answers this one with an error does not know it.
    Our inference: a server whose tools have no routes serves them over MCP only.
    """
    if not isinstance(tool, Tool):
        trial.note = "every declared tool has a route, or is listed"
        return
    gym = trial.gym
    definition = gym.definition_of(tool.name) or Definition(tool.name, tool.parameters)
    async with over_mcp(trial, gym.row_for(definition)) as (_, connection):
        if any(one.get("name") == tool.name for one in await connection.tools()):
            return
        result = await connection.call(tool.name, gym.example_call(tool).arguments)
    if not result.is_error:
        trial.note = "it is not listed, yet it answers"
        return
    served = ", ".join(sorted(trial.learned.offer.served))
    said = f"rows declare it, but the server has no such tool; over MCP it serves {served}"
    drift = definition.drift(DriftKind.TOOL_MISSING, said, witness=Witness(gym.example_call(tool).arguments))
    trial.tell(drift, Live(LiveAnswer.CONFIRMED, str(result)))
    raise Violation(f"{tool.name} over MCP", str(result), f"The tool was renamed, or never added. Served: {served}.")


@check(
    "mcp-routes-listed",
    "Some tool routes are not listed over MCP",
    why="an agent that calls over MCP does not know about it, so two agents see two different environments.",
    needs=MCP_TOOLS,
)
async def mcp_routes_listed(trial: Trial, _: object) -> None:
    """Compares the POST routes in the OpenAPI document with `tools/list`. Sends nothing.

    Our inference: `mcp_tools()` may leave a route out on purpose (nemo_gym/base_resources_server.py, 0.7.0).
    """
    if not trial.gym.api.tools:
        raise NotApplicable("the server names no tool routes")
    if unlisted := sorted(trial.gym.api.tools - trial.learned.offer.served.keys()):
        raise Violation(
            "every tool route listed over MCP",
            f"not listed: {', '.join(unlisted)}",
            "They were left out on purpose, or forgotten.",
        )
