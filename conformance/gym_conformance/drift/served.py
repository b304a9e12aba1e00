"""The tools that a server serves, as its OpenAPI document or its MCP `tools/list` describes them.

FastAPI of any version (OpenAPI 3.0 with pydantic 1, 3.1 with pydantic 2) declares a JSON body as `requestBody`; none if
the handler takes no model (it may still read the request itself); and `parameters` if a plain argument of the handler
is read from the query string.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gym_conformance.contract.openapi import read_openapi
from gym_schemas import MOST_NODES, Document, Schema, depth, rewrite, too_large, upgrade, walk
from gym_schemas.json_values import first_step


class TooLarge(Exception):
    """A schema is too large to be compared; the message says in what respect."""


_COMPONENTS = "#/components/schemas/"
_SHALLOW = 5  # levels
_JSON_REPLY = ("200", "201", "2XX", "default")

#: What FastAPI writes for the author's own response class, whatever it returns; a declared text has a title.
_UNDECLARED: Final = {"type": "string"}


@dataclass(frozen=True)
class ServedTool:
    """One tool of the server.

    Attributes:
        name: its name in a tool call.
        request: the modern JSON Schema of the body; None if the document declares no JSON body.
        response: the modern JSON Schema of a reply; None if none is declared.
        description: the route's description.
        other_body: the media type of the body expected instead of JSON, such as a form.
        elsewhere: required parameters in the query, a header or a cookie, by location.
        route: the path; "" for a tool of an MCP server.
        too_large: why its schemas are too large to be read, in which case they are None; otherwise "".
    """

    name: str
    request: Schema | None = None
    response: Schema | None = None
    description: str = ""
    other_body: str = ""
    elsewhere: tuple[tuple[str, str], ...] = ()
    route: str = ""
    too_large: str = ""

    @property
    def arguments(self) -> Schema:
        """The schema of a call's arguments: an object that also satisfies the request schema."""
        document = Document(self.request if self.request is not None else {})
        node, defs = document.root, document.defs
        branches = node.get("anyOf") if isinstance(node, dict) else None
        if isinstance(branches, list):  # an optional body; a call always sends an object
            kept = [one for one in branches if not (isinstance(one, dict) and one.get("type") == "null")]
            node = {**node, "anyOf": kept} if len(kept) != 1 else kept[0]
        return {**node, "$defs": defs} if isinstance(node, dict) and defs else node


class Components:
    """The schemas that the routes of a document share, each converted once."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._made: dict[str, Schema] = {}

    def embedded(self, schema: Schema) -> Schema:
        """The schema as a modern standalone document, with the components that it uses in its `$defs`.

        Raises:
            TooLarge: it is too large to be compared.
        """
        if not _is_short(schema):
            return self._embedded(schema)
        text = json.dumps(schema)
        if text not in self._made:
            try:
                self._made[text] = self._embedded(schema)
            except TooLarge as error:
                self._made[text] = error
        made = self._made[text]
        if isinstance(made, TooLarge):
            raise made
        return made

    def _embedded(self, schema: Schema) -> Schema:
        used: dict[str, Any] = {}
        waiting, parts = [schema], 0
        while waiting and parts <= MOST_NODES:
            for _, node in walk(waiting.pop()):
                parts += 1
                name = _component(node)
                if name in self._schemas and name not in used:
                    used[name] = self._schemas[name]
                    waiting.append(self._schemas[name])
        document = {**schema, "$defs": used} if isinstance(schema, dict) and used else schema
        if why := too_large(document):
            raise TooLarge(why)
        document = upgrade(rewrite(document, _to_defs))
        if why := too_large(document):
            raise TooLarge(why)
        return document


def _is_short(schema: Schema) -> bool:
    """Whether the schema says hardly more than which component it is."""
    return not (isinstance(schema, dict) and {"properties", "items"} & schema.keys()) and depth(schema) < _SHALLOW


def served_tools(document: object) -> dict[str, ServedTool]:
    """The tools of an OpenAPI document, by name, without framework routes and routes with a path parameter."""
    api = read_openapi(document)
    components = Components(_object(_object(api.document.get("components")).get("schemas")))
    tools = {}
    for name in sorted(api.tools):
        route = f"/{name}"
        post = _object(_object(api.document["paths"])[route]["post"])
        tools[name] = _read(name, route, post, components)
    return tools


def catch_all(document: object) -> ServedTool | None:
    """What a route for every tool (`/{path}`) declares about any call's body; None if it declares nothing."""
    api = read_openapi(document)
    components = Components(_object(_object(api.document.get("components")).get("schemas")))
    route = next(iter(sorted(api.catch_alls)), None)
    if route is None:
        return None
    served = _read("", route, _object(_object(api.document["paths"])[route]["post"]), components)
    return None if served.request is None else ServedTool("", served.request, served.response, route=route)


def mcp_tools(tools: object) -> dict[str, ServedTool]:
    """The tools of an MCP server, by name; `tools` is the list in the result of `tools/list`."""
    found = {}
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
            given = ServedTool(
                name, tool.get("inputSchema", {}), tool.get("outputSchema"), str(tool.get("description") or "")
            )
            found[name] = _upgraded(given, Components({}))
    return found


def _read(name: str, route: str, post: Mapping[str, Any], components: Components) -> ServedTool:
    content = _object(_object(post.get("requestBody")).get("content"))
    request = _json(content)
    replies = _object(post.get("responses"))
    reply = next((_object(replies[status]) for status in _JSON_REPLY if status in replies), {})
    response = _json(_object(reply.get("content")))
    if response == _UNDECLARED:
        response = None
    listed = post.get("parameters")
    parameters = [_object(one) for one in listed] if isinstance(listed, list) else []
    served = ServedTool(
        name,
        request=request,
        response=response,
        description=str(post.get("description") or ""),
        other_body=next(iter(content), "") if request is None else "",
        elsewhere=tuple((str(one.get("name")), str(one.get("in"))) for one in parameters if one.get("required")),
        route=route,
    )
    return _upgraded(served, components)


def _upgraded(served: ServedTool, components: Components) -> ServedTool:
    try:
        request, response = (
            None if schema is None else components.embedded(schema) for schema in (served.request, served.response)
        )
    except TooLarge as error:
        return replace(served, request=None, response=None, too_large=str(error))
    return replace(served, request=request, response=response)


def _json(content: Mapping[str, Any]) -> Schema | None:
    """The schema of the JSON media type, if there is one."""
    for media, entry in content.items():
        kind = media.partition(";")[0].strip()
        if kind in ("application/json", "*/*", "application/*") or kind.endswith("+json"):
            return _object(entry).get("schema", True)
    return None


def _component(node: Mapping[str, Any]) -> str:
    ref = node.get("$ref")
    if not isinstance(ref, str) or not ref.startswith(_COMPONENTS):
        return ""
    return first_step(ref.removeprefix(_COMPONENTS))


def _to_defs(node: dict[str, Any]) -> Schema:
    return {**node, "$ref": "#/$defs/" + node["$ref"][len(_COMPONENTS) :]} if _component(node) else node


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
