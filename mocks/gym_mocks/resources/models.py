"""Pydantic with FastAPI's error shapes, and the JSON Schemas that go with it."""

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from gym_mocks.wire import HttpRefusal
from gym_mocks.wire.bodies import not_an_object


class AnyText:
    """Annotates `str` fields that take any JSON string, lone surrogates too, which pydantic refuses."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(str)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string"}


class FirstWrong:
    """Annotates lists of which the first wrong item alone is an error: each takes a kilobyte, and there may be millions."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.list_schema(handler(*get_args(source)), fail_fast=True)


Text = Annotated[str, AnyText]
Objects = Annotated[list[dict[str, Any]], FirstWrong]
UNKNOWN = 1_000  # keys or items that are refused one by one; what is beyond goes unsaid
Model = TypeVar("Model", bound=BaseModel)


class Arguments(BaseModel):
    """A nested object among a tool's arguments: nothing extra, as strict function tools demand."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)


def validated(model: type[Model], body: Any, *, strict: bool | None = None) -> Model:
    """A request body as a model.

    Raises:
        HttpRefusal: 422 with the errors as FastAPI writes them.
    """
    if not isinstance(body, dict):
        raise HttpRefusal(422, [not_an_object(body)])
    try:
        return model.model_validate(_few_unknown(model, body), strict=strict, from_attributes=True)
    except ValidationError as error:
        raise HttpRefusal(422, errors_of(error)) from None


def _few_unknown(kind: Any, value: Any) -> Any:
    """A value with no more than `UNKNOWN` keys of those that its model forbids: each is an error, which takes a kilobyte."""
    if isinstance(value, list):
        return [_few_unknown(kind, each) for each in value]
    if not isinstance(value, dict):
        return value
    if not _is_model(kind):
        for inner in filter(_holds_model, get_args(kind)):
            value = _few_unknown(inner, value)
        return value
    known = kind.model_fields
    if kind.model_config.get("extra") == "forbid" and len(value) > len(known) + UNKNOWN:
        kept = known.keys() | set(islice((key for key in value if key not in known), UNKNOWN))
        value = {key: each for key, each in value.items() if key in kept}
    inside = {key: _few_unknown(inner, value[key]) for key, inner in _models_in(kind).items() if key in value}
    return {**value, **inside} if inside else value


@cache
def _models_in(model: type[BaseModel]) -> dict[str, Any]:
    """The fields of a model that hold models themselves, with their types."""
    return {name: each.annotation for name, each in model.model_fields.items() if _holds_model(each.annotation)}


def _holds_model(kind: Any) -> bool:
    return _is_model(kind) or any(map(_holds_model, get_args(kind)))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def errors_of(error: ValidationError) -> list[dict[str, Any]]:
    """The `detail` list of a 422: the first errors of very many."""
    details: list[dict[str, Any]] = []
    for each in error.errors(include_url=False)[:UNKNOWN]:
        detail = dict(each) | {"loc": ["body", *each["loc"]]}
        if "ctx" in each:
            detail["ctx"] = {key: _plain(value) for key, value in each["ctx"].items()}
        details.append(detail)
    return details


def whole(value: Any) -> Any:
    """Every 5.0 made 5: JSON Schema calls both integers, pydantic's strict mode does not."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema without `$defs` and without pydantic's titles, as policies are shown it.

    Raises:
        RecursionError: a type refers to itself, which a function tool cannot declare inline.
    """
    definitions = schema.get("$defs", {})

    def expand(node: Any) -> Any:
        if isinstance(node, list):
            return [expand(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return expand(definitions[node["$ref"].removeprefix("#/$defs/")] | _without(node, ["$ref"]))
        kept = _without(node, ["title", "$defs"]) if not isinstance(node.get("title"), dict) else node
        if "properties" in kept:
            properties = {name: expand(item) for name, item in kept["properties"].items()}
            return expand(_without(kept, ["properties"])) | {"properties": properties}
        return {key: expand(item) for key, item in kept.items()}

    expanded: dict[str, Any] = expand(schema)
    return expanded


def _without(node: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)
