"""An answer in the shape of Anthropic's Messages API, which nemo-gym's model servers speak too."""

import json
from collections.abc import Iterator
from typing import Any

from gym_mocks.policy.answer import PolicyAnswer
from gym_mocks.policy.conversation import block_arguments
from gym_mocks.policy.items import Refuse, Think, ToolCall, TurnItem


def message(answer: PolicyAnswer) -> dict[str, Any]:
    """The reply as one object."""
    blocks = [_block(answer, index, item) for index, item in enumerate(answer.turn)]
    return (
        _envelope(answer) | {"content": blocks, "stop_reason": _reason(answer), "usage": _usage(answer)} | answer.fields
    )


def events(answer: PolicyAnswer) -> Iterator[dict[str, Any]]:
    """The reply as the events of a stream."""
    usage = _usage(answer)
    begun = _envelope(answer) | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, item in enumerate(answer.turn):
        block = _block(answer, index, item)
        key, kind, text = _piece(item, block)
        empty: dict[str, Any] = {"input": {}} if isinstance(item, ToolCall) else {key: ""}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty}
        yield {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": kind, "partial_json" if key == "input" else key: text},
        }
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": _reason(answer), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _block(answer: PolicyAnswer, index: int, item: TurnItem) -> dict[str, Any]:
    if isinstance(item, ToolCall):
        given = block_arguments(item)
        return {"type": "tool_use", "id": answer.id("toolu", index), "name": item.name, "input": given}
    if isinstance(item, Think):
        return {"type": "thinking", "thinking": item.text, "signature": ""}
    return {"type": "text", "text": item.text}


def _piece(item: TurnItem, block: dict[str, Any]) -> tuple[str, str, str]:
    if isinstance(item, ToolCall):
        return "input", "input_json_delta", json.dumps(block["input"])
    thinks = isinstance(item, Think)
    return ("thinking", "thinking_delta", item.text) if thinks else ("text", "text_delta", item.text)


def _reason(answer: PolicyAnswer) -> str:
    if answer.cut:
        return "max_tokens"
    if any(isinstance(item, Refuse) for item in answer.turn):
        return "refusal"
    return "tool_use" if any(isinstance(item, ToolCall) for item in answer.turn) else "end_turn"


def _envelope(answer: PolicyAnswer) -> dict[str, Any]:
    return {
        "id": answer.id("msg"),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_sequence": None,
    }


def _usage(answer: PolicyAnswer) -> dict[str, Any]:
    return {"input_tokens": len(answer.tokens.prompt), "output_tokens": len(answer.tokens.generation)}
