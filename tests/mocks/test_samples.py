"""What the generating policy calls tools with: what their schemas allow, or, where it is hostile, what they do not."""

import json
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest

from gym_mocks.examples import robot, sandbox, weather
from gym_mocks.policy import PolicyRequest, generated
from gym_mocks.policy.items import ToolCall
from gym_mocks.policy.samples import broken, sample
from gym_mocks.reference import DATA
from tests.drift.pairs import CALLS, LEAVES
from tests.schemas.corpus import KEYWORDS, UNSATISFIABLE

ROW = Path(__file__).parents[2] / "fixtures" / "notes_env" / "data" / "example.jsonl"
ROWS = [json.loads(path.read_text().splitlines()[0]) for path in (ROW, DATA)]
TOOLS = [tool for row in ROWS for tool in row["responses_create_params"]["tools"]]
TOOLS += [*weather.TOOLS, *sandbox.TOOLS, *robot.TOOLS]
SCHEMAS: dict[str, Any] = {
    **{f"tool {tool['name']}": tool["parameters"] for tool in TOOLS},
    **KEYWORDS,
    **{f"leaf {name} {place}": pair[place] for name, pair in LEAVES.items() for place in (0, 1)},
    **{f"call {name} {place}": pair[place] for name, pair in CALLS.items() for place in (0, 1)},
}


def seeded(seed: int) -> Random:
    return Random(seed)


def is_a_schema(schema: Any) -> bool:
    try:
        jsonschema_rs.validator_for(schema)
    except jsonschema_rs.ValidationError:
        return False
    return True


CORPUS = {name: schema for name, schema in SCHEMAS.items() if is_a_schema(schema)}
NONE = {name: schema for name, schema in SCHEMAS.items() if name not in CORPUS}


@pytest.mark.parametrize("schema", NONE.values(), ids=NONE.keys())
def test_what_is_no_schema_is_said_to_be_none(schema: Any) -> None:
    with pytest.raises(LookupError, match="no JSON Schema"):
        sample(schema, seeded(0))


def test_a_schema_with_half_a_character_is_said_to_be_none() -> None:
    with pytest.raises(LookupError, match="no JSON Schema"):
        sample({"required": ["\ud800"]}, seeded(0))


@pytest.mark.parametrize("schema", CORPUS.values(), ids=CORPUS.keys())
def test_samples_are_valid_varied_and_repeatable(schema: dict[str, Any]) -> None:
    validator = jsonschema_rs.validator_for(schema)
    made = [sample(schema, seeded(seed)) for seed in range(12)]
    assert [value for value in made if not validator.is_valid(value)] == []
    assert made == [sample(schema, seeded(seed)) for seed in range(12)]


@pytest.mark.parametrize("schema", CORPUS.values(), ids=CORPUS.keys())
def test_broken_arguments_are_not(schema: dict[str, Any]) -> None:
    validator = jsonschema_rs.validator_for(schema)
    for seed in range(12):
        text = broken(schema, sample(schema, seeded(seed)), seeded(seed))
        try:
            value = json.loads(text)
        except ValueError:
            continue
        assert "\\ud800" in text or not validator.is_valid(value)


def test_broken_arguments_are_of_many_kinds() -> None:
    schema = TOOLS[0]["parameters"]
    assert len({broken(schema, sample(schema, seeded(0)), seeded(seed)) for seed in range(200)}) > 20


@pytest.mark.parametrize("schema", UNSATISFIABLE.values(), ids=UNSATISFIABLE.keys())
def test_where_nothing_is_valid_it_says_so(schema: Any) -> None:
    with pytest.raises(LookupError, match="no value was found"):
        sample(schema, seeded(0))


@pytest.mark.parametrize("hostile", [False, True])
def test_the_policy_calls_with_such_arguments(hostile: bool) -> None:
    """Also a tool without parameters, which then takes an object."""
    tools = [*TOOLS, {"type": "function", "name": "nothing_said"}]
    schemas = {tool["name"]: {"type": "object"} | tool.get("parameters", {}) for tool in tools}
    called = set()
    for seed in range(60):
        said = generated(hostile=hostile, seed=seed)(PolicyRequest("responses", {"input": "x", "tools": tools}))
        assert isinstance(said, ToolCall)
        called.add(said.name)
        try:
            valid = jsonschema_rs.is_valid(schemas[said.name], json.loads(said.arguments))
        except ValueError:
            valid = False
        assert valid is not hostile
    assert len(called) > len(tools) / 2
