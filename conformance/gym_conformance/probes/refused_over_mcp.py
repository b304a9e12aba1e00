"""Does the server refuse a call over MCP that a schema allows, while it accepts another allowed one?"""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from gym_conformance.drift.compare import compare
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.drift.tool_drift import Drift, DriftKind
from gym_conformance.drift.wording import short
from gym_conformance.gym_under_test import Gym
from gym_conformance.mcp.offer import Offer
from gym_conformance.mcp.result import McpResult
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_schemas.json_values import first_step

#: How FastMCP, the low-level server and nemo-gym 0.7.0's dispatch word a refusal of arguments. Nothing is claimed about
#: other errors.
_REFUSES: Final = re.compile(r"validation error|HTTP 422|invalid (?:param|arg|input)|unexpected keyword", re.IGNORECASE)

#: Calls the drift's tool in a fresh session of a row that declares it.
Ask = Callable[[Any], Awaitable[McpResult]]


def drifts_over_mcp(gym: Gym, offer: Offer) -> Iterator[Drift]:
    """Drift that may get an agent's calls over MCP refused.

    It compares what `tools/list` shows with the route that runs the call, or, if no route does, what rows declare with
    what `tools/list` shows.
    """
    routes, listed = gym.served or {}, offer.served
    pairs = [(one, routes[one.name]) for one in offer.definitions if one.name in routes]
    pairs += [(one, listed[one.name]) for one in gym.compared if one.name in listed and one.name not in routes]
    for definition, served in pairs:
        if not not_json_schema(definition):
            found = compare(definition, served, gym.endpoint.ensure_time)
            yield from (drift for drift in found if drift.kind is DriftKind.ARGUMENT_REFUSED)


async def is_refused_over_mcp(drift: Drift, ask: Ask) -> Live:
    """Send the witness and its counterpart.

    Raises:
        ServerFault: no whole reply came.
    """
    if drift.witness is None:
        return Live(LiveAnswer.NOT_TRIED, "no value was found that would show it")
    result = await ask(drift.witness.value)
    if not result.is_error:
        return Live(LiveAnswer.NOT_CONFIRMED, "the server accepted the witness over MCP")
    if not _blames(result, drift.path):
        return Live(LiveAnswer.NOT_CONFIRMED, f"it does not blame the argument: {result}")
    if drift.counterpart is None:
        return Live(LiveAnswer.CONFIRMED, f"over MCP; the server accepts no call that the definition allows; {result}")
    other = await ask(drift.counterpart.value)
    if other.is_error:
        return Live(LiveAnswer.NOT_CONFIRMED, f"{short(drift.counterpart.value)} is refused too: {other}")
    return Live(LiveAnswer.CONFIRMED, f"over MCP, where {short(drift.counterpart.value)} is accepted; {result}")


def _blames(result: McpResult, path: str) -> bool:
    first = first_step(path)
    named = not first or re.search(rf"(?<![\w-]){re.escape(first)}(?![\w-])", result.text)
    return bool(named and _REFUSES.search(result.text))
