"""Rows, the tools they show, and recorded rollouts."""

from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Call, Rollout, Row, Source, Tool
from gym_conformance.contract.endpoints import tool_path

HERE = Source(Path("data/example.jsonl"), 3)


def row(given: Any = "Hello.", **params: Any) -> Row:
    return Row({"responses_create_params": {"input": given, **params}}, HERE)


def rollout(given: Any = "Hello.", output: Any = ()) -> Rollout:
    data = {"responses_create_params": {"input": given}, "response": {"output": output}, "reward": 1.0}
    return Rollout(data, HERE)


def test_a_source_names_file_and_line() -> None:
    assert str(row()) == "example.jsonl:3"
    assert str(Source(Path(), 0)) == "made-up row"


@pytest.mark.parametrize(
    ("entry", "tool"),
    [
        (
            {"type": "function", "name": "a", "parameters": {"x": 1}, "strict": True},
            Tool("a", {"type": "object", "x": 1}, strict=True),
        ),
        (
            {"type": "function", "function": {"name": "a", "parameters": {"x": 1}}},
            Tool("a", {"type": "object", "x": 1}),
        ),
        ({"name": "a"}, Tool("a", {"type": "object"})),
        ({"type": "function", "name": "a", "parameters": None}, Tool("a", {"type": "object"})),
        ({"type": "web_search"}, None),
        ("a", None),
        (None, None),
    ],
)
def test_tools_are_read_flat_or_nested(entry: Any, tool: Tool | None) -> None:
    assert row(tools=[entry]).tools == ((tool,) if tool else ())


def test_a_row_without_tools_has_none() -> None:
    assert row().tools == row(tools=None).tools == ()


def test_a_tool_is_called_by_its_name_and_so_is_its_path() -> None:
    assert str(Tool("add", {"long": "schema"})) == "add"
    paths = {"add": "/add", "functions.no such": "/functions.no%20such", "a?b#c": "/a%3Fb%23c", "\ud800": "/%ED%A0%80"}
    assert {name: tool_path(name) for name in paths} == paths


def test_rows_of_one_shape_differ_in_values_only() -> None:
    assert row("a").shape() == row("b").shape()
    assert row("a").shape() != row(["a"]).shape()
    assert row("a").shape() != row("a", tools=[{"name": "t"}]).shape()
    assert row(tools=[{"name": "t"}]).shape() != row(tools=[{"name": "u"}]).shape()


CALL = {"type": "function_call", "name": "add", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    ("output", "calls"),
    [
        ([CALL], [Call("add", {"a": 1})]),
        (
            [
                CALL | {"arguments": "{"},
                CALL | {"arguments": "[1]"},
                CALL | {"arguments": None},
                {"type": "function_call"},
            ],
            [],
        ),
        ([None, "text", {"type": "message"}, CALL], [Call("add", {"a": 1})]),
        ("no list", []),
        (None, []),
    ],
)
def test_only_whole_calls_are_read(output: Any, calls: list[Call]) -> None:
    assert list(rollout(output=output).calls) == calls


@pytest.mark.parametrize(
    "spelling",
    [
        [{"role": "user", "content": "Hello."}],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}],
        [{"role": "user", "content": [{"text": "Hel"}, {"text": "lo."}]}],
        "Hello.",
    ],
)
def test_a_rollout_belongs_to_the_row_with_its_input_however_spelt(spelling: Any) -> None:
    assert rollout(spelling).belongs_to(row("Hello."))
    assert not rollout(spelling).belongs_to(row("Goodbye."))


def test_nulls_that_a_server_s_model_has_added_say_nothing_of_another_row() -> None:
    checks = [{"kind": "booked", "slot": "MON-9"}]
    read = Rollout({**rollout().data, "checks": [{**checks[0], "note": None}]}, HERE)
    assert read.belongs_to(Row({**row().data, "checks": checks}, HERE))
    assert not read.belongs_to(Row({**row().data, "checks": [{**checks[0], "note": "late"}]}, HERE))


def test_defaults_that_a_server_s_model_has_added_say_nothing_of_another_row() -> None:
    """The row that has what was added, too, is still the likelier one."""
    rows = [Row({**row().data, "sellers": [{"name": "Ana"} | more]}, HERE) for more in ({}, {"patience": 3})]
    assert Rollout({**rollout().data, "sellers": [{"name": "Ana", "patience": 3}]}, HERE).rows_of(rows) == rows[1:]
    assert Rollout({**rollout().data, "sellers": [{"name": "Ana", "mood": 1}]}, HERE).rows_of(rows) == rows[:1]
    assert Rollout({**rollout().data, "sellers": [{"name": "Bo", "mood": 1}]}, HERE).rows_of(rows) == []


def test_a_rollout_is_of_the_row_whose_fields_it_keeps() -> None:
    """All rows of a game have one prompt; where nothing is kept of what tells them apart, nobody knows whose it is."""
    rows = [Row({**row().data, **own}, HERE) for own in ({"word": "crane"}, {"day": 3})]
    assert Rollout({**rollout().data, "word": "crane"}, HERE).rows_of(rows) == rows[:1]
    assert rollout().rows_of(rows) == []
    assert rollout().rows_of(rows[:1]) == rows[:1]
    assert rollout().rows_of([row(), row(), row("Goodbye.")]) != [], "rows that are alike have each other's rollouts"
