"""Every dialect becomes JSON Schema 2020-12, with the same meaning and with parts that stand alone."""

from typing import Any

import jsonschema_rs
import pytest

from gym_schemas import Acceptance, Document, too_large, upgrade, walk
from tests.schemas.corpus import KEYWORDS

VALUES: list[Any] = [
    *(None, True, 0, 1, 3, -1, 0.5, "", "a", "b", "2024-01-01", [], [1], ["a", 1], ["a"], {}, {"a": 1}, {"a": "x"}),
    *({"a": "x", "b": "y"}, {"city": "x", "count": 1}, {"id": "1"}, {"id": 1}, {"v": 1, "next": {"v": 2}}),
    *({"name": "x", "kids": [{"name": "y", "kids": []}]}, {"name": "x", "kids": [{}]}, {"card": "x"}),
]


@pytest.mark.parametrize("schema", KEYWORDS.values(), ids=KEYWORDS)
def test_an_upgraded_schema_admits_the_same(schema: dict[str, Any]) -> None:
    before, after = jsonschema_rs.validator_for(schema, validate_formats=True), Acceptance(upgrade(schema))
    assert [value for value in VALUES if before.is_valid(value) is not after.accepts(value)] == []


@pytest.mark.parametrize("schema", KEYWORDS.values(), ids=KEYWORDS)
def test_any_part_can_stand_alone(schema: dict[str, Any]) -> None:
    document = Document(upgrade(schema))
    for part in (document.root, *document.defs.values()):
        for _, node in walk(part):
            Acceptance(document.alone(node))


def test_a_part_alone_takes_along_only_what_it_needs() -> None:
    defs = {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"}, "c": {"$ref": "#/$defs/a"}}
    assert Document({"$defs": defs}).alone({"$ref": "#/$defs/a"})["$defs"] == {"a": defs["a"], "b": defs["b"]}


def _chain(links: int) -> dict[str, Any]:
    """References to references: 2 ** links parts once they are followed."""
    defs: dict[str, Any] = {"n0": {"type": "integer"}}
    for number in range(links):
        below = {"$ref": f"#/$defs/n{number}"}
        defs[f"n{number + 1}"] = {"oneOf": [below, {"not": below}]}
    return {"$ref": f"#/$defs/n{links}", "$defs": defs}


def _deep(levels: int) -> dict[str, Any]:
    return {"items": _deep(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (_chain(3), ""),
        (_chain(24), "its references stand for more than 20,000 parts"),
        (_deep(100), "it is nested more than 60 levels deep"),
        ({"properties": {str(number): {} for number in range(130_000)}}, "it has more than 5,000 parts"),
        ({"enum": [{"a": [number]} for number in range(10_000)]}, "it has more than 20,000 objects and arrays"),
        ({"enum": [*range(100_000)]}, "it has more than 100,000 values"),
        ({"properties": {"a": {"pattern": "x|" * 10_001}}}, "its patterns have more than 20,000 characters"),
        ({"patternProperties": {"x|" * 10_001: {}}}, "its patterns have more than 20,000 characters"),
        (KEYWORDS["recursion"], ""),
        (KEYWORDS["recursion to the root"], ""),
    ],
)
def test_what_is_too_large_is_said_to_be(schema: Any, why: str) -> None:
    assert too_large(upgrade(schema)) == why


MALFORMED: dict[str, list[Any]] = {
    "properties": [[1], "a", {"a": 5}],
    "required": ["a", True, [1]],
    "type": [7, ["object", 7], [{}]],
    "anyOf": [{}, ["a"]],
    "dependentRequired": [5, [1], {"a": 5}],
    **{name: ["x"] for name in ("items", "additionalProperties", "enum", "minimum", "maxLength", "$defs")},
    **{name: [3] for name in ("pattern", "$ref", "format", "not")},
}


@pytest.mark.parametrize(("keyword", "value"), [(name, one) for name, values in MALFORMED.items() for one in values])
def test_a_keyword_whose_value_has_no_form_says_nothing(keyword: str, value: Any) -> None:
    """Whoever reads an upgraded schema may rely on its forms; that a row's own is malformed is told elsewhere."""
    assert upgrade({"title": "T", keyword: value}) == {"title": "T"}
    assert upgrade({"items": {keyword: value}}) == {"items": {}}
