"""A process whose server dies in the middle of its first boxed text; it prints its URL, and leaves when stdin closes."""

import os
import sys
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve


class Dies(ReferenceServer):
    """As if out of memory."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if "\\boxed" in str(response["output"]):
            os._exit(137)
        return await super().score(session_id, row, response)


if __name__ == "__main__":
    with serve(Dies()) as served:
        sys.stdout.write(f"{served}\n")
        sys.stdout.flush()
        sys.stdin.read()
