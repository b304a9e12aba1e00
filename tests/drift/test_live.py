"""Drift asked of a real FastAPI server: what it confirms, what it does not, and what is no drift at all."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from fastapi import FastAPI, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Finding, Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import ResourcesServer
from gym_mocks.serving import serve
from gym_mocks.wire import HttpReply, HttpRequest
from tests.drift.pairs import INTEGER, STRING, of
from tests.twins.drift import in_enum
from tests.twins.innocent import WithoutDocument
from tests.twins.judging import found_by, judge
from tests.twins.twin import dataset, rollout_of

CHECKS = ("drift-argument-refused", "drift-argument-ignored", "drift-result")


class Place(BaseModel):
    city: str = Field(max_length=20)
    unit: Literal["celsius", "kelvin"] = "celsius"


class Trip(BaseModel):
    stops: list[Place] = Field(max_length=2)


class Counted(BaseModel):
    count: Annotated[int, Field(ge=1, le=9)]


class Out(BaseModel):
    output: str


app = FastAPI()


@app.post("/seed_session")
async def seed_session() -> dict[str, Any]:
    return {}


@app.post("/verify")
async def verify(request: Request) -> dict[str, Any]:
    return {**await request.json(), "reward": 1.0}


@app.post("/weather")
async def weather(body: Place) -> Out:
    return Out(output=f"{body.city}, 20 {body.unit}")


@app.post("/travel")
async def travel(body: Trip) -> Out:
    return Out(output=f"{len(body.stops)} stops")


@app.post("/count")
async def count(body: Counted) -> Out:
    if body.count == 1:
        raise HTTPException(404, "no such number")
    return Out(output=str(body.count))


@app.post("/crash")
async def crash(body: Counted) -> Out:
    raise HTTPException(500, f"cannot count to {body.count}")


@app.post("/queried")
async def queried(city: Annotated[str, Query()]) -> Out:
    return Out(output=city)


@app.post("/bare")
async def bare(request: Request) -> dict[str, Any]:
    """Reads the request itself: no schema shows what it takes."""
    return {"output": (await request.json()).get("city")}


@app.post("/noted")
async def noted(request: Request) -> dict[str, Any]:
    """Takes its argument for missing where it is null, as `dict.get` does."""
    if (note := (await request.json()).get("note")) is None:
        raise HTTPException(400, "note is required")
    return {"output": note}


@app.post("/idle")
async def idle() -> dict[str, Any]:
    return {"output": "done"}


class PlainJson(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


@app.post("/rendered", response_model=None, response_class=PlainJson)
async def rendered(body: Place) -> dict[str, Any]:
    return {"result": body.city}


@app.post("/misdeclared", response_model=None, responses={200: {"model": Out}})
async def misdeclared(body: Place) -> dict[str, Any]:
    return {"result": body.city}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(app) as served:
        yield served


def found(url: str, tool: str, parameters: dict[str, Any]) -> dict[str, list[Finding]]:
    declared = {"type": "function", "name": tool, "description": "d", "parameters": parameters}
    row = Row({"responses_create_params": {"input": "hi", "tools": [declared]}}, Source(Path("rows.jsonl"), 7))
    return judge(url, Dataset((row,), (), 1), checks=CHECKS)


def failed(findings: dict[str, list[Finding]]) -> list[tuple[str, str]]:
    return [(each.check, each.subject) for several in findings.values() for each in several if each.told]


UNIT = {"enum": ["celsius", "fahrenheit"]}


@pytest.mark.parametrize(
    ("tool", "parameters", "expected"),
    [
        ("weather", of("city", city=STRING | {"maxLength": 20}, unit={"enum": ["celsius", "kelvin"]}), []),
        ("weather", of("city", city=STRING | {"maxLength": 20}, unit=UNIT), [("refused", "weather/unit")]),
        ("weather", of("city", city=STRING), [("refused", "weather/city")]),
        ("weather", of(city=STRING | {"maxLength": 20}), [("refused", "weather/city")]),
        ("weather", of("town", town=STRING), [("refused", "weather/city")]),
        ("weather", of("city", city=STRING | {"maxLength": 20}, days=INTEGER), [("ignored", "weather/days")]),
        (
            "travel",
            of(
                "stops",
                stops={"type": "array", "maxItems": 2, "items": of("city", city=STRING | {"maxLength": 9}, unit=UNIT)},
            ),
            [("refused", "travel/stops/*/unit")],
        ),
        ("count", of("count", count=INTEGER | {"minimum": 1, "maximum": 9}), []),
        ("count", of("count", count=INTEGER | {"minimum": 1}), [("refused", "count/count")]),
        ("count", of("count", count=STRING), [("refused", "count/count")]),
        ("crash", of("count", count=INTEGER | {"minimum": 1, "maximum": 9}), []),
        ("queried", of("city", city=STRING), [("refused", "queried/city")]),
        ("bare", of("city", city=STRING), []),
        ("noted", of("note", note=STRING), []),
        ("noted", of("note", note={"type": ["string", "null"]}), [("refused", "noted")]),
        ("idle", of("city", city=STRING), [("ignored", "idle/city")]),
        ("idle", of(), []),
        ("rendered", of("city", city=STRING | {"maxLength": 20}), []),
        ("misdeclared", of("city", city=STRING | {"maxLength": 20}), [("result", "misdeclared")]),
    ],
)
def test_what_a_real_server_confirms(
    url: str, tool: str, parameters: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    findings = found(url, tool, parameters)
    kinds = {"refused": "drift-argument-refused", "ignored": "drift-argument-ignored", "result": "drift-result"}
    told = json.dumps([finding.as_json() for several in findings.values() for finding in several], indent=1)
    assert sorted(failed(findings)) == sorted((kinds[kind], subject) for kind, subject in expected), told


def test_a_finding_has_all_that_is_needed_to_mend_it(url: str) -> None:
    findings = found(url, "weather", of("city", city=STRING | {"maxLength": 20}, unit=UNIT))
    (finding,) = (each for each in findings["drift-argument-refused"] if each.verdict is Verdict.FAIL)
    assert (finding.file, finding.line) == ("rows.jsonl", 7)
    assert finding.expected == "unit of weather as the definition allows it"
    assert "fahrenheit" in finding.actual
    assert "status 422" in finding.actual
    assert len([command for command in finding.reproduce if "/weather" in command]) == 2
    (row,) = finding.drift
    assert (row["live"], row["weight"], row["witness"]["unit"]) == ("confirmed", "breaking", "fahrenheit")


def test_what_is_not_confirmed_is_told_and_weighs_less(url: str) -> None:
    (finding,) = found(url, "bare", of("city", city=STRING))["drift-argument-ignored"]
    assert finding.verdict is Verdict.PASS
    (row,) = finding.drift
    assert (row["live"], row["weight"]) == ("not confirmed", "note")
    assert row["detail"]


class ShopClosed(ReferenceServer):
    """The shop is closed, whatever is asked."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/add_stock":
            return HttpReply.json({"error": "the shop is closed"}, 409)
        return await super().dispatch(request)


