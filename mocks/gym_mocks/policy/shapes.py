"""The APIs that a policy serves, by path: how each writes an answer, whole and as a stream."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gym_mocks.policy import as_chat, as_generations, as_messages, as_responses
from gym_mocks.policy.answer import PolicyAnswer
from gym_mocks.policy.batches import (
    Parts,
    alone,
    as_rendered,
    choices_joined,
    listed,
    one_by_one,
    renamed,
    side_by_side,
)
from gym_mocks.policy.conversation import PolicyApi
from gym_mocks.wire.messages import to_json

Events = Callable[[PolicyAnswer], Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class AnswerShape:
    """How an API writes an answer.

    Attributes:
        api: the API.
        whole: the reply as one JSON value.
        events: the JSON objects of a stream; None where the API has none here.
        named: whether each event has its type for a name; otherwise `[DONE]` ends the stream.
        parts: takes a request apart that holds several prompts; None where it never does.
        joined: makes one reply of theirs.
    """

    api: PolicyApi
    whole: Callable[[PolicyAnswer], Any]
    events: Events | None = None
    named: bool = False
    parts: Parts | None = None
    joined: Callable[[Sequence[Any]], Any] = one_by_one

    def lines(self, answer: PolicyAnswer) -> Iterator[bytes]:
        """The lines of an event stream."""
        for event in self.events(answer) if self.events else ():
            name = b"event: %b\n" % event["type"].encode() if self.named else b""
            yield b"%bdata: %b\n\n" % (name, to_json(event))
        if not self.named:
            yield b"data: [DONE]\n\n"


SHAPES = {
    "/v1/responses": AnswerShape("responses", as_responses.response, as_responses.events, named=True),
    "/v1/chat/completions": AnswerShape("chat", as_chat.completion, as_chat.chunks),
    "/v1/chat/completions/tokens": AnswerShape(
        "chat", as_chat.completion, as_chat.chunks, parts=as_rendered("tokens"), joined=alone
    ),
    "/v1/messages": AnswerShape("messages", as_messages.message, as_messages.events, named=True),
    "/v1/completions": AnswerShape(
        "completions",
        as_generations.completion,
        as_generations.chunks,
        parts=listed("prompt"),
        joined=choices_joined,
    ),
    "/inference/v1/generate": AnswerShape("vllm", as_generations.vllm_generation, as_generations.vllm_chunks),
    "/skyrl/v1/generate": AnswerShape("vllm", as_generations.vllm_generation, as_generations.vllm_chunks),
    "/generate": AnswerShape(
        "sglang",
        as_generations.sglang_generation,
        as_generations.sglang_chunks,
        parts=listed("input_ids", "text"),
    ),
    "/generate/": AnswerShape(
        "completions", as_generations.trl_generation, parts=renamed("prompts", "prompt"), joined=side_by_side
    ),
    "/chat/": AnswerShape(
        "chat", as_generations.trl_generation, parts=renamed("messages", "messages"), joined=side_by_side
    ),
}
