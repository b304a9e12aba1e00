"""The tokens of a conversation: deterministic, and contiguous over its turns.

verl's recipe, TRL and NeMo RL assert that each turn's prompt begins with all tokens seen so far. So where a client gives
back the tokens that it got with a turn, or all up to the last one's end (`required_prefix_token_ids`), they are what the
next prompt begins with, as NeMo RL's own vLLM has it; where it does not, a turn's generation is, token by token, what
the next prompt renders for that turn.
"""

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from math import exp, log
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from gym_mocks.policy.conversation import PolicyRequest, Prompt, Segment, TokensSeen, ToolResult
from gym_mocks.policy.items import Think, ToolCall, Turn, TurnItem, written

CHUNK = re.compile(r"\s*\w{1,5}|\s*[^\w\s]|\s+")
MARKS = ("system", "user", "assistant", "tool", "turn", "think", "call")
TEXT = 100  # the first id that stands for text, where the vocabulary is that large
SHORT = 200  # characters of a text whose tokens are remembered


class Vocabulary(NamedTuple):
    """A made-up vocabulary of ids from 0 to `size` - 1, of which `end` ends a turn; its ids stand for no text."""

    size: int = 32_000
    end: int = 6


class PretrainedTokenizer(Protocol):
    """What is used of a Hugging Face tokenizer."""

    eos_token_id: Any

    def encode(self, text: str, *, add_special_tokens: bool) -> Sequence[int]:
        """The ids of a text."""

    def decode(self, token_ids: Sequence[int], /) -> str:
        """The text of ids; asked for only where a client sends ids alone."""


#: What a policy's tokens are made by: a vocabulary, as (size, end), or a Hugging Face tokenizer.
TokensBy = Vocabulary | tuple[int, int] | PretrainedTokenizer


class Tokenizer(Protocol):
    """Makes the tokens of a conversation's parts.

    Attributes:
        end: ends a turn.
        opening: begins a turn.
        closing: what a prompt has after a turn's end.
    """

    end: int
    opening: Sequence[int]
    closing: Sequence[int]

    def text(self, text: str) -> Sequence[int]:
        """The tokens of a text."""

    def other(self, role: str, text: str) -> list[int]:
        """The tokens of what somebody else said."""

    def item(self, item: TurnItem) -> list[int]:
        """The tokens of what the policy said, without an end."""

    def decoded(self, tokens: Sequence[int]) -> str:
        """The text of tokens; of those that stand for none, their ids."""

    def spelled(self, said: TurnItem | str) -> list[str]:
        """What each token of what the policy said, or of a text, stands for: log probabilities name tokens by it."""


def tokenizer_of(tokens: TokensBy | None) -> Tokenizer:
    """The tokenizer that a `tokens` argument stands for.

    Raises:
        ValueError: a vocabulary too small, an end that is not in it, or a tokenizer without an end token.
    """
    if tokens is None or isinstance(tokens, tuple):
        return _MadeUp(Vocabulary(*(tokens or ())))
    if not hasattr(tokens, "eos_token_id"):
        raise ValueError(f"tokens: (size, end) or a tokenizer is expected: not {tokens!r:.80}")
    return _Pretrained(tokens)