def test_what_only_the_schemas_know_is_a_caution() -> None:
    found = found_by("drift-argument-refused", ShopClosed(), in_enum("food", "fruit"))
    assert {finding.verdict for finding in found} == {Verdict.PASS}
    [finding] = [finding for finding in found if finding.caution]
    assert "accepts no call of add_stock that was tried" in finding.caution


class LooksUpFirst(ReferenceServer):
    """Says in words of its own what is wrong, and of an unknown item that alone; of one place it may know better."""

    def __init__(self, *more: str) -> None:
        super().__init__()
        self.known = ("shelf", "van", *more)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path != "/count_stock":
            return await super().dispatch(request)
        said = json.loads(request.body)
        if not {"item"} <= said.keys() <= {"item", "place"}:
            return HttpReply.json({"error": "what is meant?"}, 400)
        if said["item"] not in ("atlas", "novel", "hammer", "apple", "pear"):
            return HttpReply.json({"error": "nobody has heard of that"}, 400)
        if said.get("place") not in (None, *self.known):
            return HttpReply.json({"error": "that is nowhere"}, 400)
        return HttpReply.json({"quantity": 7})


def _places(*more: str) -> Dataset:
    def change(row: dict[str, Any]) -> None:
        tool = next(each for each in row["responses_create_params"]["tools"] if each["name"] == "count_stock")
        for branch in tool["parameters"]["properties"]["place"]["anyOf"]:
            if "enum" in branch:
                branch["enum"] += more

    return dataset(change)


