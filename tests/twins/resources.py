"""Twins that hold up all sessions, or keep what they should let go."""

import time
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.resources.function_tool import FunctionTool
from tests.twins.twin import Twin, twin


class ScoresOnTheLoop(ReferenceServer):
    """A long answer is scored for a second, on the event loop."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if len(str(response["output"])) > 100_000:
            time.sleep(0.9)  # noqa: ASYNC251 - the fault
        return await super().score(session_id, row, response)


class MovesOnTheLoop(ReferenceServer):
    """A tool takes most of a second, on the event loop, for one item."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        if tool.name == "move_stock" and arguments["amount"].item == "atlas":
            time.sleep(0.6)  # noqa: ASYNC251 - the fault
        return await super().call(session_id, tool, arguments)


TWINS: tuple[Twin, ...] = (
    twin("scores on the event loop", "resources-loop-free", ScoresOnTheLoop),
    twin("moves on the event loop", "resources-loop-free", MovesOnTheLoop),
)
