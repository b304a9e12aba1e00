"""Calls that a row's own fields hold are found in whatever words its author has written them."""

from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.scouting.scripted import scripted

_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_TOOLS = [{"type": "function", "name": name, "parameters": _NUMBER} for name in ("add", "take")]
_ADD, _TAKE = Call("add", {"n": 1}), Call("take", {"n": 2})


@pytest.mark.parametrize(
    ("fields", "calls"),
    [
        ({"ground_truth": [{"name": "add", "arguments": '{"n": 1}'}]}, (_ADD,)),
        ({"criteria": {"actions": [{"step": 0, "tool": "add", "args": {"n": 1}}]}}, (_ADD,)),
        ({"hint": {"op": "take", "with": {"n": 2}}}, (_TAKE,)),
        ({"plans": [[{"do": "add", "it": {"n": 1}}], [{"do": "add", "it": {"n": 1}}, {"do": "take", "it": {"n": 2}}]]}, (_ADD, _TAKE)),
        ({"ground_truth": [{"name": "add", "arguments": {"n": "one"}}]}, ()),
        ({"ground_truth": [{"name": "give", "arguments": {"n": 1}}]}, ()),
        ({"ground_truth": [{"name": "add", "arguments": {"n": 1}}, "and so on"]}, (_ADD,)),
        ({"target_tool": "add", "note": "{"}, ()),
        ({}, ()),
    ],
    ids=str,
)  # fmt: skip
def test_calls_are_found(fields: dict[str, Any], calls: tuple[Call, ...]) -> None:
    row = Row({"responses_create_params": {"input": "", "tools": _TOOLS}, **fields}, Source(Path("rows.jsonl"), 1))
    found = scripted(row)
    assert (found.calls if found else ()) == calls
