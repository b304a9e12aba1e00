"""A day that is written as days are and does not exist, a place between two cells, letters and folders that a tool cannot write."""

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, telling
from tests.twins.twin import Turn, recorded_in_each, rollout_of
from tests.twins.unrecorded import rows_of


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


@pytest.mark.parametrize("careless", ["", "letters", "folders"])
def test_letters_and_folders_that_crash_a_tool_are_told(careless: str) -> None:
    @dataclass
    class Files:
        names: dict[str, bytes] = field(default_factory=lambda: {"a.txt": b"one"})

    def write_file(state: Files, name: str, text: str) -> dict[str, int]:
        """Write a file."""
        state.names[name] = text.encode("latin-1" if careless == "letters" else "utf-8", "surrogatepass")
        return {"files": len(state.names)}

    def rename_file(state: Files, source: str, target: str) -> dict[str, int]:
        """Rename a file."""
        if source not in state.names:
            raise HttpRefusal(404, "no such file")
        if careless == "folders" and "/" in target:
            raise FileNotFoundError(target)
        state.names[target] = state.names.pop(source)
        return {"files": len(state.names)}

    server = ResourcesServer("files", tools=[write_file, rename_file], verify=lambda: 0.0, state=Files)
    calls: list[Turn] = [
        ("write_file", {"name": "b.txt", "text": "two"}, {"files": 2}),
        ("rename_file", {"source": "a.txt", "target": "c.txt"}, {"files": 2}),
    ]
    checks = {"calls-valid", "calls-invalid"}
    findings = judge(server, recorded_in_each(rows_of(server), *calls), checks=checks)
    told = {"": set(), "letters": checks, "folders": {"calls-invalid"}}
    assert telling(findings) >= told[careless]
    assert careless or not telling(findings)
