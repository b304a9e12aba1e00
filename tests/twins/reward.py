"""Twins whose reward rests on how something is written, or on what is claimed."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow, last_text
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json, Twin, twin

Items = list[Json]


def paying(worth: Callable[[Items], bool], reward: float) -> Callable[[], ASGIApp]:
    """Makes servers that give this reward where the output is worth it, and score as the reference does elsewhere."""

    class Paying(ReferenceServer):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            score = await super().score(session_id, row, response)
            return Score(reward, {}) if worth(response["output"]) else score

    return Paying


def renamed_ids(output: Items) -> bool:
    return any(item.get("call_id", "").startswith("renamed") for item in output)


def spaced_arguments(output: Items) -> bool:
    return any("\n" in item.get("arguments", "") for item in output)


def reasons_first(output: Items) -> bool:
    """Looks at the first item, as scorers do that expect a message there."""
    return len(output) > 1 and output[0]["type"] == "reasoning"


def several_parts(output: Items) -> bool:
    return any(len(item.get("content") or ()) > 1 for item in output)


def looks_again(output: Items) -> bool:
    """Two equal calls in a row."""
    calls = [(item["name"], item["arguments"]) for item in output if item["type"] == "function_call"]
    return any(one == two for one, two in pairwise(calls))


def boasts(output: Items) -> bool:
    return bool(output) and "success" in last_text(output)


def says_solved(output: Items) -> bool:
    return bool(output) and "solved" in last_text(output)


class ReadsTheOrderOfKeys(ReferenceServer):
    """A tool remembers how its arguments were written down, and verify compares that; what it is sent then is not looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.turned = set[str]()

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/add_stock" and re.search(rb'"category".*"amount"', request.body):
            self.turned.add(self.cookie.read(request.headers.get("cookie", "")) or "")
        return await super().dispatch(request)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        score = await super().score(session_id, row, response)
        return Score(0.0, {}) if session_id in self.turned else score


TWINS: tuple[Twin, ...] = (
    twin("reads call ids", "reward-form", paying(renamed_ids, 0.0)),
    twin("reads white space", "reward-form", paying(spaced_arguments, 0.0)),
    twin("reads the order of keys where calls are made", "reward-form", ReadsTheOrderOfKeys),
    twin("reads the first item", "reward-form", paying(reasons_first, 0.0)),
    twin("reads the first part", "reward-form", paying(several_parts, 0.0)),
    twin("counts calls", "reward-extra-read repeat-tool-calls", paying(looks_again, 0.0)),
    twin("believes a boast", "reward-claim", paying(boasts, 1.0)),
    twin("believes that it is solved", "reward-claim", paying(says_solved, 1.0)),
)
