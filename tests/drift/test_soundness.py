"""A definition alone: what is wrong with it, and nothing where nothing is."""

from typing import Any

import pytest

from gym_conformance.drift.definitions import read_definition
from gym_conformance.drift.soundness import unsound
from gym_conformance.drift.tool_drift import Weight
from tests.drift.pairs import CALLS, INTEGER, STRING, Schema, either, many, of, shut


def problems(parameters: Any, name: str = "tool", **more: Any) -> list[tuple[str, str]]:
    one = read_definition({"name": name, "description": "d", "parameters": parameters, **more})
    assert one
    return [(drift.path, drift.message) for drift in unsound(one)]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_sound(name: str) -> None:
    assert problems(CALLS[name][0]) == []


@pytest.mark.parametrize(
    ("parameters", "path", "says"),
    [
        ([], "", "list"),
        ("object", "", "str"),
        (of(a={"type": "str"}), "/properties/a/type", "not a JSON Schema"),
        (of(a={"type": "float"}), "/properties/a/type", "not a JSON Schema"),
        ({"type": "object", "properties": []}, "/properties", "not a JSON Schema"),
        (of(a={"$ref": "#/$defs/A"}), "", "not a JSON Schema"),
        (of(a={"$ref": "https://example.com/a.json"}), "", "not a JSON Schema"),
        (of(a={"type": "string", "pattern": "["}), "", "not a JSON Schema"),
        ({"type": "array", "items": STRING}, "/type", "always an object"),
        (of("", a=STRING), "/required", '""'),
        (of("b", a=STRING), "/required", "not among its properties"),
        ({"type": "object", "required": ["b"]}, "/required", "no properties"),
        (of(a=of("y", x=STRING)), "/properties/a/required", "not among its properties"),
        (of(a={"type": "integer", "default": "1"}), "/properties/a/default", "default '1'"),
        (of(a={"type": "string", "default": None}), "/properties/a/default", "default None"),
        (of(a={"enum": ["x"], "default": "y"}), "/properties/a/default", "default 'y'"),
        (of(a={"type": "integer", "enum": ["1", "2"]}), "/properties/a/enum", "its type is integer"),
        (of(a={"type": "string", "const": 1}), "/properties/a/enum", "its type is string"),
        (of(a=many({"type": "string", "enum": ["x", 1]})), "/properties/a/items/enum", "its type is string"),
    ],
)
def test_unsound(parameters: Any, path: str, says: str) -> None:
    ((where, message),) = problems(parameters)
    assert where == path
    assert says in message


def test_nested_out_of_reach() -> None:
    deep: Schema = STRING
    for _ in range(200):
        deep = many(deep)
    ((_, message),) = problems(of(a=deep))
    assert "levels deep" in message


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a.b", "é", "a" * 65, "verify", "mcp"])
def test_names(name: str) -> None:
    assert len(problems(of(), name)) == 1


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        (of("a", a=STRING), "additionalProperties"),
        (shut(a=STRING), "does not require a"),
        (shut("a", a=of("b", b=of())) | {"additionalProperties": True}, "in 3 places, first at the root"),
        (shut("a", a=of()), "additionalProperties"),
        (shut("a", a={"oneOf": [STRING, INTEGER]}), "oneOf"),
        ({**shut(), "anyOf": [{}]}, "root"),
        (shut("a", a=STRING) | {"$defs": {"A": of()}}, "additionalProperties"),
    ],
)
def test_not_strict(parameters: Schema, says: str) -> None:
    ((_, message),) = problems(parameters, strict=True)
    assert says in message
    assert problems(parameters) == []


def test_strict() -> None:
    strict = shut("a", "b", a=either(STRING, {"type": "null"}), b=many(shut("c", c={"enum": [1, 2]})))
    assert problems(strict, strict=True) == []


def test_a_missing_description_is_a_note() -> None:
    one = read_definition({"name": "a"})
    assert one
    (drift,) = unsound(one)
    assert drift.weight is Weight.NOTE
