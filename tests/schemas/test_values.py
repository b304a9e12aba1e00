"""What a reader of a finding sees: simple values, labels, and the known good values mixed in."""

import json
import time
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import find, settings

from gym_schemas import NoValue, boundary_values, making, minimal
from gym_schemas.choices import Simplest
from gym_schemas.hostile import hostile_arguments
from gym_schemas.schema_reading import read
from gym_schemas.strategies import near_misses, valid_arguments
from tests.schemas.corpus import KEYWORDS, NODE, TEXT, WHOLE, properties
from tests.schemas.drawing import drawn

CITY: dict[str, Any] = {
    **properties("city", city=TEXT, count={"type": "integer", "minimum": 0}, unit={"enum": ["kelvin", "celsius"]}),
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "smallest"),
    [
        (CITY, {"city": ""}),
        (properties("unit", unit={"enum": ["kelvin", "c"]}), {"unit": "kelvin"}),
        (
            properties("a", "b", a={"type": "array", "items": WHOLE}, b={"type": "number", "minimum": 2.5}),
            {"a": [], "b": 3},
        ),
        ({"$defs": {"node": NODE}, "$ref": "#/$defs/node"}, {"v": 0}),
        (properties("day", day={"type": "string", "format": "date"}), {"day": "2000-01-01"}),
        (properties("flag", flag={"type": "boolean"}), {"flag": False}),
        ({"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}, "AA-000"),
    ],
)
def test_the_smallest_value(schema: Any, smallest: Any) -> None:
    assert minimal(schema) == smallest


def test_a_route_over_all_places_is_counted_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not from the first place on for each of its items: a comparison of two such definitions took a minute."""
    counted = Mock(side_effect=Simplest)
    monkeypatch.setattr(making, "Simplest", counted)
    places = {"type": "integer", "minimum": 0, "maximum": 49}
    route = {"type": "array", "uniqueItems": True, "minItems": 50, "items": places}
    assert minimal(properties("route", route=route)) == {"route": [*range(50)]}
    assert counted.call_count < 2 * 50


def test_there_may_be_no_smallest_value() -> None:
    with pytest.raises(NoValue):
        minimal({"enum": []})


def test_a_schema_of_which_no_value_is_found_has_none_to_draw() -> None:
    """Its canonical form, which is laxer, has: it was drawn from, and drawing failed in the middle of a run."""
    one_of = [{"oneOf": [properties(f"a{at}", **{f"a{at}": {"const": one}}) for one in range(4)]} for at in range(6)]
    schema = {"type": "object", "allOf": one_of}
    assert valid_arguments(schema).is_empty
    assert valid_arguments(schema, {"a0": [0]}).is_empty
    assert near_misses(schema).is_empty


def test_lists_in_lists_that_would_be_too_heavy_are_not_made() -> None:
    """Each try made a thousand lists of a thousand before it was given up, and none remembered it within a circle."""
    inner: dict[str, Any] = {"pattern": "b"}
    for _ in range(3):
        inner = {"type": "array", "contains": inner, "minContains": 1_000}
    schema = properties("title", "more", title=inner, more={"type": "array", "prefixItems": [{"$ref": "#"}]})
    began = time.process_time()
    assert valid_arguments(schema).is_empty
    assert list(boundary_values(schema)) == []
    assert time.process_time() - began < 20


def test_the_smallest_value_is_new_each_time() -> None:
    minimal(CITY)["city"] = "changed"
    assert minimal(CITY) == {"city": ""}


@pytest.mark.parametrize(
    "name", ["required", "enum", "nested", "oneOf, tagged", "recursion", "multipleOf", "prefixItems"]
)
def test_hypothesis_shrinks_to_the_smallest_value(name: str) -> None:
    once = settings(max_examples=50, derandomize=True, database=None, deadline=None)
    shrunk = find(valid_arguments(KEYWORDS[name]), lambda _: True, settings=once)
    assert len(json.dumps(shrunk)) <= len(json.dumps(minimal(KEYWORDS[name])))


def test_near_misses_say_what_is_wrong() -> None:
    labels = {miss.label for miss in drawn(near_misses(CITY), 400)}
    assert labels >= {
        "missing required city",
        "extra argument extra",
        "city: 3 is not a string",
        "count: -1 is below minimum 0",
        'count: "" is not an integer',
        'unit: "KELVIN" is not one of ["kelvin", "celsius"]',
        "[] is not an object",
    }


def test_a_near_miss_differs_from_valid_arguments_at_one_property() -> None:
    for miss in drawn(near_misses(CITY), 200):
        if isinstance(miss.value, dict) and ":" in miss.label:
            wrong = miss.label.partition(":")[0]
            rest = {**minimal(CITY), **{name: value for name, value in miss.value.items() if name != wrong}}
            assert read(CITY).admits(rest)


def test_every_keyword_that_can_be_violated_is() -> None:
    keywords = {miss.keyword for miss in drawn(near_misses(CITY), 200)}
    assert keywords == {"type", "required", "additionalProperties", "minimum", "enum"}


def test_only_declared_arguments_are_given() -> None:
    """A tool whose schema forgot `additionalProperties: false` is not called with arguments that it never named."""
    schema = properties("city", city=TEXT, note={"description": "anything"})
    assert {name for value in drawn(valid_arguments(schema)) for name in value} == {"city", "note"}
    assert drawn(valid_arguments({"type": "object", "properties": {}})) == [{}]


def test_mined_values_are_mixed_in_wherever_the_schema_admits_them() -> None:
    schema = properties("id", "items", id=TEXT, items={"type": "array", "items": properties("id", id=TEXT)})
    values = drawn(valid_arguments(schema, {"id": ["note_7", 8], "unknown": [1]}), 200)
    outer = [value["id"] for value in values]
    assert 100 < outer.count("note_7") < 200
    assert 8 not in outer
    assert any(item["id"] == "note_7" for value in values for item in value["items"])


def test_mined_values_are_not_shared_between_examples() -> None:
    known = {"tags": [["a"]]}
    schema = properties("tags", tags={"type": "array", "items": TEXT})
    for value in drawn(valid_arguments(schema, known)):
        value["tags"].append("spoilt")
    assert known == {"tags": [["a"]]}


def test_hostile_values_can_be_sent_and_are_labelled() -> None:
    found = drawn(hostile_arguments(CITY), 400)
    for one in found:
        json.dumps(one.value, allow_nan=False)
    kinds = {one.label.partition(": ")[2] for one in found}
    assert {"a lone surrogate", "NUL", "past 64 bits", "200 levels of arrays", "70000 characters"} <= kinds
    assert any(one.label.startswith("a property named") for one in found)


def test_a_schema_read_twice_gives_the_same_values() -> None:
    copy = json.loads(json.dumps(CITY))
    assert drawn(valid_arguments(CITY)) == drawn(valid_arguments(copy))
    assert valid_arguments(CITY) is valid_arguments(copy)


def test_an_optional_property_that_cannot_be_made_is_left_out() -> None:
    schema = properties("a", a=WHOLE, odd={"type": "string", "pattern": "\\p{Greek}"})
    assert all(set(value) == {"a"} for value in drawn(valid_arguments(schema)))