def _items(**said: Any) -> Dataset:
    def change(row: dict[str, Any]) -> None:
        tool = next(each for each in row["responses_create_params"]["tools"] if each["name"] == "count_stock")
        tool["parameters"]["properties"]["item"] |= said

    return dataset(change)


@pytest.mark.parametrize(
    ("server", "data", "told"),
    [
        (LooksUpFirst(), _places("cellar"), True),
        (LooksUpFirst("cellar"), _places("cellar"), False),
        (LooksUpFirst(), _items(maxLength=80), False),
    ],
    ids=["refused", "taken", "unknown"],
)
def test_a_known_call_shows_what_one_that_is_made_up_does_not(
    server: ReferenceServer, data: Dataset, told: bool
) -> None:
    """The made-up ones are refused for an item that nobody knows, and so is an item of which only the length is strange."""
    found = found_by("drift-argument-refused", server, data)
    about = [finding for finding in found if finding.drift and finding.drift[0]["tool"] == "count_stock"]
    assert about
    assert any(finding.verdict is Verdict.FAIL for finding in found) == told, [finding.actual for finding in found]
    if told:
        assert "is accepted there" in next(finding.actual for finding in found if finding.verdict is Verdict.FAIL)


class Comment(BaseModel):
    path: str
    body: str


class Reviews(ResourcesServer):
    """Takes comments on files, and of a file that is not there says that alone; the rows let a comment have no body."""

    def __init__(self) -> None:
        def add_comments(comments: list[Comment]) -> dict[str, int]:
            """Comments on files."""
            return {"total": len(comments)}

        super().__init__("reviews", tools=[add_comments], verify=lambda: 0.0)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/add_comments":
            said = json.loads(request.body)["comments"]
            if any(each["path"] not in ("a.py", "b.py") for each in said):
                return HttpReply.json({"error": "there is no such file"}, 404)
            if any(each["body"] is None for each in said):
                return HttpReply.json({"error": [{"body": "must be a text"}]}, 400)
        return await super().dispatch(request)


def test_a_known_call_shows_what_a_member_of_its_list_must_not_be() -> None:
    comment = {"path": STRING, "body": {"type": ["string", "null"]}}
    items = {"type": "object", "properties": comment, "required": ["path", "body"], "additionalProperties": False}
    parameters = {"type": "object", "properties": {"comments": {"type": "array", "minItems": 1, "items": items}}}
    declared = {"type": "function", "name": "add_comments", "parameters": parameters | {"required": ["comments"]}}
    row = Row({"responses_create_params": {"input": "Review.", "tools": [declared]}}, Source(Path("rows.jsonl"), 1))
    comments = [{"path": path, "body": "Why?"} for path in ("a.py", "b.py")]
    recorded = rollout_of(row, ("add_comments", {"comments": comments}, {"total": 2}))
    found = found_by("drift-argument-refused", Reviews(), Dataset((row,), (recorded,), 1))
    told = [finding for finding in found if finding.verdict is Verdict.FAIL]
    assert [finding.subject for finding in told] == ["add_comments/comments/*/body"], [
        finding.reason for finding in found
    ]
    assert '"path": "b.py"' in told[0].actual


class AsksForMore(ReferenceServer):
    """Tells all that a call lacks in one text; some of it is optional in the rows."""

    def __init__(self, *asked: str) -> None:
        super().__init__()
        self.asked = asked

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path != "/list_stock":
            return await super().dispatch(request)
        said = json.loads(request.body)
        missing = [f"{name}: required" for name in self.asked if name not in said]
        return HttpReply.json({"error": "; ".join(missing)} if missing else {"stock": []}, 400 if missing else 200)


def _optional_place(**more: Any) -> Dataset:
    def change(row: dict[str, Any]) -> None:
        for tool in row["responses_create_params"]["tools"]:
            if tool["name"] == "list_stock":
                tool["parameters"]["properties"]["place"] = {"type": "string", **more}

    return dataset(change)


class ListsAPlace(ReferenceServer):
    """Takes a place for none where it is null, says alike of what is empty and of what is no text, and knows no place."""

    def __init__(self, *, texts: bool) -> None:
        super().__init__()
        self.texts = texts

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/openapi.json":  # which knows no place
            return HttpReply.json({"error": "not found"}, 404)
        place = json.loads(request.body).get("place") if request.path == "/list_stock" else None
        if place is None:
            return await super().dispatch(request)
        if not self.texts or not isinstance(place, str) or not place:
            return HttpReply.json({"error": "place must be a text that is not empty"}, 400)
        return HttpReply.json({"error": f"there is no place {place}"}, 404)


