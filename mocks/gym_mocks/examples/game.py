"""A pure-Python game whose answer stands in the row, in a list: no tools, the last message is graded."""

import re
from typing import Any

from gym_mocks.policy.items import say
from gym_mocks.resources import ResourcesServer, Score, TaskRow, last_text

BOARDS = (
    ([3, 1, 2], [1, 2, 3]),
    ([9, 9, 1], [1, 9, 9]),
    ([5, 4], [4, 5]),
    ([4, -2, 0, 7], [-2, 0, 4, 7]),
    ([8, 6], [6, 8]),
)


class GameRow(TaskRow):
    """A row: `ground_truth` is the list that the policy should end with."""

    ground_truth: list[int]


def verify(row: GameRow, response: dict[str, Any]) -> Score:
    """One for exactly the list, in brackets, at the end."""
    lists = re.findall(r"\[([-\d, ]*)\]", last_text(response["output"]))
    numbers = [int(number) for number in re.findall(r"-?\d{1,9}", lists[-1])] if lists else None
    return Score(float(numbers == row.ground_truth), fields={"extracted": numbers})


def server() -> ResourcesServer:
    """A fresh server."""
    return ResourcesServer("sorting_game", verify=verify)


def _row(given: list[int], wanted: list[int]) -> dict[str, Any]:
    prompt = {"role": "user", "content": f"Sort {given}. End with the sorted list in brackets."}
    return {"responses_create_params": {"input": [prompt]}, "ground_truth": wanted}


ROWS = [_row(given, wanted) for given, wanted in BOARDS]
SOLUTIONS: list[list[Any]] = [[say(f"That is {wanted}")] for _, wanted in BOARDS]
