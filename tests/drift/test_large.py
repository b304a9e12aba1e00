"""Schemas too large to compare are said to be, the rest is compared as usual, and neither takes long."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.argument_places import Places
from gym_conformance.drift.definitions import Definitions
from gym_conformance.drift.served import served_tools
from gym_conformance.drift.survey import survey
from gym_conformance.drift.tool_drift import Certainty, Drift, DriftKind
from tests.drift.pairs import INTEGER, STRING, of

SECONDS = 40.0
PLAIN = of("a", a=STRING)
WIDE = of(**{f"x{number}": STRING for number in range(130_000)})


def chain(links: int, **node: Any) -> dict[str, Any]:
    """Definitions that each refer twice to the one below."""
    found: dict[str, Any] = {"n0": INTEGER}
    for number in range(links):
        below = {"$ref": f"#/$defs/n{number}"}
        found[f"n{number + 1}"] = {"oneOf": [below, {"not": below}], **node}
    return found


CHAIN = of(a={"$ref": "#/$defs/n24"}) | {"$defs": chain(24)}


def deep(levels: int) -> Any:
    return {"items": deep(levels - 1)} if levels else {}


def document(schemas: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document with a tool for each schema, by name; `$defs` become components."""
    shared = {name: one for schema in schemas.values() for name, one in schema.get("$defs", {}).items()}
    text = {
        "paths": {
            f"/{name}": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}
            for name, schema in schemas.items()
        },
        "components": {"schemas": shared},
    }
    return json.loads(json.dumps(text).replace("#/$defs/", "#/components/schemas/"))  # type: ignore[no-any-return]


def compared(definition: dict[str, Any], schemas: dict[str, Any]) -> list[Drift]:
    """The drift of tool `a`, and that of a plain tool `b` beside it, which is found whatever `a` is like."""
    declared = Definitions()
    for name, schema in {"a": definition, "b": of("b", b=STRING)}.items():
        tool = {"type": "function", "name": name, "description": "It does.", "parameters": schema}
        declared.add([tool], Source(Path("rows.jsonl"), 1))
    started = time.process_time()
    found = survey(declared, served_tools(document({**schemas, "b": of("b", b=INTEGER)})), executed=True)
    assert time.process_time() - started < SECONDS
    assert [drift.path for drift in found if drift.tool == "b"] == ["/b"]
    return [drift for drift in found if drift.tool == "a"]


@pytest.mark.parametrize(
    ("definition", "served", "why"),
    [
        (CHAIN, PLAIN, "the definition is too large to compare: its references stand for more than 20,000 parts"),
        (PLAIN, CHAIN, "the server's schema is too large to compare: its references stand for more than 20,000 parts"),
        (WIDE, PLAIN, "the definition is too large to compare: it has more than 5,000 parts"),
        (PLAIN, WIDE, "the server's schema is too large to compare: it has more than 5,000 parts"),
        (PLAIN, of(a=deep(300)), "the server's schema is too large to compare: it is nested more than 60 levels deep"),
    ],
    ids=["references", "references-served", "wide", "wide-served", "deep-served"],
)
def test_too_large_to_compare(definition: Any, served: Any, why: str) -> None:
    (drift,) = compared(definition, {"a": served})
    assert (drift.kind, drift.certainty, drift.message) == (
        DriftKind.ARGUMENT_REFUSED,
        Certainty.UNKNOWN,
        f"a: {why}",
    )


def test_ten_thousand_routes_that_share_a_component() -> None:
    shared = {"$ref": "#/$defs/many"}
    schemas: dict[str, Any] = {f"tool{number}": shared for number in range(10_000)}
    many = {"$defs": {"many": of(**{f"x{number}": STRING for number in range(300)})}}
    assert compared(PLAIN, {**schemas, "last": shared | many, "a": PLAIN}) == []


def test_many_cases_are_compared_without_being_written_out() -> None:
    """9 to the power of 9 cases: the canonical form is not asked for."""
    many = {"allOf": [{"anyOf": [{"required": [f"{i}{j}"]} for i in range(9)]} for j in range(9)]}
    assert compared(of("a", a=many), {"a": of("a", a=STRING)})


def test_hundreds_of_dependencies_are_compared_without_being_written_out() -> None:
    many = {"type": "object", "dependentRequired": {f"a{i}": [f"b{i}", f"c{i}"] for i in range(250)}}
    assert not compared(of("a", a=many), {"a": of("a", a={"type": "object"})})


def test_hundreds_of_required_arguments_that_the_server_does_not_have() -> None:
    names = [f"x{number}" for number in range(250)]
    found = compared(of(*names, **dict.fromkeys(names, STRING)), {"a": of("a", a=STRING)})
    assert {f"/{name}" for name in names} <= {drift.path for drift in found}


@pytest.mark.parametrize("served", [{"enum": [*range(10_000)]}, {"not": {"enum": [*range(500, 1_500)]}}])
def test_thousands_of_numbers_in_one_enum(served: dict[str, Any]) -> None:
    """What a canonical form costs grows with their square, or their cube: 30 s for 10,000 against a range."""
    within = {"type": "integer", "minimum": 0, "maximum": 100}
    found = compared(of("a", a=within), {"a": of("a", a=served)})
    assert not [drift for drift in found if drift.certainty is Certainty.SHOWN]


def test_thousands_of_excluded_values_that_are_excluded_once_more() -> None:
    """The canonical form of 500 takes nine seconds, in one step that nothing ends."""
    many = {"type": "object", "properties": {"b": {"not": {"enum": [*range(5_000)]}}}, "required": ["c"]}
    assert compared(of("a", a={"oneOf": [many, {}]}), {"a": of("a", a=STRING)})


def test_a_schema_that_combines_itself_is_gone_through_once() -> None:
    again = {"$ref": "#/$defs/again"}
    itself = {"anyOf": [again, {"allOf": [again]}], "properties": {"next": again}}
    places = Places({"$ref": "#/$defs/again", "$defs": {"again": itself}})
    assert places.names_all(("next",) * 50)
    assert places.at(("next",) * 50) == itself