@pytest.mark.parametrize(
    ("texts", "more", "drifts"),
    [
        pytest.param(True, {}, False, id="other texts are not found"),
        pytest.param(False, {"pattern": "^[a-z]*$"}, True, id="each text that is defined"),
        pytest.param(False, {}, False, id="each text that is made up"),
    ],
)
def test_an_empty_text_is_no_wrong_type(texts: bool, more: dict[str, Any], drifts: bool) -> None:
    """It is refused like one, which shows no drift where other texts are only not found, or may mean nothing."""
    found = found_by("drift-argument-refused", ListsAPlace(texts=texts), _optional_place(**more))
    told = [finding.expected for finding in found if finding.verdict is Verdict.FAIL]
    assert told == (["place of list_stock as the definition allows it"] if drifts else [])


@pytest.mark.parametrize("asked", [("category", "place"), ("place", "category"), ("category",)])
def test_a_recorded_call_shows_what_must_not_be_left_out(asked: tuple[str, ...]) -> None:
    """It is refused for an argument that is optional in the rows, as it is without one that is not."""
    found = found_by("drift-argument-refused", AsksForMore(*asked), _optional_place())
    told = [finding for finding in found if finding.verdict is Verdict.FAIL]
    assert [finding.expected for finding in told] == [
        "place of list_stock as the definition allows it" for _ in asked[1:]
    ]


class Keeps(ReferenceServer):
    """Publishes no schema, and refuses one tool's calls: for a key that is called otherwise here, or whatever they say."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self.keys = keys

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/openapi.json":
            return HttpReply.json({"error": "not found"}, 404)
        if request.path == "/list_stock" and not self.keys:
            return HttpReply.json({"error": "the shelves are locked"}, 400)
        amount = json.loads(request.body).get("amount") if request.path == "/move_stock" and self.keys else None
        if isinstance(amount, dict) and (unknown := next((key for key in amount if key not in self.keys), None)):
            return HttpReply.json({"error": f"{unknown} is unknown"}, 400)
        return await super().dispatch(request)


def test_a_key_within_an_argument_that_is_called_otherwise_is_told() -> None:
    found = found_by("drift-argument-refused", Keeps("item", "pieces"))
    told = [finding.expected for finding in found if finding.verdict is Verdict.FAIL]
    assert told == ["quantity of move_stock as the definition allows it"]


def _bare() -> Dataset:
    """Rows and rollouts whose lists are asked for with nothing."""

    def change(row: dict[str, Any]) -> None:
        for tool in row["responses_create_params"]["tools"]:
            if tool["name"] == "list_stock":
                tool["parameters"] = {"type": "object", "properties": {}}

    def bare(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "arguments": "{}"} if item.get("name") == "list_stock" else item

    data = dataset(change)
    responses = [{**one.response, "output": [bare(item) for item in one.output]} for one in data.rollouts]
    rollouts = [
        replace(one, data={**one.data, "response": response})
        for one, response in zip(data.rollouts, responses, strict=True)
    ]
    return replace(data, rollouts=tuple(rollouts))


def test_a_call_without_arguments_is_not_refused_for_them() -> None:
    """What was recorded of it holds no longer, and nothing about it is surely wrong."""
    found = found_by("drift-argument-refused", Keeps(), _bare())
    assert {finding.verdict for finding in found} == {Verdict.PASS}, found


class SoldOut(WithoutDocument):
    """A server without a schema that has nothing to count any more, which it says in a word, and names what it lacks."""

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        if request.path == "/count_stock":
            with suppress(ValueError, AttributeError):
                lacks = json.loads(request.body).get("item") is None
                return HttpReply.json({"error": "item is required" if lacks else "sold_out"}, 400)
        return await super()._call_tool(request)


def test_a_word_of_a_refusal_is_no_name_of_an_argument() -> None:
    """Though another refusal names an argument where that word would stand."""
    found = judge(SoldOut(), checks=CHECKS[:1])[CHECKS[0]]
    assert {finding.verdict for finding in found} == {Verdict.PASS}, found
