from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

REFERENCE = "#/components/schemas/{model}"

# FastAPI's own component for the 422 of any route.
VALIDATION_ERROR: dict[str, Any] = {
    "type": "object",
    "title": "HTTPValidationError",
    "properties": {
        "detail": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "loc": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                    "msg": {"type": "string"},
                    "type": {"type": "string"},
                },
                "required": ["loc", "msg", "type"],
            },
        }
    },
}


@dataclass(frozen=True)
class Operation:
    """One POST route as the OpenAPI document shows it; its body is a model, or a union of some."""

    name: str
    summary: str
    body: Any
    result: Any = None


def document(title: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a server, as FastAPI lays it out."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {"HTTPValidationError": VALIDATION_ERROR}
    for operation in operations:
        body = _body(operation, schemas)
        paths[f"/{operation.name}"] = {"post": _post(operation, body, _result(operation, schemas))}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "0.1.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _body(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = TypeAdapter(operation.body).json_schema(ref_template=REFERENCE)
    schemas |= schema.pop("$defs", {})
    if "properties" not in schema:
        return schema
    schemas[operation.body.__name__] = schema
    return {"$ref": REFERENCE.format(model=operation.body.__name__)}


def _post(operation: Operation, body: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": operation.name.replace("_", " ").title(),
        "description": operation.summary,
        "operationId": f"{operation.name}_{operation.name}_post",
        "requestBody": {
            "content": _json(body),
            "required": True,
        },
        "responses": {
            "200": {"description": "Successful Response", "content": _json(result)},
            "422": {
                "description": "Validation Error",
                "content": _json({"$ref": REFERENCE.format(model="HTTPValidationError")}),
            },
        },
    }


def _result(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    if operation.result is None:
        return {}
    schema = TypeAdapter(operation.result).json_schema(ref_template=REFERENCE, mode="serialization")
    schemas |= schema.pop("$defs", {})
    return schema


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
