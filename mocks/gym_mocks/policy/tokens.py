"""A made-up tokenizer: deterministic, and contiguous over the turns of a conversation.

verl's recipe and NeMo RL assert that each turn's prompt begins with all tokens seen so far. So a turn's
generation is, token by token, what the next prompt renders for that turn.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any
from zlib import crc32

from gym_mocks.policy.conversation import ConversationEntry, PolicyRequest, Prompt, ToolResult
from gym_mocks.policy.items import Say, Think, ToolCall, Turn, TurnItem

CHUNK = re.compile(r"\s*\w{1,5}|\s*[^\w\s]|\s+")
VOCABULARY = 32_000
SPECIAL = ("system", "user", "assistant", "tool", "turn", "end", "think", "call")
IDS = {name: number for number, name in enumerate(SPECIAL, 1)}
FIRST = 100  # the first id that stands for text
SHORT = 200  # characters of a text whose tokens are remembered


@dataclass(frozen=True)
class Tokens:
    """The tokens of one turn.

    Attributes:
        prompt: what the policy read.
        generation: what it said.
        reasoning: how many of the latter are reasoning.
    """

    prompt: list[int]
    generation: list[int]
    reasoning: int

    @property
    def log_probs(self) -> list[float]:
        """One for each generated token: made up, finite, at most 0."""
        return [-(token % 97) / 100 for token in self.generation]

    @property
    def fields(self) -> dict[str, Any]:
        """The trainer's fields of an output item."""
        return {
            "prompt_token_ids": self.prompt,
            "generation_token_ids": self.generation,
            "generation_log_probs": self.log_probs,
        }


def text_tokens(text: str) -> Sequence[int]:
    """The tokens of a text."""
    return _short_tokens(text) if len(text) <= SHORT else _tokens(text)


def _tokens(text: str) -> tuple[int, ...]:
    span = VOCABULARY - FIRST
    return tuple(FIRST + crc32(chunk.encode(errors="surrogatepass")) % span for chunk in CHUNK.findall(text))


_short_tokens = lru_cache(4096)(_tokens)  # prompts and tools' names come again with each turn and rollout


def prompt_tokens(request: PolicyRequest) -> list[int]:
    """The tokens of a conversation, up to where the policy's next turn begins."""
    tokens = [token for name in request.tools for token in text_tokens(name)]
    for ours, entries in groupby(request.entries, lambda entry: isinstance(entry, TurnItem)):
        if ours:
            tokens += [IDS["turn"], *_generation(entries)]
        else:
            for entry in entries:
                tokens += _said(entry)
    return [*tokens, IDS["turn"]]


def tokens_of(request: PolicyRequest, turn: Turn) -> Tokens:
    """The tokens of a turn that answers a request."""
    thoughts: Sequence[TurnItem] = [item for item in turn if isinstance(item, Think)]
    return Tokens(prompt_tokens(request), _generation(turn), len(_generation(thoughts)) - 1)


def _generation(items: Iterable[ConversationEntry]) -> list[int]:
    tokens: list[int] = []
    for item in items:
        if isinstance(item, ToolCall):
            tokens += [IDS["call"], *text_tokens(item.name), *text_tokens(item.arguments)]
        elif isinstance(item, Think):
            tokens += [IDS["think"], *text_tokens(item.text)]
        elif isinstance(item, Say):
            tokens += text_tokens(item.text)
    return [*tokens, IDS["end"]]


def _said(entry: ConversationEntry) -> list[int]:
    if isinstance(entry, Prompt):
        return [IDS.get(entry.role, IDS["user"]), *text_tokens(entry.text)]
    if isinstance(entry, ToolResult):
        return [IDS["tool"], *text_tokens(entry.text)]
    return []
