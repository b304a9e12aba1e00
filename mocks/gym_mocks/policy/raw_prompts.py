"""Prompts that are one text or token ids, as inference engines take them: no conversation, which is the client's matter."""

from collections.abc import Mapping, Sequence
from typing import Any

from gym_mocks.policy.conversation import PolicyApi, RawPrompt
from gym_mocks.policy.tokens import Tokenizer
from gym_mocks.wire import HttpRefusal

# The fields of each API that the prompt is in, the first of them that is there.
PROMPT_FIELDS: dict[PolicyApi, tuple[str, ...]] = {
    "completions": ("prompt",),
    "vllm": ("token_ids",),
    "sglang": ("input_ids", "text"),
}


def raw_prompt(api: PolicyApi, body: Mapping[str, Any], tokenizer: Tokenizer) -> RawPrompt | None:
    """The prompt of a request whose fields were found right; None of an API that takes conversations.

    Tokens become text, and text tokens, by the policy's tokenizer.

    Raises:
        HttpRefusal: 400 where there is none.
    """
    if api not in PROMPT_FIELDS:
        return None
    prompt = next((body[name] for name in PROMPT_FIELDS[api] if body.get(name) is not None), None)
    if prompt is None:
        raise HttpRefusal(400, f"{' or '.join(PROMPT_FIELDS[api])} is expected")
    if isinstance(prompt, str):
        tokens = list(tokenizer.text(prompt))
        return RawPrompt(prompt, tokens, *turns_held(tokens, tokenizer))
    return RawPrompt(tokenizer.decoded(prompt), prompt, *turns_held(prompt, tokenizer), as_ids=True)


def turns_held(tokens: Sequence[int], tokenizer: Tokenizer) -> tuple[int, list[int]]:
    """How many turns of the policy a prompt holds, without one that is still open at its end, and what there is of that one."""
    opening = list(tokenizer.opening)
    starts = [i for i in range(len(tokens)) if tokens[i] == opening[0] and [*tokens[i : i + len(opening)]] == opening]
    last = [*tokens[starts[-1] + len(opening) :]] if starts else []
    is_open = bool(starts) and tokenizer.end not in last
    return len(starts) - is_open, last if is_open else []
