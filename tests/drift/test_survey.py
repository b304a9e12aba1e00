"""Everything of one environment together, and input that nobody meant well."""

import json
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.definitions import Definitions
from gym_conformance.drift.served import ServedTool, mcp_tools, served_tools
from gym_conformance.drift.survey import survey, undeclared_result
from gym_conformance.drift.tool_drift import Drift, DriftKind, Weight
from tests.drift.pairs import INTEGER, STRING, of
from tests.drift.pydantic_app import app

SERVED = served_tools(app.openapi())


def rows(*tools: dict[str, Any]) -> Definitions:
    definitions = Definitions()
    for line, tool in enumerate(tools, start=1):
        definitions.add([{"description": "d", **tool}], Source(Path("rows.jsonl"), line))
    return definitions


def kinds(drifts: tuple[Drift, ...]) -> list[str]:
    return [f"{drift.kind} {drift.tool}" for drift in drifts]


def test_a_missing_tool_with_a_call_of_it() -> None:
    declared = rows({"name": "get_weather", "parameters": of("city", city=STRING)})
    (missing,) = survey(declared, {}, executed=True)
    assert (missing.kind, missing.weight, str(missing.sources[0])) == (
        DriftKind.TOOL_MISSING,
        Weight.BREAKING,
        "rows.jsonl:1",
    )
    assert missing.witness
    assert missing.witness.value == {"city": ""}
    assert survey(declared, {}, executed=False) == ()
    assert survey(declared, None, executed=True) == ()


def test_unused_routes_are_notes() -> None:
    declared = rows({"name": "plain", "parameters": of("city", city=STRING, days=INTEGER)})
    found = survey(declared, SERVED, executed=True)
    assert {drift.kind for drift in found} == {DriftKind.ROUTE_UNUSED}
    assert {drift.tool for drift in found} == SERVED.keys() - {"plain"}


def test_rows_disagree() -> None:
    declared = rows(
        {"name": "a", "parameters": of("x", x=STRING)},
        {"name": "a", "parameters": of("x", x=INTEGER)},
        {"name": "b", "parameters": of(x=STRING | {"description": "one"})},
        {"name": "b", "parameters": of(x=STRING | {"description": "two"})},
        {"name": "c", "parameters": of(x=STRING)},
        {"name": "c", "parameters": of(x=STRING | {"title": "X"})},
    )
    disagree, differ = survey(declared, None, executed=True)
    assert (disagree.kind, disagree.path) == (DriftKind.ROWS_DISAGREE, "/parameters/properties/x/type")
    assert [str(source) for source in disagree.sources] == ["rows.jsonl:1", "rows.jsonl:2"]
    assert (differ.kind, differ.tool) == (DriftKind.DESCRIPTION_DIFFERS, "b")


def test_each_row_may_offer_the_members_of_its_own_task() -> None:
    members = ({"enum": ["AAPL"]}, {"type": "string", "enum": ["MSFT", "IBM"]}, {"const": "IBM"})
    tools = [{"name": "quote", "parameters": of("symbol", symbol=one)} for one in members]
    assert survey(rows(*tools), None, executed=True) == ()
    (disagree,) = survey(
        rows(*tools, {"name": "quote", "parameters": of("symbol", symbol={"enum": [1]})}), None, executed=True
    )
    assert disagree.kind is DriftKind.ROWS_DISAGREE
    (disagree,) = survey(
        rows(*tools, {"name": "quote", "parameters": of("symbol", symbol=STRING)}), None, executed=True
    )
    assert disagree.kind is DriftKind.ROWS_DISAGREE


def test_each_row_may_set_the_bounds_of_its_own_task() -> None:
    tools = [
        {"name": "reveal", "parameters": of("row", row=INTEGER | {"minimum": 0, "maximum": rows_of_the_board})}
        for rows_of_the_board in (5, 8, 29.5)
    ]
    assert survey(rows(*tools), None, executed=True) == ()
    unbounded = {"name": "reveal", "parameters": of("row", row=INTEGER | {"minimum": 0})}
    (disagree,) = survey(rows(*tools, unbounded), None, executed=True)
    assert (disagree.kind, disagree.path) == (DriftKind.ROWS_DISAGREE, "/parameters/properties/row/maximum")


