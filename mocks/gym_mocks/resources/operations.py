from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel


@dataclass(frozen=True)
class Operation:
    """One POST route as the OpenAPI document shows it; its body is a model, or a union of some."""

    name: str
    summary: str
    body: Any
    result: Any = field(default=Any, hash=False)  # a type's annotations need not be hashable


def document(title: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI document of a server, as the installed FastAPI writes it for these routes.

    It takes a tenth of a second, so servers of one kind have it written once.
    """
    return deepcopy(_written(title, tuple(operations)))


@lru_cache(maxsize=64)
def _written(title: str, operations: tuple[Operation, ...]) -> dict[str, Any]:
    from fastapi import FastAPI  # noqa: PLC0415 - a gym that nobody asks for a document starts without it

    app = FastAPI(title=title, version="0.1.0")
    for operation in operations:
        for body in get_args(operation.body) or (operation.body,):
            _build(body)

        def endpoint(body: Any) -> Any:
            """Never called: the document is made of its signature."""

        endpoint.__name__ = operation.name
        endpoint.__annotations__ = {"body": operation.body, "return": operation.result}
        app.post(f"/{operation.name}", description=operation.summary)(endpoint)
    made: dict[str, Any] = app.openapi()
    return made


def _build(model: type[BaseModel]) -> None:
    """Build a model now: of one that puts it off FastAPI makes an adapter that warns when it is built."""
    model.model_rebuild()
    model.model_config["defer_build"] = False
