"""Reading rows with tools that came before gives what parsing gives."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.definitions import Definitions
from gym_conformance.drift.repeats import IN_VAIN, Repeats

A = {"type": "function", "name": "a", "parameters": {"type": "object", "properties": {"é": {"const": 1.5}}}}
B = {"type": "function", "name": "b"}


def row(tools: Any, **more: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": [], "tools": tools}, **more}


def read(lines: list[bytes]) -> tuple[list[Any], dict[str, int]]:
    definitions = Definitions()
    repeats = Repeats(definitions, from_json)
    rows = [repeats.read(line, Source(Path("rows.jsonl"), number)) for number, line in enumerate(lines, start=1)]
    return rows, {one.name: one.count for one in definitions}


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([row([A])] * 5, {"a": 5}),
        ([row([A]), row([B]), row([A, B]), row([A]), row([B])], {"a": 3, "b": 3}),
        ([row([A]), {"tools": [A], **row([B])}, row([A])], {"a": 2, "b": 1}),
        ([row([A]), {"other": {"tools": [A]}, "responses_create_params": {}}], {"a": 1}),
        ([row([A]), row([A], text='"tools": [' + json.dumps(A))], {"a": 2}),
        ([row([A]), row("tools"), row(None), row([A])], {"a": 2}),
        ([row([A]), 1, [row([A])], {"responses_create_params": [1]}, row([A])], {"a": 2}),
        (
            [row([{**B, "name": f"b{number}"}]) for number in range(3 * IN_VAIN)],
            dict.fromkeys((f"b{n}" for n in range(3 * IN_VAIN)), 1),
        ),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (",\t", " :  ")])
def test_as_parsed(rows: list[Any], counts: dict[str, int], separators: tuple[str, str]) -> None:
    lines = [json.dumps(one, separators=separators).encode() for one in rows]
    assert read(lines) == (rows, counts)


def test_a_list_that_begins_alike_is_another() -> None:
    lines = [json.dumps(row(tools)).encode() for tools in ([A], [A, B], [A])]
    assert read(lines)[1] == {"a": 3, "b": 1}


def test_the_last_of_two_equal_keys_counts() -> None:
    tools = json.dumps([A])
    twice = f'{{"responses_create_params": {{"tools": {tools}, "tools": []}}}}'.encode()
    rows, counts = read([json.dumps(row([A])).encode(), twice])
    assert (rows[1]["responses_create_params"]["tools"], counts) == ([], {"a": 1})


def test_broken_lines_raise_as_the_parser_does() -> None:
    line = json.dumps(row([A])).encode()
    with pytest.raises(ValueError, match="EOF"):
        read([line, line[:-1]])
