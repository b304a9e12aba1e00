"""An answer in the shape of the Chat Completions API (OpenAI SDK: `openai.types.chat`)."""

from collections.abc import Iterator
from typing import Any

from gym_mocks.policy.answer import PolicyAnswer, pieces
from gym_mocks.policy.as_generations import prompt_log_probs, sglang_extension, sglang_meta_info
from gym_mocks.policy.items import Refuse, Say, Think, ToolCall


def completion(answer: PolicyAnswer) -> dict[str, Any]:
    """The reply as one object."""
    said = _text(answer, Say)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "" if said is None and _wants_meta_info(answer) else said,
        "refusal": _text(answer, Refuse) or None,
    }
    if calls := _calls(answer):
        message["tool_calls"] = calls
    if reasoning := _text(answer, Think):
        message |= _reasoning(reasoning)
    message |= answer.fields
    choice = {"message": message} | _closing(answer) | _prompt_ids(answer)  # SGLang has them in the choice
    choices = [{"index": index} | choice for index in range(answer.count)]
    beside = _prompt_ids(answer) | prompt_log_probs(answer) | sglang_extension(answer) | answer.metadata
    return _envelope(answer, "chat.completion") | beside | {"choices": choices, "usage": _usage(answer)}


def chunks(answer: PolicyAnswer) -> Iterator[dict[str, Any]]:
    """The reply as the chunks of a stream, without its closing `[DONE]`; the last of a choice has its tokens and log probabilities."""
    envelope, prompt_ids = _envelope(answer, "chat.completion.chunk"), _prompt_ids(answer)
    for number in range(answer.count):
        deltas = [*_deltas(answer)]
        for at, delta in enumerate(deltas):
            choice = {"index": number, "delta": delta, "finish_reason": None, "logprobs": None}
            yield envelope | prompt_ids | {"choices": [choice]} | answer.usage_so_far(at / len(deltas))
            prompt_ids = {}  # the first chunk alone has them
        yield envelope | {"choices": [{"index": number, "delta": {}} | _closing(answer)]} | answer.usage_so_far()
    if extension := sglang_extension(answer):
        yield envelope | {"choices": []} | extension
    if answer.wants_usage:
        yield envelope | {"choices": [], "usage": _usage(answer)}


def _deltas(answer: PolicyAnswer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    if reasoning := _text(answer, Think):
        yield _reasoning(reasoning)
    for piece in pieces(_text(answer, Say) or ""):
        yield {"content": piece}
    for piece in pieces(_text(answer, Refuse) or ""):
        yield {"refusal": piece}
    for index, call in enumerate(_calls(answer)):
        function = call["function"]
        opening = call | {"index": index, "function": function | {"arguments": ""}}
        yield {"tool_calls": [opening]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _reasoning(text: str) -> dict[str, str]:
    """Reasoning by both of its names: vLLM's since 0.11 (and its only one since 0.16), and the one it had before."""
    return {"reasoning": text, "reasoning_content": text}


def _closing(answer: PolicyAnswer) -> dict[str, Any]:
    """What a choice says when it is at its end."""
    closing: dict[str, Any] = {
        "finish_reason": _reason(answer),
        "stop_reason": None,  # vLLM's: the stop text or token that was asked for
        "matched_stop": answer.matched_stop,
        "logprobs": _log_probs(answer),
    }
    if _wants_ids(answer):
        closing["token_ids"] = answer.tokens.generation
    if _wants_meta_info(answer):
        closing["meta_info"] = sglang_meta_info(answer, len(answer.tokens.generation))
    if answer.request.body.get("return_prompt_token_ids"):
        closing["prompt_token_ids"] = answer.tokens.prompt
    return closing


def _wants_ids(answer: PolicyAnswer) -> bool:
    """Whether token ids are asked for as vLLM gives them: the prompt's beside the choices, a choice's own in it."""
    return bool(answer.request.body.get("return_token_ids"))


def _wants_meta_info(answer: PolicyAnswer) -> bool:
    """Whether a choice is to say what SGLang's `/generate` says of it; its text is then never null."""
    return bool(answer.request.body.get("return_meta_info"))


def _prompt_ids(answer: PolicyAnswer) -> dict[str, Any]:
    return {"prompt_token_ids": answer.tokens.prompt} if _wants_ids(answer) else {}


def _text(answer: PolicyAnswer, kind: type[Say | Refuse | Think]) -> str | None:
    """The text of all items of a kind; None where there is none."""
    said = [item.text for item in answer.turn if isinstance(item, kind)]
    return "".join(said) if said else None


def _calls(answer: PolicyAnswer) -> list[dict[str, Any]]:
    return [
        {
            "id": answer.id("call", index),
            "type": "function",
            "function": {"name": item.name, "arguments": item.arguments},
        }
        for index, item in enumerate(answer.turn)
        if isinstance(item, ToolCall)
    ]


def _reason(answer: PolicyAnswer) -> str:
    if answer.cut:
        return answer.cut
    return "tool_calls" if _calls(answer) else "stop"


def _log_probs(answer: PolicyAnswer) -> dict[str, Any] | None:
    if not answer.request.body.get("logprobs"):
        return None
    return {"content": answer.named_log_probs}


def _envelope(answer: PolicyAnswer, kind: str) -> dict[str, Any]:
    return {"id": answer.id("chatcmpl"), "object": kind, "created": answer.created, "model": answer.model}


def _usage(answer: PolicyAnswer) -> dict[str, Any]:
    read, said = len(answer.tokens.prompt), len(answer.tokens.generation) * answer.count
    return {
        "prompt_tokens": read,
        "completion_tokens": said,
        "total_tokens": read + said,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": answer.tokens.reasoning * answer.count},
    }
