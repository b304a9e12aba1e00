"""Twins whose tools are missing, crash, or touch what they should not."""

import json
from dataclasses import replace
from typing import Any

from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.twin import Json, Twin, changed, crashing, dataset, twin


def declare(name: str, **properties: Json) -> Any:
    """Rows that declare one more tool."""

    def change(row: Json) -> None:
        parameters = {"type": "object", "properties": properties}
        tool = {"type": "function", "name": name, "description": "Does it.", "parameters": parameters}
        row["responses_create_params"]["tools"].append(tool)

    return dataset(change)


def undeclare(name: str) -> Any:
    """Rows that do not declare this tool."""

    def change(row: Json) -> None:
        params = row["responses_create_params"]
        params["tools"] = [tool for tool in params["tools"] if tool["name"] != name]

    return dataset(change)


class ForgottenRoute(ReferenceServer):
    def __init__(self) -> None:
        super().__init__()
        del self.handlers["POST", "/count_stock"]
        del self.openapi["paths"]["/count_stock"]


class DottedTool(ReferenceServer):
    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/stock.clear"] = self._clear

    async def _clear(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"cleared": True})


class RawBody(ReferenceServer):
    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        json.loads(request.body).items()
        return await super()._call_tool(request)


class UnknownArgumentCrashes(ReferenceServer):
    """The arguments go into the function as they come: `tool(**body)`."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if b"no_such_argument" in request.body:
            raise TypeError("count_stock() got an unexpected keyword argument")
        return await super()._call_tool(request)


class UnknownToolCrashes(ReferenceServer):
    def find(self, request: HttpRequest) -> Any:
        if request.method == "POST" and ("POST", request.path) not in self.handlers:
            raise UnboundLocalError("cannot access local variable 'tool'")
        return super().find(request)


class CountsRefusedCalls(ReferenceServer):
    """A refused call costs the session a piece of everything."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            if session := self.sessions.get(request.session_id):
                self.stock_of(session).pieces.clear()
            raise


class TakesBeforeItReads(ReferenceServer):
    """Moving takes from the origin before it has read the destination."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._call_tool(request)
        except HttpRefusal:
            session = self.sessions.get(request.session_id)
            if session and b'"destination":{' in request.body:
                self.stock_of(session).pieces.clear()
            raise


def latin_1(_: HttpRequest, reply: HttpReply) -> HttpReply:
    return HttpReply(reply.status, "café".encode("latin-1"), reply.headers)


def as_latin_1(request: HttpRequest, reply: HttpReply) -> HttpReply:
    """Says what was added, which is the same in UTF-8 where it is ASCII."""
    item = json.loads(request.body)["amount"]["item"] if reply.status == 200 else ""
    return reply if item.isascii() else replace(reply, body=item.encode("latin-1", "replace"))


def argument_is_text(body: Any) -> None:
    """Crash where an argument is null, or anything else that has no `lower`."""
    if isinstance(body, dict) and "item" in body:
        body["item"].lower()


TWINS: tuple[Twin, ...] = (
    twin("a declared tool that nobody serves", "tool-routed", ReferenceServer, data=declare("get_weather")),
    twin("a route that was forgotten", "tool-routed", ForgottenRoute),
    twin("tools read the raw body", "tool-bad-body", RawBody),
    twin("an unknown argument crashes", "tool-wrong-arguments", UnknownArgumentCrashes),
    twin(
        "an argument of null crashes", "tool-wrong-arguments tool-bad-body", crashing("/count_stock", argument_is_text)
    ),
    twin("an unknown tool crashes", "tool-undeclared", UnknownToolCrashes),
    twin("refused calls count", "tool-refused-call", CountsRefusedCalls),
    twin("a tool acts before it has read its arguments", "tool-refused-call", TakesBeforeItReads),
    twin("a tool answers what it is told in Latin-1", "tool-reply-text", changed("/add_stock", as_latin_1)),
    twin("a tool answers Latin-1", "tool-reply-text repeat-recorded", changed("/list_stock", latin_1)),
    twin("a tool with an endpoint's name", "tool-name-legal", ReferenceServer, data=declare("verify")),
    twin("a tool with a dot in its name", "tool-name-legal", DottedTool, data=declare("stock.clear")),
    twin("a tool that no row declares", "tool-served-declared", ReferenceServer, data=undeclare("list_stock")),
)
