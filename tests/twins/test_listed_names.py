"""A server whose tables have columns that only its replies name, with nothing recorded and no schema published."""

from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict, worst
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.unrecorded import rows_of

COLUMNS = ["day", "shop", "units"]
OPERATORS = ["eq", "ne", "contains"]


def frames(*operators: str) -> ResourcesServer:
    """Tables are opened under handles, and refusals are told in words, with a 200; these operators are known."""

    def load_table(state: list[str]) -> dict[str, Any]:
        """Open the table."""
        state.append(f"f{len(state) + 1}")
        return {"ok": True, "frame": state[-1], "columns": COLUMNS}

    def filter_rows(state: list[str], frame: str, by: str, op: str, value: str | float) -> dict[str, Any]:
        """Keep the rows where a column compares so."""
        if frame not in state:
            return {"ok": False, "error": f"no frame {frame}"}
        if by not in COLUMNS:
            return {"ok": False, "error": f"no column {by}; there are {', '.join(COLUMNS)}"}
        if op not in operators:
            return {"ok": False, "error": f"op must be one of {', '.join(operators)}"}
        state.append(f"f{len(state) + 1}")
        return {"ok": True, "frame": state[-1], "columns": COLUMNS, "kept": len(str(value))}

    server = ResourcesServer("frames", tools=[load_table, filter_rows], verify=lambda: 0.0, state=list)
    del server.handlers["GET", "/openapi.json"]
    return server


def _data() -> Dataset:
    """Rows enough that calls are looked for on some of them alone, with words enough that those of replies find no room."""
    [one, _] = rows_of(frames()).rows
    [_, tool] = one.data["responses_create_params"]["tools"]
    tool["parameters"]["properties"]["op"] = {"type": "string", "enum": OPERATORS}
    goods = [[f"{name} {number}" for number in range(16)] for name in ("lamp", "desk", "vase", "rug", "bowl", "jar")]
    rows = tuple(Row({**one.data, "goods": each}, Source(Path("frames.jsonl"), at)) for at, each in enumerate(goods, 1))
    return Dataset(rows, (), len(rows))


@pytest.mark.parametrize("known", [OPERATORS, OPERATORS[:2]])
def test_a_call_is_found_with_names_that_a_reply_lists(known: list[str]) -> None:
    found = found_by("drift-argument-refused", frames(*known), _data())
    assert worst(found) is (Verdict.PASS if known == OPERATORS else Verdict.FAIL), found
