"""What a policy says in one turn, as plain values, before any API gives it a shape."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Say:
    """An assistant message; it ends the agent's loop where no call stands beside it."""

    text: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """An assistant message that refuses; it ends the agent's loop as any message does."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call; `arguments` is the raw text, which need not be JSON."""

    name: str
    arguments: str


TurnItem = Say | Refuse | Think | ToolCall
Turn = tuple[TurnItem, ...]


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is expected: not {text!r:.80}")
    return text


def say(text: str) -> Say:
    """An assistant message."""
    return Say(_checked(text))


def refuse(text: str) -> Refuse:
    """An assistant message that refuses."""
    return Refuse(_checked(text))


def think(text: str) -> Think:
    """Reasoning before the items that follow it."""
    return Think(_checked(text))


def call(tool: str, /, **arguments: Any) -> ToolCall:
    """A function call with its arguments."""
    return ToolCall(tool, json.dumps(arguments))


def raw_call(tool: str, arguments: str) -> ToolCall:
    """A function call with its arguments' text as it stands: malformed ones too."""
    return ToolCall(tool, _checked(arguments))


def written(item: TurnItem) -> tuple[str, ...]:
    """An item as most open models write it, in the parts that are tokenized each for itself: Hermes' and Qwen's form."""
    if isinstance(item, ToolCall):
        called = f'{{"name": {json.dumps(item.name)}, "arguments": {item.arguments}}}'
        return "<tool_call>\n", called, "\n</tool_call>"
    return ("<think>\n", item.text, "\n</think>\n\n") if isinstance(item, Think) else (item.text,)


def turn_of(said: TurnItem | str | Sequence[TurnItem | str]) -> Turn:
    """What a policy returned as a turn: one item, a text, or several of them (calls in parallel).

    Raises:
        TypeError: anything else.
    """
    items = [said] if isinstance(said, str | TurnItem) or not isinstance(said, Sequence) else said
    if others := [item for item in items if not isinstance(item, str | TurnItem)]:
        raise TypeError(
            f"a policy returns a text, say(...), refuse(...), think(...), call(...) or a list: not {others[0]!r:.80}"
        )
    return tuple(Say(item) if isinstance(item, str) else item for item in items)
