"""Twins that hold up all sessions, or keep what they should let go."""

import asyncio
import math
import re
import time
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.twin import Json, Twin, twin, unrecorded


class ScoresOnTheLoop(ReferenceServer):
    """A long answer is scored for a second, on the event loop."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if len(str(response["output"])) > 100_000:
            time.sleep(0.9)  # noqa: ASYNC251 - the fault
        return await super().score(session_id, row, response)


class WorksOutPowers(ReferenceServer):
    """An exponent is worked out digit by digit, on the event loop."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if powers := re.findall(r"\d[eE](\d+)", str(response["output"])):
            time.sleep(min(0.9, int(powers[-1]) / 3e6))  # noqa: ASYNC251 - the fault
        return await super().score(session_id, row, response)


class MovesOnTheLoop(ReferenceServer):
    """A tool takes most of a second, on the event loop, but only beside light requests: all others cost no time here."""

    looked = -math.inf

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/":
            self.looked = time.monotonic()
        elif request.path == "/move_stock" and time.monotonic() - self.looked < 0.3:
            time.sleep(0.6)  # noqa: ASYNC251 - the fault
        return await super().dispatch(request)


class SearchesAllSessions(ReferenceServer):
    """A seed looks through all sessions, which takes a while once there are many."""

    async def seed(self, session_id: str, row: Json) -> Json:
        await asyncio.sleep(4.0 if len(self.sessions) > 119 else 0.0)
        return await super().seed(session_id, row)


TWINS: tuple[Twin, ...] = (
    twin("scores on the event loop", "resources-loop-free", ScoresOnTheLoop, blocks=True),
    twin("works out powers on the event loop", "resources-loop-free", WorksOutPowers, blocks=True),
    twin("moves on the event loop", "resources-loop-free", MovesOnTheLoop, blocks=True),
    twin(
        "moves on the event loop, and nothing is recorded",
        "resources-loop-free",
        MovesOnTheLoop,
        data=unrecorded(),
        blocks=True,
    ),
    twin("searches all sessions", "resources-latency", SearchesAllSessions, timeout=9.0),
)
