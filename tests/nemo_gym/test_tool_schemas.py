"""The generator against every tool schema that nemo-gym's bundled servers declare, in every row of every data file.

To run it over the data of another release, unpack its wheel and name the folder that holds `resources_servers`:

    NEMO_GYM_BUNDLE=FOLDER pytest tests/nemo_gym/test_tool_schemas.py
"""

import functools
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gym_schemas import minimal, pointer, walk
from gym_schemas.mending import sound
from gym_schemas.schema_reading import read
from gym_schemas.strategies import near_misses, valid_arguments
from tests.schemas.drawing import drawn, made_at_once

#: Values of each schema that a tool has as a whole, and of each inside them, which the whole ones hold, too.
EXAMPLES, OF_INNER = 4, 1
pytestmark = pytest.mark.nemo_gym

Schemas = dict[str, tuple[str, Any]]
"""By its text: where a schema was first seen, and the schema."""


def bundle() -> Path:
    named = os.environ.get("NEMO_GYM_BUNDLE")
    spec = importlib.util.find_spec("nemo_gym")
    return Path(named) if named else Path(spec.origin if spec and spec.origin else "").parents[1]


def declared(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and parameters of every function in a row, wherever it stands and in whichever form: flat, nested, as text."""
    match value:
        case {"name": str(name), "parameters": dict(parameters)}:
            yield name, parameters
            return
        case dict():
            for inner in value.values():
                yield from declared(inner)
        case list():
            for inner in value:
                yield from declared(inner)
        case str() if value.lstrip()[:1] in ("{", "[") and '"properties"' in value:
            try:
                inner = json.loads(value)
            except ValueError:
                return
            if isinstance(inner, dict) and isinstance(inner.get("properties"), dict):
                yield "schema", inner
            yield from declared(inner)


@functools.cache
def every_schema() -> tuple[int, Schemas]:
    """How many declarations there are, and the different ones."""
    count, different = 0, Schemas()
    for path in sorted((bundle() / "resources_servers").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # pointers of git's large file storage
            for name, schema in declared(row):
                count += 1
                different.setdefault(json.dumps(schema, sort_keys=True), (f"{path.parts[-3]}: {name}", schema))
    return count, different


@functools.cache
def with_inner_ones() -> Schemas:
    """The schemas, and all schemas inside them, without their titles and descriptions."""
    found = Schemas()
    for where, schema in every_schema()[1].values():
        for way, inner in walk(sound(schema)):
            said = {key: value for key, value in inner.items() if key not in ("title", "description")}
            found.setdefault(json.dumps(said, sort_keys=True), (f"{where} #{pointer(way)}", said))
    return found


def validator(schema: Any) -> jsonschema_rs.Validator:
    """jsonschema_rs's own, of the schema as it is declared, or as fixed where that is no schema."""
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True)
    except jsonschema_rs.ValidationError:
        assert sound(schema) != schema
        return jsonschema_rs.validator_for(sound(schema), validate_formats=True)


def _examples(where: str) -> int:
    return EXAMPLES if where.endswith("#") else OF_INNER


def test_the_bundle_has_schemas() -> None:
    count, different = every_schema()
    assert count > 1_000
    assert len(different) > 100
    assert len(with_inner_ones()) > 400


def test_all_valid_arguments_are_valid() -> None:
    total, wrong = 0, []
    for where, schema in with_inner_ones().values():
        judge = validator(schema)
        values = drawn(valid_arguments(schema), _examples(where))
        total += len(values)
        wrong += [(where, value) for value in [*values, minimal(schema)] if not judge.is_valid(value)]
    print(f"\n{total} valid values")  # noqa: T201
    assert wrong == []


def test_none_of_them_needs_the_last_safeguard() -> None:
    """Right by construction: without being held to the validator at the end, too."""
    wrong = []
    for where, schema in every_schema()[1].values():
        judge = validator(schema)
        wrong += [(where, value) for value in drawn(made_at_once(read(schema)), EXAMPLES) if not judge.is_valid(value)]
    assert wrong == []


def test_all_near_misses_are_refused() -> None:
    total, wrong, keywords = 0, [], dict[str, int]()
    for where, schema in with_inner_ones().values():
        judge, misses = validator(schema), near_misses(schema)
        if misses.is_empty:
            assert judge.is_valid(None), f"{where}: nothing is said to be wrong, yet not everything is valid"
            continue
        for miss in drawn(misses, _examples(where)):
            total += 1
            keywords[miss.keyword] = keywords.get(miss.keyword, 0) + 1
            wrong += [(where, miss)] if judge.is_valid(miss.value) else []
    print(f"\n{total} near misses: {keywords}")  # noqa: T201
    assert wrong == []


def test_what_is_not_sound_is_read_all_the_same() -> None:
    """Schemas of the bundle that are not sound are printed with `-s`."""
    for where, schema in every_schema()[1].values():
        if sound(schema) != schema:
            print(f"\n{where}: {schema}\n  is read as {sound(schema)}")  # noqa: T201
        assert not valid_arguments(schema).is_empty, where
