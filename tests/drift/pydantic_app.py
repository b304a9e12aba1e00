"""A FastAPI app with a route for each thing that pydantic writes into a schema; each echoes what it read.

`python pydantic_app.py` prints its OpenAPI document; `corpus/` holds those of several versions.
"""

import datetime as dt
import enum
import json
import sys
import uuid
from typing import Any, Literal

import fastapi
import pydantic
from fastapi import Body, FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field


class Color(str, enum.Enum):  # noqa: UP042 - as most env authors still write it
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Plain(BaseModel):
    city: str
    days: int = 3


class Nullable(BaseModel):
    note: str | None = None
    limit: int | None = Field(None, ge=1, le=10, description="how many")


class Enums(BaseModel):
    color: Color = Color.RED
    level: Level
    unit: Literal["c", "f"] = "c"


class Bounds(BaseModel):
    x: float = Field(gt=0, lt=1)
    n: int = Field(ge=0, multiple_of=5)
    s: str = Field(min_length=2, max_length=4)
    p: str = Field(pattern="^[a-z]+$")


class Formats(BaseModel):
    day: dt.date
    at: dt.datetime
    id: uuid.UUID


class Inner(BaseModel):
    sku: str
    quantity: int = Field(1, ge=1)


class Nested(BaseModel):
    item: Inner = Field(description="what")
    more: list[Inner] = []
    by_name: dict[str, Inner] = {}


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Union(BaseModel):
    target: int | str | None = None
    who: Inner | Plain


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Tagged(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Forbid(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: str


class Allow(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: str


class Sets(BaseModel):
    tags: set[str] = set()
    pair: tuple[int, str]
    few: list[str] = Field([], max_length=3)


class Flags(BaseModel):
    on: bool
    ratio: float = 1.0


class Empty(BaseModel):
    pass


class Alias(BaseModel):
    from_: str = Field(alias="from")


class Reply(BaseModel):
    output: Any


MODELS: tuple[type[BaseModel], ...] = (
    *(Plain, Nullable, Enums, Bounds, Formats, Nested, Tree, Union, Tagged, Forbid, Allow, Sets, Flags, Empty, Alias),
)

app = FastAPI()


def _add(model: type[BaseModel]) -> None:
    async def tool(body: BaseModel) -> dict[str, Any]:
        return {"output": body.model_dump(mode="json")}

    tool.__annotations__["body"] = model
    app.post(f"/{model.__name__.lower()}", response_model=Reply)(tool)


for one in MODELS:
    _add(one)


@app.post("/embedded")
async def embedded(a: Plain = Body(embed=True)) -> Any:  # noqa: B008, FAST002 - the oldest version knows no other way
    return {"output": a}


@app.post("/two_bodies")
async def two_bodies(a: Plain, b: int = Body()) -> Any:  # noqa: FAST002
    return {"output": [a, b]}


@app.post("/optional_body")
async def optional_body(body: Plain | None = None) -> Any:
    return {"output": body}


@app.post("/free")
async def free(body: dict[str, Any]) -> Any:
    return {"output": body}


@app.post("/anything")
async def anything(body: Any = Body()) -> Any:  # noqa: B008, FAST002
    return {"output": body}


@app.post("/no_body")
async def no_body(request: Request) -> Any:
    return {"output": len(await request.body())}


@app.post("/nothing_read")
async def nothing_read() -> Any:
    return {"output": "done"}


@app.post("/query")
async def query(a: int, b: str = "x") -> Any:
    return {"output": [a, b]}


@app.post("/listed")
async def listed(body: list[int]) -> Any:
    return {"output": body}


@app.post("/seed_session")
async def seed_session(body: dict[str, Any]) -> Any:
    return body


@app.post("/verify")
async def verify(body: dict[str, Any]) -> Any:
    return body


if __name__ == "__main__":
    document = app.openapi()
    document["info"] = {"title": f"fastapi {fastapi.__version__}, pydantic {pydantic.VERSION}", "version": "1"}
    sys.stdout.write(json.dumps(document, indent=1, sort_keys=True) + "\n")
