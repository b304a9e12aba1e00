"""An answer in the shape of the Responses API (OpenAI SDK: `openai.types.responses`)."""

from collections.abc import Iterator
from typing import Any

from gym_mocks.policy.answer import PolicyAnswer, pieces
from gym_mocks.policy.items import Refuse, Say, Think, ToolCall, TurnItem

Event = dict[str, Any]

#: What a response says again, where it was asked for.
TOLD_AGAIN = ("max_tool_calls", "prompt_cache_key", "safety_identifier", "service_tier", "top_logprobs")
#: The status, by why an answer did not come to its end.
ENDED = {None: "completed", "length": "incomplete", "abort": "cancelled"}


def response(answer: PolicyAnswer) -> dict[str, Any]:
    """The reply as one object."""
    output = [_item(answer, index, item) for index, item in enumerate(answer.turn)]
    if output:
        output[-1] |= answer.fields
    return _envelope(answer) | {
        "status": ENDED[answer.cut],
        "incomplete_details": {"reason": "max_output_tokens"} if answer.cut == "length" else None,
        "output": output,
        "usage": _usage(answer),
    }


def events(answer: PolicyAnswer) -> Iterator[Event]:
    """The reply as the events of a stream, numbered."""
    for number, event in enumerate(_events(answer)):
        yield event | {"sequence_number": number}


def _events(answer: PolicyAnswer) -> Iterator[Event]:
    whole = response(answer)
    begun = _envelope(answer) | {
        "status": "in_progress",
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, (item, shape) in enumerate(zip(answer.turn, whole["output"], strict=True)):
        place = {"item_id": shape["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": shape | _empty(item)}
        yield from _parts(item, shape, place)
        yield {"type": "response.output_item.done", "output_index": index, "item": shape}
    yield {"type": "response.incomplete" if answer.cut == "length" else "response.completed", "response": whole}


def _parts(item: TurnItem, shape: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
    if isinstance(item, ToolCall):
        kind = "response.function_call_arguments"
        for piece in pieces(item.arguments):
            yield {"type": f"{kind}.delta", **place, "delta": piece}
        yield {"type": f"{kind}.done", **place, "name": item.name, "arguments": item.arguments}
        return
    more: dict[str, Any] = {}
    none: dict[str, Any] = {}
    kind, adding, text = "response.reasoning_summary_text", "response.reasoning_summary_part", "text"
    if isinstance(item, Say):
        kind, adding = "response.output_text", "response.content_part"
        more, none = {"logprobs": shape["content"][0]["logprobs"]}, {"logprobs": []}
    elif isinstance(item, Refuse):
        kind, adding, text = "response.refusal", "response.content_part", "refusal"
    parts, number = ("summary", "summary_index") if isinstance(item, Think) else ("content", "content_index")
    where, part = place | {number: 0}, shape[parts][0]
    yield {"type": f"{adding}.added", **where, "part": part | none | {text: ""}}
    probs = more  # which tokens a piece is made of is not known: the first has all
    for piece in pieces(item.text):
        yield {"type": f"{kind}.delta", **where, **probs, "delta": piece}
        probs = none
    yield {"type": f"{kind}.done", **where, **more, text: item.text}
    yield {"type": f"{adding}.done", **where, "part": part}


def _item(answer: PolicyAnswer, index: int, item: TurnItem) -> dict[str, Any]:
    if isinstance(item, ToolCall):
        return {
            "id": answer.id("fc", index),
            "type": "function_call",
            "call_id": answer.id("call", index),
            "name": item.name,
            "arguments": item.arguments,
            "status": "completed",
        }
    if not isinstance(item, Think):
        said = {"type": "output_text", "text": item.text, "annotations": [], "logprobs": _log_probs(answer, item)}
        refused = {"type": "refusal", "refusal": item.text}
        return {
            "id": answer.id("msg", index),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [said if isinstance(item, Say) else refused],
        }
    summary = [{"type": "summary_text", "text": item.text}]
    return {"id": answer.id("rs", index), "type": "reasoning", "summary": summary, "encrypted_content": None}


def _log_probs(answer: PolicyAnswer, item: TurnItem) -> list[dict[str, Any]]:
    """Those of all that the turn's last text ends, where they are asked for."""
    include = answer.request.body.get("include")
    asked = isinstance(include, list) and "message.output_text.logprobs" in include
    last = next((each for each in reversed(answer.turn) if isinstance(each, Say)), None)
    return answer.named_log_probs if asked and item is last else []


def _empty(item: TurnItem) -> dict[str, Any]:
    """What an item lacks while it is still being said."""
    if isinstance(item, ToolCall):
        return {"arguments": "", "status": "in_progress"}
    return {"summary": []} if isinstance(item, Think) else {"content": [], "status": "in_progress"}


def _envelope(answer: PolicyAnswer) -> dict[str, Any]:
    asked = answer.request.body
    return {
        "id": answer.id("resp"),
        "object": "response",
        "created_at": float(answer.created),
        "model": answer.model,
        "error": None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": asked.get("max_output_tokens"),
        "metadata": asked.get("metadata") or {},
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": asked.get("previous_response_id"),
        "reasoning": asked.get("reasoning") or {"effort": None, "summary": None},
        "store": asked.get("store") is not False,
        "temperature": asked.get("temperature"),
        "text": {"format": {"type": "text"}} | (asked.get("text") or {}),
        "tool_choice": asked.get("tool_choice") or "auto",
        "tools": asked.get("tools") or [],
        "top_p": asked.get("top_p"),
        "truncation": asked.get("truncation") or "disabled",
        "user": asked.get("user"),
    } | {name: asked[name] for name in TOLD_AGAIN if asked.get(name) is not None}


def _usage(answer: PolicyAnswer) -> dict[str, Any]:
    read, said = len(answer.tokens.prompt), len(answer.tokens.generation)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": answer.tokens.reasoning},
        "total_tokens": read + said,
    }
