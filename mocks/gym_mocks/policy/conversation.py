"""The three APIs' requests as one conversation."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from gym_mocks.policy.items import Say, Think, ToolCall, TurnItem

PolicyApi = Literal["responses", "chat", "messages"]
MARK = "gm"  # in every id that we give out: tells our turns from those a row's prompt came with


@dataclass(frozen=True, slots=True)
class Prompt:
    """What somebody else said: `role`: system (developer too), user, or assistant in a row's example."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call_id: str
    text: str


ConversationEntry = Prompt | ToolResult | TurnItem


@dataclass(frozen=True)
class PolicyRequest:
    """One request to the policy, whichever API it came by.

    Attributes:
        api: the API it came by.
        body: the request's JSON object.
        api_key: of the Authorization or x-api-key header, without `Bearer`; empty where there is none.
        route: the route that took it; empty for the policy's default.
    """

    api: PolicyApi
    body: dict[str, Any]
    api_key: str = field(default="", repr=False)
    route: str = ""

    @property
    def model(self) -> str:
        """The model asked for; empty where none is named."""
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    @cached_property
    def entries(self) -> tuple[ConversationEntry, ...]:
        """The conversation so far."""
        return tuple(READERS[self.api](self.body))

    @cached_property
    def step(self) -> int:
        """How many turns this policy has had in the conversation: 0 at its first."""
        return sum(1 for ours, _ in groupby(self.entries, lambda entry: isinstance(entry, TurnItem)) if ours)

    @property
    def prompt(self) -> tuple[Prompt, ...]:
        """What was said before the policy's first turn."""
        first = next((i for i, e in enumerate(self.entries) if not isinstance(e, Prompt)), len(self.entries))
        return tuple(entry for entry in self.entries[:first] if isinstance(entry, Prompt))

    @property
    def results(self) -> tuple[str, ...]:
        """What tools have answered so far."""
        return tuple(entry.text for entry in self.entries if isinstance(entry, ToolResult))

    @property
    def text(self) -> str:
        """The last thing that was said to the policy: a user's message or a tool's answer."""
        texts = (entry.text for entry in reversed(self.entries) if isinstance(entry, Prompt | ToolResult))
        return next(texts, "")

    @cached_property
    def tools(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema of each function tool's parameters, by name."""
        declared = (tool.get("function", tool) for tool in _objects(self.body.get("tools")))
        schemas = ((tool.get("name"), tool.get("parameters", tool.get("input_schema"))) for tool in declared)
        return {name: schema or {} for name, schema in schemas if isinstance(name, str)}


def _responses(body: Mapping[str, Any]) -> Iterator[ConversationEntry]:
    if isinstance(body.get("instructions"), str):
        yield Prompt("system", body["instructions"])
    given = body.get("input")
    if isinstance(given, str):
        yield Prompt("user", given)
        return
    for item in _objects(given):
        kind = item.get("type", "message")
        if kind == "function_call":
            yield ToolCall(str(item.get("name")), str(item.get("arguments")))
        elif kind == "function_call_output":
            yield ToolResult(str(item.get("call_id")), _text(item.get("output")))
        elif kind == "reasoning":
            yield Think(_text(item.get("summary")))
        elif kind == "message":
            ours = item.get("role") == "assistant" and MARK in str(item.get("id")).split("_")
            text = _text(item.get("content"))
            yield Say(text) if ours else Prompt(_role(item), text)


def _chat(body: Mapping[str, Any]) -> Iterator[ConversationEntry]:
    for message in _objects(body.get("messages")):
        role, text = _role(message), _text(message.get("content"))
        calls = list(_objects(message.get("tool_calls")))
        if role == "tool":
            yield ToolResult(str(message.get("tool_call_id")), text)
        elif role != "assistant":
            yield Prompt(role, text)
        else:
            if reasoning := _text(message.get("reasoning_content")):
                yield Think(reasoning)
            if text or not calls:
                yield Say(text)
            for function in (call.get("function") or {} for call in calls):
                yield ToolCall(str(function.get("name")), str(function.get("arguments")))


def _messages(body: Mapping[str, Any]) -> Iterator[ConversationEntry]:
    if body.get("system"):
        yield Prompt("system", _text(body["system"]))
    for message in _objects(body.get("messages")):
        role = _role(message)
        content = message.get("content")
        blocks = list(_objects(content)) if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use":
                yield ToolCall(str(block.get("name")), json.dumps(block.get("input")))
            elif kind == "tool_result":
                yield ToolResult(str(block.get("tool_use_id")), _text(block.get("content")))
            elif kind == "thinking":
                yield Think(str(block.get("thinking")))
            elif role == "assistant":
                yield Say(_text([block]))
            else:
                yield Prompt(role, _text([block]))


READERS = {"responses": _responses, "chat": _chat, "messages": _messages}


def _role(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", "user"))
    return "system" if role == "developer" else role


def _text(content: Any) -> str:
    """The text of a content that is a string, or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in _objects(content) if isinstance(part.get("text"), str))


def _objects(value: Any) -> Iterable[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
