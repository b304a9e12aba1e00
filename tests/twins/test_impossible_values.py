"""A day that is written as days are and does not exist, and a place between two cells."""

from datetime import date
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import rollout_of


@pytest.mark.parametrize("careless", [False, True])
def test_a_day_that_crashes_a_tool_is_told(careless: bool) -> None:
    def weekday(day: str) -> dict[str, int]:
        parts = day.split("-")
        if not careless or len(parts) != 3 or not all(map(str.isdigit, parts)):
            try:
                return {"weekday": date.fromisoformat(day).weekday()}
            except ValueError:
                return {"weekday": -1}
        return {"weekday": date(*map(int, parts)).weekday()}

    server = ResourcesServer("days", tools=[weekday], verify=lambda: 0.0)
    asked = {"input": [{"role": "user", "content": "Which day of the week?"}], "tools": server.declarations}
    row = Row({"responses_create_params": asked}, Source(Path("days.jsonl"), 1))
    rollout = rollout_of(row, ("weekday", {"day": "2026-03-05"}, {"weekday": 3}))
    findings = judge(server, Dataset((row,), (rollout,), 1), checks={"calls-invalid"})
    assert telling(findings) == ({"calls-invalid"} if careless else set())


@pytest.mark.parametrize("careless", [False, True])
def test_a_place_between_two_cells_that_crashes_a_tool_is_told(careless: bool) -> None:
    def cell(column: float) -> dict[str, str]:
        cells: dict[float, str] = {0: "mine", 1: "flag", 2: "free"}
        if not 0 <= column < len(cells):
            return {"error": "off the board"}
        return {"cell": cells[column] if careless else cells.get(column, "none")}

    server = ResourcesServer("board", tools=[cell], verify=lambda: 0.0)
    column = {"type": "integer", "minimum": 0, "maximum": 2}
    declared = {"type": "object", "properties": {"column": column}, "required": ["column"]}
    tools = [tool | {"parameters": declared} for tool in server.declarations]
    asked = {"input": [{"role": "user", "content": "What is there?"}], "tools": tools}
    row = Row({"responses_create_params": asked}, Source(Path("board.jsonl"), 1))
    rollout = rollout_of(row, ("cell", {"column": 1}, {"cell": "flag"}))
    findings = judge(server, Dataset((row,), (rollout,), 1), checks={"calls-invalid"})
    assert telling(findings) == ({"calls-invalid"} if careless else set())
