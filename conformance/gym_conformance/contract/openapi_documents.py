"""Where servers put their OpenAPI document, and its conversion to the one form that the suite reads. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPMethod
from typing import Any, Final

import yaml

from gym_conformance.contract.endpoints import OPENAPI
from gym_conformance.documents import MOST, UNLIKE_ITS_TAG, bulk, flaw, parse_json

#: FastAPI's own path, then those of Litestar, sanic-ext, flask-restx, drf-spectacular, django-ninja, connexion,
#: flask-openapi3, flasgger, Fastify, ASP.NET and Spring, according to their documentation.
DOCUMENTS: Final = (
    OPENAPI,
    *(
        "/schema/openapi.json",
        "/docs/openapi.json",
        "/swagger.json",
        "/api/schema",
        "/api/schema/",
        "/api/openapi.json",
    ),
    *("/openapi.yaml", "/openapi/openapi.json", "/apispec_1.json", "/docs/json", "/swagger/v1/swagger.json"),
    "/v3/api-docs",
)

#: Relations of a link to a description of the service (RFC 8631).
_RELATIONS: Final = re.compile(r'rel="?[^";,]*\bservice-(?:desc|meta)\b')

#: A YAML document has its version at the start of a line.
_IN_YAML: Final = re.compile(r"^['\"]?(?:openapi|swagger)['\"]? *:", re.MULTILINE)

#: The most characters of a YAML document.
_LARGEST_YAML: Final = 1 << 20

_BODY_TYPE: Final = "application/json"


def read_document(text: str) -> Mapping[str, Any] | None:
    """The OpenAPI 3 document in a text of JSON or YAML; None if it is none."""
    if bulk(text):
        return None
    try:
        document = parse_json(text) if text.lstrip().startswith("{") else _from_yaml(text)
        if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
            return None
        return _from_swagger(document) if "swagger" in document else document
    except (ValueError, yaml.YAMLError, RecursionError, *UNLIKE_ITS_TAG):
        return None


def _from_yaml(text: str) -> Any:
    """The value of a text that begins like an OpenAPI document in YAML; others are skipped, because YAML is slow."""
    if len(text) > _LARGEST_YAML or not _IN_YAML.search(text):
        return None
    document = yaml.load(text, _Loader)  # noqa: S506 - a safe one
    return None if flaw(document, MOST) else json.loads(json.dumps(document))  # string keys, and nothing but JSON


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML restricted to JSON's types: a date remains a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def below(prefix: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document as seen by a client that itself puts the prefix before each path."""
    if not prefix:
        return document
    paths = {
        path.removeprefix(prefix) if path.startswith(prefix + "/") else path: at
        for path, at in document["paths"].items()
    }
    return {**document, "paths": paths}


def linked(headers: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The absolute paths on the same host where a reply's Link headers say that the service is described."""
    for name, value in headers:
        for link in value.split(",") if name == "link" else ():
            target, _, parameters = link.strip().partition(">")
            if _RELATIONS.search(parameters) and target.startswith("</"):
                yield target[1:]


def _from_swagger(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert Swagger 2.0, which has the body among the parameters, and schemas under `definitions`."""
    paths = {
        path: {
            method: _operation(each) if method.upper() in HTTPMethod.__members__ and isinstance(each, dict) else each
            for method, each in operations.items()
        }
        for path, operations in document["paths"].items()
        if isinstance(operations, dict)
    }
    moved = {**document, "paths": paths, "components": {"schemas": document.get("definitions") or {}}}
    text = json.dumps(moved, default=str).replace('"#/definitions/', '"#/components/schemas/')
    made: Mapping[str, Any] = json.loads(text)
    return made


def _operation(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = [each for each in operation.get("parameters") or () if isinstance(each, dict)]
    body = next((each for each in parameters if each.get("in") == "body"), None)
    responses = {
        status: {**each, "content": {_BODY_TYPE: {"schema": each["schema"]}}}
        if isinstance(each, dict) and "schema" in each
        else each
        for status, each in (operation.get("responses") or {}).items()
    }
    made = {**operation, "parameters": [each for each in parameters if each is not body], "responses": responses}
    if body is not None:
        made["requestBody"] = {
            "required": bool(body.get("required")),
            "content": {_BODY_TYPE: {"schema": body.get("schema") or {}}},
        }
    return made
