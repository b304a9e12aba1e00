"""Twins whose rows and server have grown apart, and some that only look so."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from gym_conformance.dataset import Dataset
from gym_conformance.drift.definitions import Definitions
from gym_conformance.drift.lock import Lock, lock_of
from gym_conformance.drift.served import served_tools
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.innocent import CatchAll, OrdersAnswers, WithoutDocument
from tests.twins.tools import declare
from tests.twins.twin import Json, Turn, Twin, dataset, rollout_of, twin, unrecorded


def _tool(row: Json, name: str) -> Json:
    tools: list[Json] = row["responses_create_params"]["tools"]
    return next(tool for tool in tools if tool["name"] == name)


def in_each(name: str, change: Callable[[Json], object]) -> Any:
    """Rows whose definition of a tool is changed."""
    return dataset(lambda row: change(_tool(row, name)))


def _in_one(name: str, change: Callable[[Json], object]) -> Any:
    """The same for the first row only."""
    left = [True]

    def once(row: Json) -> None:
        if left:
            left.pop()
            change(_tool(row, name))

    return dataset(once)


def in_enum(*values: str) -> Any:
    return in_each("add_stock", lambda tool: tool["parameters"]["properties"]["category"].update(enum=list(values)))


def _in_one_more(name: str, properties: Json, *required: str) -> Callable[[Json], object]:
    """Declare one more tool, in the first row only."""
    parameters = {"type": "object", "properties": properties, "required": [*required]}
    tools = [{"type": "function", "name": name, "description": "Find them.", "parameters": parameters}]

    def declare_once(row: Json) -> None:
        row["responses_create_params"]["tools"] += [tools.pop()] if tools else []

    return declare_once


def of_any_length(**more: Any) -> Any:
    """Rows that do not say how long an item's name is, or say what is given; the server refuses an empty one."""

    def change(tool: Json) -> None:
        item = tool["parameters"]["properties"]["item"]
        item.pop("minLength", None)
        item |= more

    return in_each("count_stock", change)


def _offer(name: str, **schema: Any) -> Callable[[Json], None]:
    """Offer one more argument, which may be left out."""

    def change(tool: Json) -> None:
        tool["parameters"]["properties"][name] = schema
        tool["strict"] = False

    return change


SHELF = {"type": "integer", "minimum": 1}


class DropsUnread(ReferenceServer):
    """Takes any argument and drops what it does not name, as pydantic does unless it is told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        for schema in self.openapi["components"]["schemas"].values():
            if schema.get("title", "").endswith("_arguments"):
                schema.pop("additionalProperties", None)

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        known = self.tools[request.path[1:]].arguments.model_fields
        with suppress(ValueError):
            body = json.loads(request.body)
            if isinstance(body, dict):
                kept = {name: value for name, value in body.items() if name in known}
                request = replace(request, body=json.dumps(kept).encode())
        return await super()._call_tool(request)


class ReadsNothing(ReferenceServer):
    """A tool that takes no body, and says so."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/close_shop"] = self._close
        self.openapi["paths"]["/close_shop"] = {"post": {"responses": {}}}

    async def _close(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"closed": True})


class ReadsTheRequest(ReadsNothing):
    """It declares no body and reads one all the same, as a handler that takes the bare request does."""

    async def _close(self, request: HttpRequest) -> HttpReply:
        try:
            return HttpReply.json({"closed": json.loads(request.body).get("door")})
        except (ValueError, AttributeError):
            return HttpReply.json({"detail": "no JSON object"}, 422)


