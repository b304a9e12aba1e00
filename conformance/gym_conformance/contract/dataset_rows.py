"""Dataset rows, the tools that they declare to the policy, and recorded rollouts, as values."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gym_conformance.documents import parse_json

type_name = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}


@dataclass(frozen=True)
class Source:
    """Where a value was read: a file and its line, counted from 1; line 0 means that we made it up."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}" if self.line else "made-up row"


@dataclass(frozen=True)
class Tool:
    """A function tool as a row declares it. `parameters` is its JSON Schema, of an object unless it says otherwise."""

    name: str
    parameters: Mapping[str, Any]
    strict: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Call:
    """One tool call: the tool's name and its parsed arguments, which are the HTTP body."""

    name: str
    arguments: Any


@dataclass(frozen=True, eq=False)
class Row:
    """One task: the row that `seed_session` gets, and that `verify` gets together with the response.

    `task` is the row as it was read if it is a materialized task (nemo_gym/task_materialization.py, 0.7.0), with its
    `task_id` and `task_input`; `data` is then the equivalent flat row.
    """

    data: Mapping[str, Any] = field(repr=False)
    source: Source
    task: Mapping[str, Any] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return str(self.source)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The function tools of `responses_create_params.tools`, flat or nested; others (hosted) are left out."""
        declared = self.data["responses_create_params"].get("tools")
        return tuple(tool for entry in _listed(declared) if (tool := _read_tool(entry)) is not None)

    @property
    def allows_calls_at_once(self) -> bool:
        """Whether one turn of the policy may hold several calls, as OpenAI's default has it."""
        return self.data["responses_create_params"].get("parallel_tool_calls") is not False

    def parameters_of(self, tool: str) -> Mapping[str, Any]:
        """The parameters of the tool of that name, a JSON Schema; empty if the row declares none."""
        return self._parameters.get(tool, {})

    @cached_property
    def _parameters(self) -> Mapping[str, Mapping[str, Any]]:
        return {tool.name: tool.parameters for tool in self.tools}

    @cached_property
    def opening(self) -> bytes:
        """The row as JSON without its closing brace, written once, since `verify` gets the row with more after it.

        ASCII only, so that a lone surrogate is sent as an escape.
        """
        return json.dumps(dict(self.data), separators=(",", ":")).encode()[:-1]

    def shape(self, tools: object = None) -> object:
        """A hashable value that is equal for two rows with the same keys, types and tools, which a server reads alike.

        `tools` is a known value that is equal for equal tools; without it, the names of all tools are used.
        """
        params = {key: value for key, value in self.data["responses_create_params"].items() if key != "tools"}
        names = tuple(sorted(tool.name for tool in self.tools)) if tools is None else tools
        return _shape({**self.data, "responses_create_params": params}, depth=4), names


#: Fields that a rollout has of its own, whatever the row says.
_RECORDED_ANEW = frozenset({"responses_create_params", "response", "reward", "agent_ref"})


