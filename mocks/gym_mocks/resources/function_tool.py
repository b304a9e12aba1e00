import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import BaseModel, create_model
from pydantic_core import to_jsonable_python

from gym_mocks.resources.models import Arguments, inlined, validated, whole


@dataclass(frozen=True)
class FunctionTool:
    """A tool, made of a plain typed function.

    A parameter named `state` receives the session's state; the others are the arguments. Arguments are held
    to the function's types strictly (no "5" for an int, nothing extra), so that the route takes exactly what
    the declared JSON Schema says. The docstring's first paragraph is the description.

    Attributes:
        name: the function's name, and the route's.
        description: what the policy is told.
        function: sync or async. A sync one runs on the event loop: one that waits must be async.
        arguments: the model of its arguments.
        result: the type that the function is declared to return; `Any` where it does not say.
    """

    name: str
    description: str
    function: Callable[..., Any]
    arguments: type[BaseModel]
    result: Any
    takes_state: bool

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, function: Callable[..., Any]) -> "FunctionTool":
        """The tool of a function, made once for all servers that have it.

        Raises:
            TypeError: a parameter has no type, or is of a kind that JSON arguments cannot fill.
        """
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        parameters = inspect.signature(function).parameters
        for name, parameter in parameters.items():
            if name == "state":
                continue
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
                raise TypeError(f"tool {function.__name__}: parameter {name} must be a named one")
            if name not in hints:
                raise TypeError(f"tool {function.__name__}: parameter {name} has no type")
            fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        return cls(
            name=function.__name__,
            description=" ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split()),
            function=function,
            arguments=create_model(f"{function.__name__}_arguments", __base__=Arguments, **fields),
            result=hints.get("return", Any),
            takes_state="state" in parameters,
        )

    @property
    def declaration(self) -> dict[str, Any]:
        """The function tool as a row declares it, in the Responses API's flat form."""
        schema = {"properties": {}, "required": []} | inlined(self.arguments.model_json_schema())
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": schema,
            "strict": True,
        }

    def bind(self, body: Any) -> dict[str, Any]:
        """The function's arguments out of a request body.

        Raises:
            Refused: 422, as FastAPI refuses.
        """
        return dict(validated(self.arguments, whole(body), strict=True))

    async def call(self, state: Any, arguments: dict[str, Any]) -> Any:
        """Run the function; its result as plain JSON values."""
        result = self.function(**arguments, **({"state": state} if self.takes_state else {}))
        if inspect.isawaitable(result):
            result = await result
        return to_jsonable_python(result)