class DeclaresMore(ReferenceServer):
    """Its document asks for an argument that the server does not need."""

    def __init__(self) -> None:
        super().__init__()
        post = self.openapi["paths"]["/list_stock"]["post"]
        name = post["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = json.loads(json.dumps(self.openapi["components"]["schemas"][name]))
        schema["properties"]["page"] = {"type": "integer"}
        schema["required"].append("page")
        self.openapi["components"]["schemas"][name] = schema


class KnowsItsArguments(CatchAll):
    """A catch-all that passes on what it gets, and answers as Python does to a name that its function has not."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        tool = self.tools[request.path[1:]]
        try:
            unknown = [name for name in json.loads(request.body) if name not in tool.arguments.model_fields]
        except (TypeError, ValueError):
            unknown = []
        if unknown:
            return HttpReply.json({"error": f"{tool.name}() got an unexpected keyword argument {unknown[0]!r}"})
        return await super()._call_tool(request)


class KnowsNoSuchTool(CatchAll):
    """A catch-all that says no more of a tool that it does not know, whatever arguments it is sent."""

    async def _unknown(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json({"error": f"unknown tool {request.path[1:]}"})


class LostAMember(WithoutDocument):
    """A server without a schema that no longer knows one member of an enum, and says so with a 200."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            category = json.loads(request.body).get("category", "fruit")
        except (ValueError, AttributeError):
            return HttpReply.json({"error": "the arguments must be an object"})
        if category not in ("fruit", "tool"):
            return HttpReply.json({"error": f"{category!r} is no category"})
        return await super()._call_tool(request)


class AsksForAnotherName(WithoutDocument):
    """A server without a schema that calls an argument otherwise than the rows, and names the first that it lacks."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if request.path == "/count_stock":
            with suppress(ValueError, AttributeError):
                body = json.loads(request.body)
                if lacks := [name for name in ("item", "where") if body.get(name) is None]:
                    return HttpReply.json({"error": f"missing argument: {lacks[0]}"}, 400)
        return await super()._call_tool(request)


class WantsTexts(WithoutDocument):
    """A server without a schema that wants a text where the rows declare a number, and finds no place of any name."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/label_place"] = self._label

    def wants(self, place: Any) -> bool:
        """Whether it looks for such a place."""
        return isinstance(place, str)

    async def _label(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            wrong = not self.wants(json.loads(request.body).get("place"))
            return HttpReply.json({"error": "place has the wrong type" if wrong else "there is no such place"})
        return HttpReply.json({"error": "the arguments must be an object"})


class WantsTextsAlone(WantsTexts):
    """A server without a schema that marks a cell, whose row and column it wants as texts, both at once."""

    def __init__(self, *, careful: bool = False) -> None:
        super().__init__()
        self.careful = careful
        self.handlers["POST", "/mark_cell"] = self._mark

    async def _mark(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            for name in ("row", "column"):
                value = json.loads(request.body).get(name)
                if not isinstance(value, int if self.careful else str):
                    return HttpReply.json({"error": f"{name} has the wrong type"})
                if value in (0, "0"):
                    return HttpReply.json({"error": f"{name} is off the board"})
            return HttpReply.json({"marked": True})
        return HttpReply.json({"error": "the arguments must be an object"})


class WantsNumbers(WantsTexts):
    """Wants the number that rows declare, and finds no place of any number, nor of what is neither."""

    def wants(self, place: Any) -> bool:
        return not isinstance(place, str)


class WantsMeaning(WithoutDocument):
    """A server without a schema that refuses a place beyond its shelves, and an empty note, as it does wrong types."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/label_place"] = self._label

    async def _label(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, TypeError):
            place, note = map({"note": "-", **json.loads(request.body)}.get, ("place", "note"))
            if not isinstance(place, int) or not 0 <= place <= 1:
                return HttpReply.json({"error": "place out of range"})
            if not isinstance(note, str) or not note.strip():
                return HttpReply.json({"error": "a note, please"})
            return HttpReply.json({"labelled": place})
        return HttpReply.json({"error": "the arguments must be an object"})


class CountsFromZero(WantsTexts):
    """A server without a schema that counts its two places from 0, and says of a wrong type that it is one."""

    async def _label(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            place = json.loads(request.body).get("place")
            if isinstance(place, int) and 0 <= place <= 1:
                return HttpReply.json({"labelled": place})
            wrong = "0 to 1" if isinstance(place, int) else "an integer"
            return HttpReply.json({"error": f"place must be {wrong}"}, 400)
        return HttpReply.json({"error": "the arguments must be an object"}, 400)


def _labelled() -> Dataset:
    """The rows with a rollout in which the second place has a label."""
    found = dataset(_declare_label)
    played = rollout_of(found.rows[0], ("label_place", {"place": 2}, '{"labelled": 2}'), said="Done.")
    return replace(found, rollouts=(*found.rollouts, played))


class TakesZeroForNone(WantsMeaning):
    """The first place is refused as though no place were named."""

    async def _label(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            if not json.loads(request.body).get("place"):
                return HttpReply.json({"error": "a place, please"})
        return await super()._label(request)


#: The one call whose answer is held.
HELD = {"kinds": ["bakery"], "open": True}


class HoldsRecords(WithoutDocument):
    """A server without a schema that holds the answer to one call of a tool, and no data for any other."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__()
        self.strict = strict
        self.handlers["POST", "/find_shops"] = self._find

    async def _find(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            body = json.loads(request.body)
            if self.strict and not isinstance(body.get("kinds"), list):
                return HttpReply.json({"error": "kinds must be a list"})
            if self.strict and not isinstance(body.get("open", True), bool):
                return HttpReply.json({"error": "open must be true or false"})
            return HttpReply.json({"shops": 2} if body == HELD else {"status": "no data"})
        return HttpReply.json({"error": "the arguments must be an object"})


def _found() -> Dataset:
    """A row that declares the tool, with a rollout in which the shops are found, and one that does not."""
    kinds = {"type": "array", "items": {"type": "string"}}
    found = dataset(_in_one_more("find_shops", {"kinds": kinds, "open": {"type": "boolean"}}, "kinds"))
    played = rollout_of(found.rows[0], ("find_shops", HELD, '{"shops": 2}'), said="Two.")
    return replace(found, rollouts=(*found.rollouts, played))


class ListsLabels(WithoutDocument):
    """A server without a schema that lists so many labels of a place at most, of one place alone."""

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self.most = most
        self.handlers["POST", "/list_labels"] = self._list

    async def _list(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            body = json.loads(request.body)
            limit = body.get("limit", 1)
            if not isinstance(limit, int) or not 1 <= limit <= self.most:
                return HttpReply.json({"error": "limit must be from 1 to 100"})
            return HttpReply.json({"labels": limit} if body.get("place") == "van" else {"error": "no such place"})
        return HttpReply.json({"error": "the arguments must be an object"})


def _listed() -> Dataset:
    """Rows with a rollout that asks for a place that is not there, and then for the one that is."""
    limit = {"type": "integer", "minimum": 1, "maximum": 100}
    found = dataset(_in_one_more("list_labels", {"place": {"type": "string"}, "limit": limit}, "place"))
    asked: list[tuple[str, Json]] = [("attic", {"error": "no such place"}), ("van", {"labels": 5})]
    turns = [("list_labels", {"place": place, "limit": 5}, answer) for place, answer in asked]
    return replace(found, rollouts=(*found.rollouts, rollout_of(found.rows[0], *turns, said="Five.")))


class TakesFewer(WithoutDocument):
    """A server without a schema that takes so many labels at once."""

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self.most = most
        self.handlers["POST", "/put_labels"] = self._put

    async def _put(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            labels = json.loads(request.body).get("labels")
            if not isinstance(labels, list):
                return HttpReply.json({"error": "labels must be a list"}, 422)
            if len(labels) > self.most:
                return HttpReply.json({"error": f"labels: {labels} is too long"}, 422)
            return HttpReply.json({"labels": len(labels)})
        return HttpReply.json({"error": "the arguments must be an object"}, 422)


def _put_before() -> Dataset:
    """Rows with a rollout in which two labels are put at once."""
    labels = {"type": "array", "items": {"type": "string"}, "maxItems": 4, "uniqueItems": True}
    found = dataset(_in_one_more("put_labels", {"labels": labels}, "labels"))
    played = rollout_of(found.rows[0], ("put_labels", {"labels": ["new", "red"]}, {"labels": 2}), said="Two.")
    return replace(found, rollouts=(*found.rollouts, played))


class ListsNoMore(WithoutDocument):
    """A server without a schema that lists nothing today, and takes no cursor but one that it has returned."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/list_parts"] = self._list

    async def _list(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            if json.loads(request.body).get("cursor") is None:
                return HttpReply.json({"error": "closed for stock-taking"}, 409)
            return HttpReply.json({"error": "cursor: take it from the reply before"}, 400)
        return HttpReply.json({"error": "the arguments must be an object"}, 400)


def _paged() -> Dataset:
    """Rows with a rollout that goes on to a second page."""
    found = dataset(_in_one_more("list_parts", {"cursor": {"type": "string"}}))
    first: Turn = ("list_parts", {}, {"parts": ["nut"], "cursor": "c-71f0"})
    turns = [first, ("list_parts", {"cursor": "c-71f0"}, {"parts": ["bolt"]})]
    return replace(found, rollouts=(*found.rollouts, rollout_of(found.rows[0], *turns, said="Two.")))


class BringsItsTools(WithoutDocument):
    """A server without a schema whose rows bring their own definition of a tool, which it holds them to if it is `strict`."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__()
        self.strict = strict
        self.known: dict[str, list[str]] = {}
        self.handlers["POST", "/find_shops"] = self._find

    async def seed(self, session_id: str, row: Json) -> Json:
        tools = row["responses_create_params"]["tools"]
        found = [tool["parameters"]["properties"] for tool in tools if tool["name"] == "find_shops"]
        self.known[session_id] = [name for each in found for name in each]
        return await super().seed(session_id, row)

    async def _find(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            unknown = json.loads(request.body).keys() - set(self.known.get(request.session_id, ()))
            if self.strict and unknown:
                return HttpReply.json({"error": f"unknown argument {min(unknown)}"})
            return HttpReply.json({"shops": 2})
        return HttpReply.json({"error": "the arguments must be an object"})


def _each_its_own(*, recorded: bool = True) -> Dataset:
    """Two rows that declare one tool with other arguments, each with a rollout that calls it, if it is `recorded`."""
    given = [{"kind": {"type": "string"}}, {"street": {"type": "string"}}]
    left = [*given]

    def declare(row: Json) -> None:
        properties = left.pop(0)
        _in_one_more("find_shops", properties, *properties)(row)

    found = dataset(declare)
    turns = [("find_shops", dict.fromkeys(properties, "Mill"), '{"shops": 2}') for properties in given]
    played = [rollout_of(row, turn, said="Two.") for row, turn in zip(found.rows, turns, strict=True)]
    return replace(found, rollouts=(*found.rollouts, *played)) if recorded else replace(found, rollouts=())


class LooksUpMembers(WithoutDocument):
    """A server without a schema whose rows hold no books: of these it says what it says of anything else."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        try:
            category = json.loads(request.body).get("category", "fruit")
        except (ValueError, AttributeError):
            return HttpReply.json({"error": "the arguments must be an object"})
        if category != "fruit" and self.sessions.get(request.session_id) is not None:
            return HttpReply.json({"error": f"nothing of the category {category!r} is here"}, 404)
        return await super()._call_tool(request)


class Acknowledges(CatchAll):
    """A catch-all that takes whatever it is sent, and says no more than that."""

    async def _unknown(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json({"done": request.path[1:]})


class RefusesTheLot(ReferenceServer):
    """A tool that refuses every call for a reason that is not in its schema: the shop is closed."""

    async def call(self, session_id: str, tool: Any, arguments: Json) -> Any:
        if tool.name == "list_stock":
            raise HttpRefusal(409, "the shop is closed")
        return await super().call(session_id, tool, arguments)


class HasLeft(WithoutDocument):
    """What could be done when the rollouts were recorded can be done no more, whatever else the call says."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        with suppress(ValueError, AttributeError):
            if json.loads(request.body).get("origin") == "van":
                return HttpReply.json({"error": "the van has left"}, 400)
        return await super()._call_tool(request)


def _lock_of(document: Any) -> Lock:
    found = Definitions()
    for row in dataset().rows:
        found.add(row.data["responses_create_params"]["tools"], row.source)
    return lock_of(found, served_tools(document))


REFERENCE_LOCK = _lock_of(ReferenceServer().openapi)

CLOSE = {"type": "function", "name": "close_shop", "description": "Close it."}


def _declare_label(row: Json) -> None:
    given = {"place": {"type": "integer", "minimum": 0}, "note": {"type": "string"}}
    parameters = {"type": "object", "properties": given, "required": ["place"]}
    label = {"type": "function", "name": "label_place", "description": "Label it.", "parameters": parameters}
    row["responses_create_params"]["tools"].append(label)


def _declare_mark(row: Json) -> None:
    given = {name: {"type": "integer"} for name in ("row", "column")}
    parameters = {"type": "object", "properties": given, "required": [*given]}
    mark = {"type": "function", "name": "mark_cell", "description": "Mark it.", "parameters": parameters}
    row["responses_create_params"]["tools"].append(mark)


def _declare_close(row: Json) -> None:
    parameters = {"type": "object", "properties": {"door": {"type": "string"}}, "required": ["door"]}
    row["responses_create_params"]["tools"].append({**CLOSE, "parameters": parameters})


TWINS: tuple[Twin, ...] = (
    twin("a value that only the rows allow", "drift-argument-refused", ReferenceServer, data=in_enum("food", "fruit")),
    twin(
        "an argument that only the rows know",
        "drift-argument-refused",
        ReferenceServer,
        data=in_each("count_stock", _offer("shelf", **SHELF)),
    ),
    twin(
        "an argument that is dropped unread",
        "drift-argument-ignored",
        DropsUnread,
        data=in_each("count_stock", _offer("shelf", **SHELF)),
    ),
    twin("a body that is not read", "drift-argument-ignored", ReadsNothing, data=dataset(_declare_close)),
    twin("a body that is read undeclared", "", ReadsTheRequest, data=dataset(_declare_close), tempts="drift tool"),
    twin("a document that asks for more than the server", "", DeclaresMore, tempts="drift tool"),
    twin("a tool that refuses every call", " repeat-recorded", RefusesTheLot, data=in_enum("fruit", "tool", "book")),
    twin("a tool that refuses what can be done no more", "repeat-recorded", HasLeft),
    twin(
        "a catch-all that does not know an argument",
        "drift-argument-refused",
        KnowsItsArguments,
        data=in_each("count_stock", _offer("shelf", **SHELF)),
    ),
    twin("a member of an enum that is lost", "drift-argument-refused", LostAMember, data=unrecorded()),
    twin("a member of an enum that no row holds", "", LooksUpMembers, data=unrecorded(), tempts="drift tool"),
    twin("another name than the rows'", "drift-argument-refused repeat-recorded", AsksForAnotherName),
    twin("a text where rows declare a number", "drift-argument-refused", WantsTexts, data=dataset(_declare_label)),
    twin(
        "texts where rows declare two numbers", "drift-argument-refused", WantsTextsAlone, data=dataset(_declare_mark)
    ),
    twin(
        "two numbers that are not 0",
        "",
        partial(WantsTextsAlone, careful=True),
        data=dataset(_declare_mark),
        tempts="drift tool",
    ),
    twin("places that are counted from 0", "drift-argument-refused repeat-recorded", CountsFromZero, data=_labelled()),
    twin("a number that is not there", "", WantsNumbers, data=dataset(_declare_label), tempts="drift tool"),
    twin("values that mean nothing are refused", "", WantsMeaning, data=dataset(_declare_label), tempts="drift tool"),
    twin("an empty name that is refused", "", ReferenceServer, data=of_any_length(maxLength=40), tempts="drift tool"),
    twin("an empty name that is offered", "drift-argument-refused", ReferenceServer, data=of_any_length(minLength=0)),
    twin("no data for what is left out", "", partial(HoldsRecords, strict=True), data=_found(), tempts="drift tool"),
    twin("no data, whatever is asked", "", partial(HoldsRecords, strict=False), data=_found(), tempts="drift tool"),
    twin("as many as were recorded", "", partial(TakesFewer, most=4), data=_put_before(), tempts="drift tool"),
    twin(
        "fewer than were recorded",
        "drift-argument-refused repeat-recorded",
        partial(TakesFewer, most=1),
        data=_put_before(),
    ),
    twin("a cursor that is not returned", "repeat-recorded", ListsNoMore, data=_paged(), tempts="drift"),
    twin("a limit as rows say", "", partial(ListsLabels, most=100), data=_listed(), tempts="drift tool"),
    twin("a limit below the rows'", "drift-argument-refused", partial(ListsLabels, most=50), data=_listed()),
    twin("a zero that is taken for none", "drift-argument-refused", TakesZeroForNone, data=dataset(_declare_label)),
    twin("a catch-all that does not know a tool", "tool-routed", CatchAll, data=declare("get_weather")),
    twin(
        "a catch-all that does not know a tool with arguments",
        "tool-routed",
        KnowsNoSuchTool,
        data=declare("get_weather", city={"type": "string"}),
    ),
    twin(
        "a catch-all that acknowledges whatever it gets",
        "",
        Acknowledges,
        data=declare("get_weather"),
        tempts="drift tool live",
    ),
    twin("a reply unlike its declaration", "drift-result repeat-recorded", lambda: _with_replies(OrdersAnswers())),
    twin(
        "rows that disagree",
        "drift-rows-disagree",
        ReferenceServer,
        data=_in_one("list_stock", lambda tool: tool.update(strict=False)),
    ),
    twin(
        "rows that bring their own tools",
        "",
        partial(BringsItsTools, strict=True),
        data=_each_its_own(),
        tempts="drift",
    ),
    twin(
        "rows that disagree, and a server that takes all",
        "drift-rows-disagree",
        partial(BringsItsTools, strict=False),
        data=_each_its_own(),
    ),
    twin(
        "rows that bring their own tools, and no rollout",
        "",
        partial(BringsItsTools, strict=True),
        data=_each_its_own(recorded=False),
        tempts="drift",
    ),
    twin(
        "rows that disagree, no rollout, and a server that takes all",
        "drift-rows-disagree",
        partial(BringsItsTools, strict=False),
        data=_each_its_own(recorded=False),
    ),
    twin(
        "a default that its own schema refuses",
        "drift-definition-unsound",
        ReferenceServer,
        data=in_each("add_stock", lambda tool: tool["parameters"]["properties"]["place"].update(default="cellar")),
    ),
    twin(
        "a value that only the server takes", "drift-server-takes-more", ReferenceServer, data=in_enum("fruit", "tool")
    ),
    twin(
        "a tool that is described twice",
        "drift-description",
        ReferenceServer,
        data=_in_one("list_stock", lambda tool: tool.update(description="Lists.")),
    ),
    twin(
        "a server that changed since it was locked",
        "drift-lock tool-served-declared",
        ReadsNothing,
        lock=REFERENCE_LOCK,
    ),
    twin(
        "rows that changed since they were locked",
        "drift-lock",
        ReferenceServer,
        data=in_each("list_stock", lambda tool: tool.update(strict=False)),
        lock=REFERENCE_LOCK,
    ),
)


def _with_replies(server: ReferenceServer) -> ReferenceServer:
    """The server with the document of the reference."""
    server.openapi["paths"] = ReferenceServer().openapi["paths"]
    return server