@dataclass(frozen=True, eq=False)
class Rollout:
    """A recorded rollout: the row's fields, the policy's response, and the reward that verify gave."""

    data: Mapping[str, Any]
    source: Source

    def __str__(self) -> str:
        return str(self.source)

    @property
    def response(self) -> Mapping[str, Any]:
        """The recorded OpenAI Response object."""
        response: Mapping[str, Any] = self.data["response"]
        return response

    def with_response(self, **fields: Any) -> "Rollout":
        """The rollout with these fields in its response."""
        return replace(self, data={**self.data, "response": {**self.response, **fields}})

    @property
    def reward(self) -> Any:
        """As recorded; not necessarily a number."""
        return self.data["reward"]

    @property
    def output(self) -> list[Any]:
        """The response's output items."""
        output = self.response.get("output")
        return output if isinstance(output, list) else []

    @property
    def calls(self) -> list[Call]:
        """The policy's tool calls that have an object as arguments, in order."""
        return [call for _, call in self._calls()]

    @property
    def answered(self) -> list[tuple[Call, Any]]:
        """The calls with a recorded output, each with that output."""
        outputs = {
            repr(item.get("call_id")): item.get("output")
            for item in self.output
            if isinstance(item, dict) and item.get("type") == "function_call_output"
        }
        return [(call, outputs[call_id]) for call_id, call in self._calls() if call_id in outputs]

    @property
    def played(self) -> list[tuple[Call, Any]]:
        """All calls, each with its recorded output, or None."""
        answers = iter(self.answered)
        found, answer = [], next(answers, None)
        for call in self.calls:
            if answer and answer[0] == call:
                found.append(answer)
                answer = next(answers, None)
            else:
                found.append((call, None))
        return found

    def _calls(self) -> Iterator[tuple[str, Call]]:
        for item in self.output:
            if isinstance(item, dict) and item.get("type") == "function_call":
                try:
                    arguments = parse_json(item["arguments"])
                except (KeyError, TypeError, ValueError, AttributeError):
                    continue
                if isinstance(arguments, dict):
                    yield repr(item.get("call_id")), Call(str(item.get("name")), arguments)

    @property
    def last_text(self) -> str:
        """The policy's last message; '' if the rollout ends otherwise."""
        last = self.output[-1] if self.output else None
        return _text(last) if isinstance(last, dict) and isinstance(last.get("content"), list) else ""

    def belongs_to(self, row: Row) -> bool:
        """Whether this is a rollout of that row, judging by its input, which is all that every version keeps.

        Two rows may ask the same question about two pictures, so whatever else a version keeps must not contradict.
        Rows that a server's own model has read may have additional nulls and defaults.
        """
        return self.input_texts(self.data) == self.input_texts(row.data) and all(
            _holds(self.data[key], row.data[key]) for key in row.data.keys() & self.data.keys() - _RECORDED_ANEW
        )

    def rows_of(self, rows: Iterable[Row]) -> list[Row]:
        """The rows that this may be a rollout of: those whose fields it keeps best, if they do not differ.

        Games and worlds use one prompt for all rows. Only the fields that verify kept tell which row a rollout belongs
        to; if it kept none, it is unknown.
        """
        possible = [row for row in rows if self.belongs_to(row)]
        fewest = min((self._not_kept(row) for row in possible), default=0)
        best = [row for row in possible if self._not_kept(row) == fewest]
        return best if all(_own(row.data) == _own(best[0].data) for row in best) else []

    def _not_kept(self, row: Row) -> int:
        """How many of the row's own fields this lacks, or has with defaults."""
        own = _own(row.data).items()
        return sum(_without_nulls(self.data.get(key)) != _without_nulls(value) for key, value in own)

    @staticmethod
    def input_texts(data: Mapping[str, Any]) -> tuple[str, ...]:
        """The texts of the input; versions differ in the format of the messages around them."""
        given = data["responses_create_params"].get("input")
        return (given,) if isinstance(given, str) else tuple(map(_text, _listed(given)))


def _own(data: Mapping[str, Any]) -> dict[str, Any]:
    """The row's fields besides its task, without nulls."""
    return {key: value for key, value in data.items() if key not in _RECORDED_ANEW and value is not None}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _holds(kept: Any, value: Any) -> bool:
    """Whether a value has become another one only by what was added to its objects."""
    if isinstance(value, dict) and isinstance(kept, dict):
        return all(inner is None or _holds(kept.get(key), inner) for key, inner in value.items())
    if isinstance(value, list) and isinstance(kept, list):
        return len(value) == len(kept) and all(map(_holds, kept, value))
    return bool(kept == value)


def _listed(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else []


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else message
    if isinstance(content, list):
        return "".join(str(part.get("text", part.get("image_url", ""))) for part in content if isinstance(part, dict))
    return str(content)


def prompt_of(row: Row) -> str:
    """The user's last message; '' if there is none."""
    given = row.data["responses_create_params"].get("input")
    if isinstance(given, str):
        return given
    asked = [message for message in _listed(given) if isinstance(message, dict) and message.get("role") == "user"]
    return _text(asked[-1]) if asked else ""


def _read_tool(entry: Any) -> Tool | None:
    if not isinstance(entry, dict) or entry.get("type", "function") != "function":
        return None
    nested = entry.get("function")
    definition = nested if isinstance(nested, dict) else entry
    parameters = definition.get("parameters")
    return Tool(
        str(definition.get("name", "")),
        # a function's arguments are an object, whether or not its definition says so
        {"type": "object"} | (parameters if isinstance(parameters, dict) else {}),
        strict=definition.get("strict") is True,
    )


def _shape(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return frozenset([(key, _shape(inner, depth - 1)) for key, inner in value.items()]) if depth else "object"
    if isinstance(value, list):
        return frozenset([_shape(inner, depth - 1) for inner in value]) if depth else "array"
    return type_name.get(type(value), "null")