class _MadeUp:
    def __init__(self, vocabulary: Vocabulary) -> None:
        size, end = vocabulary
        if not (2 * len(MARKS) < size and 0 <= end < size):
            raise ValueError(
                f"tokens: a vocabulary of {size} ids with the end {end}: 15 or more are needed, end among them"
            )
        free = [number for number in range(1, len(MARKS) + 2) if number != end]
        self.marks = dict(zip(MARKS, free, strict=False))
        self.end = end
        self.opening: Sequence[int] = (self.marks["turn"],)
        self.closing: Sequence[int] = ()
        self._first = min(TEXT, len(MARKS) + 2) if size <= 2 * TEXT else TEXT
        self._count = size - self._first - (end >= self._first)
        self._short = lru_cache(4096)(self._ids)  # prompts and tools' names come again with each turn and rollout

    def text(self, text: str) -> Sequence[int]:
        return self._short(text) if len(text) <= SHORT else self._ids(text)

    def other(self, role: str, text: str) -> list[int]:
        return [self.marks.get(role, self.marks["user"]), *self.text(text)]

    def item(self, item: TurnItem) -> list[int]:
        if isinstance(item, ToolCall):
            return [self.marks["call"], *self.text(item.name), *self.text(item.arguments)]
        return [*([self.marks["think"]] if isinstance(item, Think) else []), *self.text(item.text)]

    def decoded(self, tokens: Sequence[int]) -> str:
        return "".join(f"<{token}>" for token in tokens)

    def spelled(self, said: TurnItem | str) -> list[str]:
        if isinstance(said, str):
            return CHUNK.findall(said)
        if isinstance(said, ToolCall):
            return ["<tool_call>", *CHUNK.findall(said.name), *CHUNK.findall(said.arguments)]
        return [*(["<think>"] if isinstance(said, Think) else []), *CHUNK.findall(said.text)]

    def _ids(self, text: str) -> tuple[int, ...]:
        chunks = (crc32(chunk[0].encode(errors="surrogatepass")) for chunk in CHUNK.finditer(text))
        ids = (self._first + number % self._count for number in chunks)
        return tuple(number + (self._first <= self.end <= number) for number in ids)


