"""The reference server, and one that cannot score one row."""

from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources.rows import TaskRow
from gym_mocks.resources.scores import Score


class Grumpy(ReferenceServer):
    """Cannot score example.jsonl:3: a MUST is violated on one subject of a check, and not on the others."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if "How many books" in str(row.model_dump()["responses_create_params"]["input"]):
            raise KeyError("answer")
        return await super().score(session_id, row, response)