def test_breaking_comes_first() -> None:
    declared = rows({"name": "plain", "parameters": of("z", "city", city=INTEGER)}, {"name": "gone"})
    weights = [drift.weight for drift in survey(declared, SERVED, executed=True)]
    assert weights == sorted(weights, key=list(Weight).index)


def test_a_reply_unlike_its_declaration() -> None:
    assert undeclared_result(SERVED["plain"], {"output": 1}) is None
    drift = undeclared_result(SERVED["plain"], {"result": 1})
    assert drift
    assert "output is required" in drift.message
    assert undeclared_result(ServedTool("a"), 1) is None


def test_mcp() -> None:
    tools = mcp_tools([{"name": "a", "description": "e", "inputSchema": of("x", x=INTEGER)}, {"x": 1}, None])
    found = survey(rows({"name": "a", "parameters": of("x", x=STRING)}), tools, executed=True)
    assert kinds(found) == ["argument-refused a", "description-differs a"]
    assert mcp_tools(None) == {}


def test_every_drift_can_be_told_apart_and_hashed_by_its_json() -> None:
    declared = rows({"name": "plain", "parameters": of("z", "city", city=INTEGER)})
    for drift in survey(declared, SERVED, executed=True):
        assert json.dumps([drift.message, drift.definition, drift.served, drift.witness and drift.witness.value])


@pytest.mark.parametrize(
    "hostile",
    [
        of(a={"type": "string", "pattern": "(a+)+$"}),
        of(a={"type": "string", "pattern": "(?=a)(?<x>b)\\k<x>"}),
        of(a={"type": "string", "minLength": 10**12}),
        of(a={"type": "array", "items": STRING, "minItems": 10**9}),
        of(a={"type": "object", "minProperties": 10**9}),
        of(a={"type": "integer", "minimum": 10**400}),
        of(a={"type": "number", "multipleOf": 1e-300}),
        of(a={"type": "number", "minimum": float("inf")}),
        of(a={"type": "number", "multipleOf": 0}),
        of(a={"type": "string", "minLength": 1.5}),
        of(a={"enum": [[i] for i in range(5_000)]}),
        of(**{f"argument{number}": STRING for number in range(300)}),
        of(a={"$ref": "#"}),
        of(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, STRING]}}},
        of(a={"allOf": [{"anyOf": [{"required": [f"{i}{j}"]} for i in range(9)]} for j in range(9)]}),
        of(**{"<script>\x1b[31m\u202e": STRING, "": STRING, "/~": STRING}),
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        of(a={"not": {}}),
        of(a={"type": []}),
        {"type": ["object", "null"], "properties": {"a": True}},
    ],
)
def test_hostile_definitions_are_answered(hostile: dict[str, Any]) -> None:
    """An answer within the time that a test has, and no exception, whichever side it stands on."""
    served = {"a": ServedTool("a", request=hostile, route="/a"), "b": SERVED["plain"]}
    survey(
        rows({"name": "a", "parameters": of("a", a=STRING)}, {"name": "b", "parameters": hostile}),
        served,
        executed=True,
    )


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"paths": []},
        {"paths": {"/a": {"post": None}}},
        {"paths": {"/a": {"post": {"requestBody": 1, "responses": [], "parameters": [None]}}}},
        {"paths": {"/a": {"post": {"requestBody": {"content": {"application/json": {"schema": 5}}}}}}},
        {"paths": {"/a": {"post": {"requestBody": {"content": {"application/json": None}}}}}, "components": 1},
    ],
)
def test_documents_that_are_none(document: Any) -> None:
    survey(rows({"name": "a", "parameters": of("a", a=STRING)}), served_tools(document), executed=True)