class _Pretrained:
    """A tokenizer's own ids, in ChatML's form: what was said decodes to itself."""

    def __init__(self, tokenizer: PretrainedTokenizer) -> None:
        if not isinstance(tokenizer.eos_token_id, int):
            name = type(tokenizer).__name__
            raise ValueError(f"tokens: {name} has no end token (eos_token_id)")  # noqa: TRY004 - a value of its own
        self.end = tokenizer.eos_token_id
        self._tokenizer = copy.deepcopy(tokenizer)  # a fast one cannot be used in two threads at once
        self._short = lru_cache(4096)(self._ids)
        self._one = lru_cache(2**16)(lambda token: self.decoded([token]))
        self.opening = self.text("<|im_start|>assistant\n")
        self.closing = self.text("\n")

    def text(self, text: str) -> Sequence[int]:
        return self._short(text) if len(text) <= SHORT else self._ids(text)

    def other(self, role: str, text: str) -> list[int]:
        return [*self.text(f"<|im_start|>{role}\n"), *self.text(text), *self.text("<|im_end|>\n")]

    def item(self, item: TurnItem) -> list[int]:
        return [token for part in written(item) for token in self.text(part)]

    def decoded(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(tokens)

    def spelled(self, said: TurnItem | str) -> list[str]:
        return [self._one(token) for token in (self.text(said) if isinstance(said, str) else self.item(said))]

    def _ids(self, text: str) -> tuple[int, ...]:
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # no tokenizer takes half a pair
        return tuple(self._tokenizer.encode(whole, add_special_tokens=False))


@dataclass(frozen=True)
class TurnTokens:
    """The tokens of one turn.

    Attributes:
        prompt: what the policy read.
        generation: what it said.
        reasoning: how many of the latter are reasoning.
    """

    prompt: list[int]
    generation: list[int]
    reasoning: int


@dataclass(frozen=True)
class TokenFields:
    """How the trainer's fields of an output item are made.

    Attributes:
        log_prob_scale: the log probabilities lie between 0 and minus this.
        routed_experts: layers and experts a token, for `routed_experts`; None for a model without any.
        named_by_ids: whether log probabilities name tokens by their ids (`token_id:7`) unless a request says otherwise.
        weight_version: the weights that replies say they were made by, as SGLang names them.
    """

    log_prob_scale: float = 1.0
    routed_experts: tuple[int, int] | None = None
    named_by_ids: bool = False
    weight_version: str = "default"

    def log_probs(self, tokens: Iterable[int]) -> list[float]:
        """One for each token, the same wherever it stands: made up, finite, at most 0."""
        return [-self.log_prob_scale * (token % 97) / 100 for token in tokens]

    def likeliest(self, token: int, log_prob: float, most: int) -> list[tuple[int, float]]:
        """A token with its log probability, and others that are less likely, as those who distil a teacher read them.

        The others are the first ids of the vocabulary; each is half as likely as the one before it.
        """
        if most <= 1:
            return [(token, log_prob)]
        share = max(min(exp(log_prob), 1 - exp(log_prob)), 1e-6)
        others = islice((other for other in count() if other != token), most - 1)
        return [(token, log_prob), *((other, log(share) - at * log(2)) for at, other in enumerate(others, 1))]

    def of(self, tokens: TurnTokens) -> dict[str, Any]:
        """The fields themselves."""
        fields = {
            "prompt_token_ids": tokens.prompt,
            "generation_token_ids": tokens.generation,
            "generation_log_probs": self.log_probs(tokens.generation),
        }
        if self.routed_experts is None:
            return fields
        return fields | {"routed_experts": self.routed([*tokens.prompt, *tokens.generation])}

    def routed(self, tokens: Iterable[int]) -> list[list[list[int]]]:
        """Each token's experts in each layer; none where the model has none."""
        layers, experts = self.routed_experts or (0, 0)
        return [
            [[(token + layer + each) % 8 for each in range(experts)] for layer in range(layers)] for token in tokens
        ]


def prompt_tokens(request: PolicyRequest, tokenizer: Tokenizer, *, open_turn: bool = True) -> list[int]:
    """The tokens of a conversation, up to where the policy's next turn begins."""
    if request.raw is not None:
        return list(request.raw.tokens)
    if request.api == "chat" and request.body.get("input_ids"):
        return list(request.body["input_ids"])  # SGLang's: the conversation as the client rendered it
    segments = request.segments
    known = max((i for i, segment in enumerate(segments) if isinstance(segment, TokensSeen)), default=-1)
    tokens = [token for name in request.tools for token in tokenizer.text(name)] if known < 0 else []
    for segment in segments[max(known, 0) :]:
        tokens += _rendered(segment, tokenizer)
    return [*tokens, *tokenizer.opening] if open_turn else tokens


def counted_turns(request: PolicyRequest, tokenizer: Tokenizer) -> int:
    """How many turns the tokens hold that came with a conversation."""
    if request.raw is not None:
        return request.raw.turns
    seen = next((each for each in reversed(request.segments) if isinstance(each, TokensSeen)), None)
    if seen is None:
        return 0
    opening, prompt = tuple(tokenizer.opening), tuple(seen.prompt)
    return sum(prompt[i : i + len(opening)] == opening for i in range(len(prompt)))


def tokens_of(request: PolicyRequest, turn: Turn, tokenizer: Tokenizer, *, ended: bool) -> TurnTokens:
    """The tokens of a turn that answers a request.

    Args:
        request: what it answers.
        turn: as the client will send it back.
        tokenizer: makes them.
        ended: whether the turn came to its end.
    """
    reasoning = sum(len(tokenizer.item(item)) for item in turn if isinstance(item, Think))
    generation = [token for item in turn for token in tokenizer.item(item)]
    return TurnTokens(
        prompt_tokens(request, tokenizer), [*generation, tokenizer.end] if ended else generation, reasoning
    )


def _rendered(segment: Segment, tokenizer: Tokenizer) -> Iterable[int]:
    if isinstance(segment, TokensSeen):
        whole = [*segment.prompt, *segment.generation]
        ended = whole[-1:] == [tokenizer.end]
        return [*whole, *([] if ended else [tokenizer.end]), *tokenizer.closing]
    if isinstance(segment, Prompt):
        return tokenizer.other(segment.role, segment.text)
    if isinstance(segment, ToolResult):
        return tokenizer.other("tool", segment.text)
    said = [token for item in segment for token in tokenizer.item(item)]
    return [*tokenizer.opening, *said, tokenizer.end, *tokenizer.closing]
