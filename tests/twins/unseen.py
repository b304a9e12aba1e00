"""Faults that no check sees yet, on the record: the check that sees one moves its twin away from here."""

from typing import Any

from gym_mocks.reference import ReferenceServer, Session, Tool
from tests.twins.twin import Twin, twin


class StateForEachCall(ReferenceServer):
    """The tools are made anew for each call, so that nothing is ever kept."""

    async def call(self, session_id: str, tool: Tool, arguments: dict[str, Any]) -> Any:
        del session_id
        return await tool.call(self.new_state({}), arguments)


class StateOfTheLastSeed(ReferenceServer):
    """All sessions share what the last seed opened."""

    async def call(self, session_id: str, tool: Tool, arguments: dict[str, Any]) -> Any:
        del session_id
        return await super().call("the last", tool, arguments)

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        self.sessions.put("the last", Session(self.new_state(row)))
        return await super().seed(session_id, row)


TWINS: tuple[Twin, ...] = (
    twin("state lost after each call", "", StateForEachCall),
    twin("state shared by all sessions", "", StateOfTheLastSeed),
)
