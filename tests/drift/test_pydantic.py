"""Definitions against real FastAPI: what several versions write, and what the installed one really does.

Every claim that is shown is tried: a refused witness is refused with 422, an ignored argument changes no reply.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from gym_conformance.drift.compare import compare
from gym_conformance.drift.definitions import read_definition
from gym_conformance.drift.served import ServedTool, served_tools
from gym_conformance.drift.tool_drift import Drift, DriftKind
from tests.drift.pairs import BOOLEAN, INTEGER, NULL, NUMBER, STRING, Schema, either, many, of
from tests.drift.pydantic_app import app

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
INSTALLED = app.openapi()

INNER = of("sku", sku=STRING, quantity={"type": "integer", "minimum": 1})
TREE = {
    **of("value", value=INTEGER, children=many({"$ref": "#/$defs/T"})),
    "$defs": {"T": of("value", value=INTEGER, children=many({"$ref": "#/$defs/T"}))},
}
CAT = of("kind", "lives", kind={"const": "cat"}, lives=INTEGER)

#: (route, definition, answers); notes that only say "null too" are part of the answers.
CASES: list[tuple[str, Schema, set[str]]] = [
    ("plain", of("city", city=STRING, days=INTEGER), set()),
    ("plain", of("city", city=STRING, days=NUMBER), {"argument-refused /days"}),
    ("plain", of("city", city=STRING, units=STRING), {"argument-ignored /units", "argument-unoffered /days"}),
    ("plain", of("city", city=STRING, days=STRING), {"argument-refused /days"}),
    ("plain", of("city", city=either(STRING, NULL), days=INTEGER), {"argument-refused /city"}),
    (
        "nullable",
        of(note=STRING, limit={"type": "integer", "minimum": 1, "maximum": 10}),
        {"argument-widened /note", "argument-widened /limit"},
    ),
    ("nullable", of(note=either(STRING, NULL), limit=either(INTEGER, NULL)), {"argument-refused /limit"}),
    ("enums", of("level", level={"enum": [1, 2]}, color={"enum": ["red", "green"]}, unit={"enum": ["c", "f"]}), set()),
    (
        "enums",
        of("level", level={"enum": [1, 2, 3]}, color=STRING, unit={"enum": ["c", "k"]}),
        {"argument-refused /level", "argument-refused /color", "argument-refused /unit"},
    ),
    (
        "bounds",
        of("x", "n", "s", "p", x=NUMBER, n=INTEGER, s=STRING, p=STRING),
        {f"argument-refused /{name}" for name in "xnsp"},
    ),
    (
        "bounds",
        of(
            *("x", "n", "s", "p"),
            x={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            n={"type": "integer", "minimum": 10, "multipleOf": 10, "maximum": 100},
            s={"type": "string", "minLength": 2, "maxLength": 3},
            p={"type": "string", "pattern": "^[a-z]+$"},
        ),
        {"argument-widened /n", "argument-widened /s"},
    ),
    (
        "formats",
        of("day", "at", "id", day=STRING, at=STRING, id=STRING),
        {"argument-refused /day", "argument-refused /at", "argument-refused /id"},
    ),
    (
        "formats",
        of(
            *("day", "at", "id"),
            day={"type": "string", "format": "date"},
            at={"type": "string", "format": "date-time"},
            id={"type": "string", "format": "uuid"},
        ),
        set(),
    ),
    (
        "nested",
        of("item", item=INNER, more=many(INNER), by_name={"type": "object", "additionalProperties": INNER}),
        set(),
    ),
    (
        "nested",
        of("item", item=of("sku", sku=STRING, quantity=INTEGER), more=many(of("sku", sku=STRING, color=STRING))),
        {
            "argument-refused /item/quantity",
            "argument-ignored /more/*/color",
            "argument-unoffered /more/*/quantity",
            "argument-unoffered /by_name",
        },
    ),
    ("tree", TREE, set()),
    ("tree", of("value", value=INTEGER, children=many({"type": "object"})), {"argument-refused /children/*/value"}),
    (
        "union",
        of("who", who=INNER, target=STRING),
        {
            "argument-widened /target",
            "argument-widened /who/sku",
            "argument-unoffered /who/city",
            "argument-unoffered /who/days",
        },
    ),
    (
        "union",
        of("who", who=of("name", name=STRING), target=BOOLEAN),
        {
            "argument-refused /who",
            "?argument-refused /target",
            *(f"argument-unoffered /who/{name}" for name in ("sku", "quantity", "city", "days")),
        },
    ),
    ("tagged", of("pet", pet=either(CAT, of("kind", "name", kind={"const": "dog"}, name=STRING))), set()),
    ("tagged", of("pet", pet=either(CAT, of("kind", kind={"const": "fish"}))), {"argument-refused /pet"}),
    ("forbid", of("a", a=STRING, b=STRING), {"argument-refused /b", "unnamed-argument-refused "}),
    ("allow", of("a", a=STRING, b=STRING), set()),
    (
        "sets",
        of(
            "pair",
            pair={"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
            few=many(STRING),
            tags=many(STRING),
        ),
        {"argument-refused /few", "?argument-refused /tags"},
    ),
    ("flags", of("on", on=BOOLEAN, ratio=NUMBER), set()),
    (
        "flags",
        of("on", on={"enum": ["yes", "no"]}, ratio={"type": "string", "pattern": "^[0-9]$"}),
        {"?argument-refused /on", "?argument-refused /ratio"},
    ),
    ("flags", of("on", on={"enum": ["yes", "maybe"]}), {"argument-refused /on", "argument-unoffered /ratio"}),
    ("empty", of(), set()),
    ("empty", of("a", a=STRING), {"argument-ignored /a"}),
    ("alias", of("from", **{"from": STRING}), set()),
    ("alias", of("from_", from_=STRING), {"argument-refused /from", "argument-ignored /from_"}),
    (
        "embedded",
        of("city", city=STRING, days=INTEGER),
        {"argument-refused /a", "argument-ignored /city", "argument-ignored /days"},
    ),
    ("embedded", of("a", a=of("city", city=STRING, days=INTEGER)), set()),
    ("two_bodies", of("a", "b", a=of("city", city=STRING, days=INTEGER), b=INTEGER), set()),
    ("optional_body", of("city", city=STRING, days=INTEGER), set()),
    ("free", of("a", a=STRING), set()),
    ("anything", of("a", a=STRING), set()),
    ("no_body", of("a", a=STRING), {"?argument-ignored /a"}),
    ("nothing_read", of("a", a=STRING), {"?argument-ignored /a"}),
    ("nothing_read", of(), set()),
    ("query", of("a", a=INTEGER), {"argument-refused /a"}),
    ("listed", of("a", a=INTEGER), {"argument-refused "}),
]


def compared(tool: str, definition: Schema, served: ServedTool) -> list[Drift]:
    one = read_definition({"name": tool, "parameters": definition})
    assert one is not None
    return [drift for drift in compare(one, served) if drift.kind is not DriftKind.DESCRIPTION_DIFFERS]


@pytest.mark.parametrize("corpus", CORPUS, ids=[path.stem for path in CORPUS])
@pytest.mark.parametrize(("tool", "definition", "expected"), CASES)
def test_every_version_says_the_same(corpus: Path, tool: str, definition: Schema, expected: set[str]) -> None:
    served = served_tools(json.loads(corpus.read_text()))
    found = compared(tool, definition, served[tool])
    assert {f"{'' if drift.shown else '?'}{drift.kind} {drift.path}" for drift in found} == expected


@pytest.mark.parametrize(("tool", "definition", "expected"), CASES)
def test_what_is_shown_is_so(tool: str, definition: Schema, expected: set[str]) -> None:
    found = compared(tool, definition, served_tools(INSTALLED)[tool])
    assert {drift.path for drift in found if drift.shown} == {
        path.partition(" ")[2] for path in expected if path[0] != "?"
    }
    for drift in found:
        if drift.shown:
            asyncio.run(try_it(tool, drift))


async def try_it(tool: str, drift: Drift) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:

        async def sent(value: Any) -> httpx.Response:
            return await client.post(f"/{tool}", json=value)

        assert drift.witness
        reply = await sent(drift.witness.value)
        match drift.kind:
            case DriftKind.ARGUMENT_REFUSED | DriftKind.UNNAMED_REFUSED:
                assert reply.status_code == 422
                if drift.counterpart:
                    assert (await sent(drift.counterpart.value)).status_code == 200
            case DriftKind.ARGUMENT_IGNORED:
                if drift.counterpart:
                    assert (await sent(drift.counterpart.value)).json() == reply.json()
            case _:
                assert reply.status_code == 200


def test_framework_routes_are_no_tools() -> None:
    tools = served_tools(INSTALLED)
    assert not tools.keys() & {"seed_session", "verify"}
    assert tools["no_body"].request is None
    assert tools["query"].elsewhere == (("a", "query"),)
    assert tools["plain"].response is not None
