"""The generator against jsonschema_rs's own validator, keyword by keyword."""

import json
import math
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from gym_schemas import Json, NoValue, minimal
from gym_schemas.making import possible
from gym_schemas.places import places
from gym_schemas.schema_reading import read
from gym_schemas.strategies import near_misses, valid_arguments
from tests.schemas.corpus import KEYWORDS, UNSATISFIABLE, UNSOUND
from tests.schemas.drawing import drawn, made_at_once

every_keyword = pytest.mark.parametrize("schema", KEYWORDS.values(), ids=KEYWORDS)
every_unsound = pytest.mark.parametrize(("schema", "meant"), UNSOUND.values(), ids=UNSOUND)


def validator(schema: Any) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, validate_formats=True)


def numbers_in(value: Json) -> Iterator[int | float]:
    match value:
        case dict():
            for inner in value.values():
                yield from numbers_in(inner)
        case list():
            for inner in value:
                yield from numbers_in(inner)
        case int() | float():
            yield value


@every_keyword
def test_valid_values_are_valid(schema: dict[str, Any]) -> None:
    values = drawn(valid_arguments(schema))
    assert [value for value in values if not validator(schema).is_valid(value)] == []
    for value in values:
        assert json.loads(json.dumps(value, allow_nan=False)) == value
        assert all(math.isfinite(number) for number in numbers_in(value))


@every_keyword
def test_hardly_any_value_needs_the_last_safeguard(schema: dict[str, Any]) -> None:
    """Strategies are right by construction: holding values to the validator only guards against our own mistakes."""
    values = drawn(made_at_once(read(schema)))
    assert sum(not validator(schema).is_valid(value) for value in values) <= 0.02 * len(values)


@every_keyword
def test_near_misses_are_refused(schema: dict[str, Any]) -> None:
    misses = drawn(near_misses(schema))
    assert [miss for miss in misses if validator(schema).is_valid(miss.value)] == []
    assert all(miss.label for miss in misses)


@every_keyword
def test_the_smallest_value_is_valid_and_always_the_same(schema: dict[str, Any]) -> None:
    assert validator(schema).is_valid(minimal(schema))
    assert minimal(schema) == minimal(json.loads(json.dumps(schema)))


@every_keyword
def test_nothing_sound_is_changed_and_no_part_of_it_is_without_a_value(schema: dict[str, Any]) -> None:
    reading = read(schema)
    assert reading.source == schema
    assert [place.path for place in places(reading) if not possible(reading, place.node)] == []


@every_unsound
def test_what_is_not_sound_is_read_as_it_was_meant_and_does_not_stop_the_rest(schema: Any, meant: Any) -> None:
    assert read(schema).source == meant
    assert drawn(valid_arguments(schema), 10)
    if not near_misses(schema).is_empty:
        assert drawn(near_misses(schema), 10)


@pytest.mark.parametrize("schema", UNSATISFIABLE.values(), ids=UNSATISFIABLE)
def test_where_nothing_is_valid_nothing_is_given(schema: Any) -> None:
    assert valid_arguments(schema).is_empty
    assert near_misses(schema).is_empty
    with pytest.raises(NoValue):
        minimal(schema)
