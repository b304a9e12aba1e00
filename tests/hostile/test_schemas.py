"""OpenAPI documents and tool lists that are no such thing: read as far as they go, and never an exception."""

import json
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gym_conformance.contract.dataset_rows import Rollout, Row, Source, prompt_of
from gym_conformance.contract.mcp_block import block_of, faults, read_endpoint
from gym_conformance.contract.openapi import Api, ServerKind, read_openapi
from gym_conformance.contract.openapi_documents import read_document
from gym_conformance.drift.lock import lock_of
from gym_conformance.drift.served import mcp_tools, served_tools
from gym_schemas import NoValue, boundary_values, minimal, near_sample, subtract

KEYS = st.sampled_from(
    [
        "$ref",
        "anyOf",
        "allOf",
        "properties",
        "content",
        "application/json",
        "schema",
        "post",
        "requestBody",
        "responses",
        "200",
        "type",
        "parameters",
        "required",
        "items",
        "$defs",
        "components",
        "schemas",
        "A",
        "x",
        "name",
        "in",
        "inputSchema",
        "outputSchema",
        "headers",
        "url_path",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "/", "x", "#/components/schemas/A", "#", "object", "\x1b[31m", "\ud800", 1e308])
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
BODY = st.fixed_dictionaries({"content": JSON | st.fixed_dictionaries({"application/json": JSON})})
POST = st.fixed_dictionaries({"requestBody": JSON | BODY, "responses": JSON, "parameters": JSON})
ROUTES = st.sampled_from(
    ["/seed_session", "/verify", "/run", "/close_session", "x", "/x", "//", "", "/{p}", "/x/y", "seed_session", "/\x1b"]
)
PATHS = st.dictionaries(ROUTES, JSON | st.fixed_dictionaries({"post": JSON | POST}), max_size=5)
COMPONENTS = JSON | st.fixed_dictionaries({"schemas": JSON | st.dictionaries(st.just("A"), JSON)})
DOCUMENTS = JSON | st.fixed_dictionaries({"paths": JSON | PATHS, "components": COMPONENTS})


def facts(api: Api) -> list[object]:
    """Everything that is asked of a document."""
    return [api.kind, api.typed, api.typed_only, api.episodes, api.tools, api.catch_all, api.catch_alls]


@given(DOCUMENTS)
def test_any_document_is_read(document: Any) -> None:
    api = read_openapi(document)
    assert facts(api)
    assert lock_of(None, served_tools(document)).render()


@given(DOCUMENTS)
@example({"paths": {"/x": {"post": {"parameters": 5}}}})
@example({"paths": {"/x": {"post": {"responses": ["x"]}}}})
def test_any_document_of_swagger_is_read(document: Any) -> None:
    """The older form is converted first; a document that cannot be is none."""
    older = {**document, "swagger": "2.0"} if isinstance(document, dict) else document
    assert facts(read_openapi(read_document(json.dumps(older))))


@given(JSON)
def test_any_list_of_tools_is_read(tools: Any) -> None:
    assert lock_of(None, mcp_tools(tools)).render()


@given(JSON)
def test_any_mcp_block_is_read(reply: Any) -> None:
    block = block_of(reply)
    read_endpoint(block)
    list(faults(block))


CALL = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["function_call", "function_call_output"]),
        "call_id": JSON,
        "name": JSON,
        "arguments": JSON | st.sampled_from(["{}", "[" * 100_000, '{"a": 1e999}', "9" * 5_000]),
        "output": JSON,
    }
)
MESSAGE = st.fixed_dictionaries({"role": st.just("user"), "content": JSON})
ASKED = st.fixed_dictionaries({"input": JSON | st.lists(MESSAGE, max_size=2), "tools": JSON | st.lists(JSON)})


@given(ASKED, JSON | st.lists(JSON | CALL | MESSAGE, max_size=3), JSON)
def test_any_row_and_rollout_is_read(asked: Any, output: Any, more: Any) -> None:
    data = {"responses_create_params": asked, "extra": more}
    row = Row(data, Source(Path("x"), 1))
    rollout = Rollout({**data, "response": {"output": output}, "reward": more}, row.source)
    assert row.shape() == Row(data, row.source).shape()
    assert all(isinstance(tool.name, str) for tool in row.tools)
    assert isinstance(prompt_of(row) + rollout.last_text, str)
    assert len(rollout.played) == len(rollout.calls) >= len(rollout.answered)
    assert rollout.rows_of([row]) == [row]


@pytest.mark.parametrize(
    ("paths", "tools"),
    [
        pytest.param({"book": {"post": {}}}, frozenset(), id="no slash"),
        pytest.param({"seed_session": {"post": {}}, "verify": {"post": {}}}, frozenset(), id="endpoints without slash"),
        pytest.param({"": {"post": {}}}, frozenset(), id="empty"),
        pytest.param({"/": {"post": {}}}, frozenset(), id="root"),
        pytest.param({"/book": 1, "/cancel": None}, frozenset(), id="no operations"),
        pytest.param({"/book": {"post": None}}, frozenset({"book"}), id="an operation that is null"),
        pytest.param({"/{a}/{b}": {"post": {}}}, frozenset(), id="parameters only"),
        pytest.param({f"/t{at}": {"post": {}} for at in range(20_000)}, None, id="20,000 paths"),
    ],
)
def test_paths(paths: dict[str, Any], tools: frozenset[str] | None) -> None:
    document = {"paths": paths, "components": {"schemas": {}}}
    api = read_openapi(document)
    assert api.tools == tools or tools is None
    assert isinstance(api.kind, ServerKind)
    assert len(served_tools(document)) == len(api.tools)


def _nested(node: dict[str, Any]) -> dict[str, Any]:
    for _ in range(4):
        node = {"type": "array", "minItems": 50, "items": node}
    return node


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "array", "contains": {"type": "integer"}, "minContains": 10**8}, id="minContains"),
        pytest.param({"type": "array", "minItems": 10**9}, id="minItems"),
        pytest.param(_nested({"type": "string"}), id="lists of lists"),
        pytest.param(
            {"type": "array", "minItems": 900, "items": {"type": "string", "minLength": 90_000}}, id="long texts"
        ),
    ],
)
def test_what_only_huge_values_fit_has_none(schema: dict[str, Any]) -> None:
    with pytest.raises(NoValue):
        minimal({"type": "object", "properties": {"a": schema}, "required": ["a"]})


def test_a_search_that_chance_does_not_end_is_not_begun_again_within_itself() -> None:
    """Names that no pattern of ours fits, fifty of them: some twenty searches in each other took half a minute."""
    names = {"propertyNames": {"pattern": "^(a|a)*b$"}, "patternProperties": {"(a+)+$": {"type": "string"}}}
    began = time.process_time()
    with pytest.raises(NoValue):
        minimal({"type": "object", "minProperties": 50, **names})
    assert time.process_time() - began < 5


def test_bounds_that_are_no_doubles_are_compared() -> None:
    """The first multiple of a tiny step above a huge number: jsonschema_rs has a decimal for it."""
    number = {"type": "number", "multipleOf": 1e-300, "exclusiveMinimum": 1.7e308}
    source, target = ({"type": "object", "properties": {"a": each}} for each in (number, {"type": "string"}))
    assert next(boundary_values(subtract(source, target) or {})) is not None
    lists = {"type": "object", "properties": {"a": {"type": "array", "contains": number}}, "required": ["a"]}
    for seed in range(30):
        near_sample(lists, {"a": [1.75e308]}, Random(seed))
