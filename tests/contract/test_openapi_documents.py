"""OpenAPI documents wherever frameworks put them, in whatever form."""

import json

import pytest
import yaml

from gym_conformance.contract.openapi import read_openapi
from gym_conformance.contract.openapi_documents import below, linked, read_document
from gym_conformance.drift.served import served_tools

_SCHEMA = {"type": "object", "properties": {"city": {"$ref": "#/components/schemas/City"}}, "required": ["city"]}
_CITY = {"type": "string", "enum": ["Oslo", "Bern"], "example": "2024-02-29"}
OPENAPI = {
    "openapi": "3.0.3",
    "paths": {
        "/env/seed_session": {"post": {}},
        "/env/go": {"post": {"requestBody": {"content": {"application/json": {"schema": _SCHEMA}}}}},
    },
    "components": {"schemas": {"City": _CITY}},
}
_OLD = json.loads(json.dumps(_SCHEMA).replace("components/schemas", "definitions"))
SWAGGER = {
    "swagger": "2.0",
    "paths": {
        "/env/seed_session": {"post": {"responses": {"200": {"description": "done"}}}},
        "/env/go": {
            "parameters": [],
            "post": {"parameters": [{"in": "body", "name": "body", "required": True, "schema": _OLD}], "responses": {}},
        },
    },
    "definitions": {"City": _CITY},
}


@pytest.mark.parametrize(
    "value", ["!!timestamp x", "!!bool x", '!!int ""', "!!binary aGk=", "!!set {a, b}", "!!timestamp 2024-01-01"]
)
def test_a_document_with_what_json_has_not_is_none(value: str) -> None:
    assert read_document(yaml.safe_dump(OPENAPI)) is not None
    assert read_document(f"{yaml.safe_dump(OPENAPI)}\nx: {value}\n") is None


def test_keys_are_texts() -> None:
    assert read_document("openapi: 3.1.0\npaths:\n  /a:\n    post:\n      responses:\n        200: {}\n") == {
        "openapi": "3.1.0",
        "paths": {"/a": {"post": {"responses": {"200": {}}}}},
    }


@pytest.mark.parametrize("text", [json.dumps(OPENAPI), yaml.safe_dump(OPENAPI), json.dumps(SWAGGER)])
def test_one_form_for_all(text: str) -> None:
    document = read_document(text)
    assert document is not None
    seen = below("/env", document)
    assert read_openapi(seen).tools == {"go"}
    body = json.dumps(served_tools(seen)["go"].request)
    assert "Oslo" in body
    assert "city" in body


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"paths": 1}', "a: [", "paths: here", "<html>", "error: no such tool"]
)
def test_anything_else_is_none(text: str) -> None:
    assert read_document(text) is None


def test_only_what_stands_below_the_prefix_loses_it() -> None:
    assert set(below("/en", OPENAPI)["paths"]) == set(OPENAPI["paths"])
    assert below("", OPENAPI) is OPENAPI


def test_links_that_describe_the_service() -> None:
    headers = [
        ("link", '</next>; rel="next", </env/openapi.yaml>; rel="service-desc"; type="application/yaml"'),
        ("link", "<https://elsewhere.example/api>; rel=service-desc"),
        ("date", "</x>; rel=service-desc"),
    ]
    assert list(linked(headers)) == ["/env/openapi.yaml"]
