"""Which requests the policy refuses: those whose answer would silently be another than the one asked for."""

from collections.abc import Callable, Mapping
from typing import Any

from gym_mocks.policy.conversation import PolicyApi, parameters

CHOICES = 128  # OpenAI's own limit of `n`
NAMED_IDS = 1000  # that are scored at each place of a prompt


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _tools(value: Any) -> bool:
    """Whether each tool is an object and so is what says which arguments it takes, if anything does."""
    return _objects(value) and all(isinstance(parameters(tool), dict | None) for tool in value)


def _none(value: Any) -> bool:
    return not value


def _limit(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _messages(value: Any) -> bool:
    """Whether each message says whose it is and, if anything, a text or parts."""
    return _objects(value) and all(
        isinstance(message.get("role"), str) and isinstance(message.get("content"), str | list | None)
        for message in value
    )


def _count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and 1 <= value <= CHOICES)


def token_ids(value: Any) -> bool:
    """Whether a value is a list of token ids."""
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)


def _raw_prompt(value: Any) -> bool:
    return isinstance(value, str) or (token_ids(value) and value != [])


# By field: whether its value is answered, and what is said where it is not.
Fields = dict[str, tuple[Callable[[Any], bool], str]]

IDS = (lambda value: value is None or token_ids(value), "a list of token ids is expected")

EVERY_API: Fields = {
    "required_prefix_token_ids": IDS,
    "model": (lambda value: isinstance(value, str | None), "a name is expected"),
    "stream": (lambda value: isinstance(value, bool | None), "true or false is expected"),
    "tools": (lambda value: not value or _tools(value), "a list of objects is expected, with objects as parameters"),
    "n": (_count, f"1 to {CHOICES} choices are possible"),
    **dict.fromkeys(("temperature", "top_p"), (_number, "a number is expected")),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "max_output_tokens", "top_logprobs", "prompt_logprobs"),
        (_limit, "an integer from 0 is expected"),
    ),
}
OPTIONS = (lambda value: isinstance(value, dict | None), "an object is expected")
ENGINE: Fields = {
    "sampling_params": (
        lambda value: (
            value is None
            or (
                isinstance(value, dict)
                and _count(value.get("n"))
                and all(_limit(value.get(name)) for name in ("max_tokens", "max_new_tokens"))
            )
        ),
        f"an object is expected, with n from 1 to {CHOICES} and integers from 0 as limits",
    ),
}
MESSAGES: Fields = {
    "messages": (_messages, "a list of objects is expected, each with a role and a text or a list as content")
}
# What OpenAI keeps: a policy that keeps nothing would begin the conversation anew.
KEPT = "not supported, since this policy keeps no state; send the whole conversation as input"
OF_API: dict[PolicyApi, Fields] = {
    "responses": {
        "input": (lambda value: isinstance(value, str) or _objects(value), "a text or a list of objects is expected"),
        **dict.fromkeys(("conversation", "prompt", "background"), (_none, KEPT)),
        "previous_response_id": (lambda value: isinstance(value, str | None), "a text is expected"),
        **dict.fromkeys(("text", "reasoning"), OPTIONS),
    },
    "chat": {
        **MESSAGES,
        "functions": (_none, "not supported; send tools"),
        "stream_options": OPTIONS,
        "input_ids": IDS,
    },
    "messages": MESSAGES,
    "completions": {
        "prompt": (_raw_prompt, "a text, a list of token ids, or a list of either is expected"),
        "suffix": (_none, "not supported"),
        "echo": (lambda value: isinstance(value, bool | None), "true or false is expected"),
        "stream_options": OPTIONS,
    },
    "vllm": {
        "token_ids": (token_ids, "a list of token ids is expected"),
        "stream_options": OPTIONS,
        **ENGINE,
    },
    "sglang": {
        "input_ids": IDS,
        "text": (lambda value: isinstance(value, str | None), "a text is expected"),
        "token_ids_logprob": (
            lambda value: value is None or (token_ids(value) and len(value) <= NAMED_IDS),
            f"a list of {NAMED_IDS:,} token ids at most is expected",
        ),
        **ENGINE,
    },
}


def refused_value(api: PolicyApi, body: Mapping[str, Any]) -> str | None:
    """Why a request is refused, in a sentence that names the field; None where it is answered."""
    for name, (allows, why) in (EVERY_API | OF_API[api]).items():
        if not allows(body.get(name)):
            return f"{name}: {why}"
    return None
