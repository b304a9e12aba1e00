from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from time import time
from typing import Any, Literal

from gym_mocks.policy.conversation import MARK, PolicyRequest, RawPrompt, sent_back
from gym_mocks.policy.items import Turn, written
from gym_mocks.policy.tokens import TokenFields, Tokenizer, TurnTokens, tokens_of

SCORED = 4  # values that a token has with its log probability
# fields that say how many tokens are listed where one is scored
LISTS = ("logprobs", "top_logprobs", "prompt_logprobs", "top_logprobs_num")


@dataclass(frozen=True)
class PolicyAnswer:
    """A turn, and all that an API's reply needs beside it.

    Attributes:
        request: what it answers.
        turn: what the policy said.
        tokens: of prompt and turn.
        tokenizer: made them.
        made: how the trainer's fields are made.
        token_fields: whether the reply carries them.
        cut: why it did not come to its end: for want of tokens (`incomplete_details`, finish reason `length`), or because
            the engine was paused (`abort`).
        created: seconds since the epoch.
        key: tells this answer's ids from those of other turns.
        text: what it says as one text, where that is not the turn's own: cut short, or with the prompt before it (`echo`).
        begun: how many of the turn's tokens the prompt ends with.
    """

    request: PolicyRequest
    turn: Turn
    tokens: TurnTokens
    tokenizer: Tokenizer
    made: TokenFields
    token_fields: bool
    cut: Literal["length", "abort"] | None
    created: int
    key: str
    text: str | None = None
    begun: int = 0

    @classmethod
    def of(
        cls,
        request: PolicyRequest,
        turn: Turn,
        tokenizer: Tokenizer,
        made: TokenFields,
        *,
        token_fields: bool = False,
        kinds: frozenset[str] = frozenset(),
    ) -> "PolicyAnswer":
        """The answer that says a turn; `kinds` are the faults' that befall it."""
        cut: Literal["length", "abort"] | None = "abort" if "abort" in kinds else "length" if "cut" in kinds else None
        tokens = tokens_of(request, sent_back(request.api, turn), tokenizer, ended=not cut)
        if "no_tokens" in kinds:
            tokens = TurnTokens(tokens.prompt, [], 0)
        digest = blake2b(repr((request.route, tokens.prompt, turn)).encode(errors="surrogatepass"), digest_size=8)
        shown = token_fields and "no_token_fields" not in kinds
        answer = cls(request, turn, tokens, tokenizer, made, shown, cut, int(time()), digest.hexdigest())
        return answer._continuing(request.raw) if request.raw else answer

    def _continuing(self, raw: RawPrompt) -> "PolicyAnswer":
        """The same as an engine continues a prompt: from where a turn stands that is open at its end, and never longer than asked for.

        Trainers assert the latter, and take off what they score; an engine that is paused leaves them half a turn.
        """
        every, begun = self.tokens.generation, list(raw.begun)
        start = len(begun) if every[: len(begun)] == begun else 0
        left = every[start:]
        most = len(left) // 2 if self.cut == "abort" else len(left)
        kept = left[: most if self.limit is None else min(most, self.limit)]
        end, whole = start + len(kept), "".join(part for item in self.turn for part in written(item))
        said = whole if end == len(every) else self._beginning(whole, every[:end])
        before = self._beginning(whole, every[:start])
        rest = said[len(before) :] if said.startswith(before) else self.tokenizer.decoded(kept)
        text = (raw.text if self.echoes else "") + rest
        shorter = TurnTokens(self.tokens.prompt, kept, max(0, min(self.tokens.reasoning, end) - start))
        cut = self.cut or ("length" if kept != left else None)
        return replace(self, tokens=shorter, cut=cut, text=text, begun=start)

    def _beginning(self, whole: str, tokens: list[int]) -> str:
        """What the first tokens of a turn say: of ids that stand for none, what they are named by where that is it."""
        named = "".join(self.token_names[: len(tokens)])
        return named if whole.startswith(named) else self.tokenizer.decoded(tokens)

    @property
    def prompt_is_scored(self) -> bool:
        """Whether the prompt's log probabilities are asked for: by name, or by `echo` with those of what is said, as vLLM takes it."""
        name, default = ("top_logprobs", 0) if self.request.api == "chat" else ("logprobs", None)
        echoed = self.echoes and self.request.body.get(name, default) is not None
        return echoed or self.sampling.get("prompt_logprobs") is not None

    @property
    def fields(self) -> dict[str, Any]:
        """The trainer's fields; none where the reply carries none."""
        return self.made.of(self.tokens) if self.token_fields else {}

    @property
    def sampling(self) -> Mapping[str, Any]:
        """The parameters of sampling: the request's own, or those that an engine is given in an object of their own."""
        body = self.request.body
        return (body.get("sampling_params") or {}) if self.request.api in {"vllm", "sglang"} else body

    @property
    def count(self) -> int:
        """How many choices are asked for; all of them are the same."""
        return self.sampling.get("n") or 1

    @property
    def limit(self) -> int | None:
        """How many tokens an engine may say; None where it may say all."""
        most = self.sampling.get("max_new_tokens" if self.request.api == "sglang" else "max_tokens")
        return most if isinstance(most, int) and most >= 0 else None

    @property
    def echoes(self) -> bool:
        """Whether the reply is to have the prompt before what is said."""
        return bool(self.request.body.get("echo"))

    @property
    def values(self) -> int:
        """About how many values the reply holds beyond what the request and the turn do: further choices, log probabilities."""
        asked = {**self.request.body, **self.sampling}
        scored = any("logprob" in name and value is not None and value is not False for name, value in asked.items())
        prompt, said = len(self.tokens.prompt), len(self.tokens.generation)
        named = (said if scored else 0) + (prompt if self.prompt_is_scored else prompt - self.scored_from)
        return (self.count - 1) * (prompt + said) + self.count * named * SCORED * (
            self.listed(*LISTS) + len(self.named_ids)
        )

    def listed(self, *fields: str) -> int:
        """How many tokens are listed at a place that is scored: as many as a field asks for, or the token itself alone."""
        asked = {**self.request.body, **self.sampling}
        return max([1, *(most for name in fields if type(most := asked.get(name)) is int)])

    @property
    def scored_from(self) -> int:
        """The first of the prompt's tokens whose log probability SGLang is asked for; its length where none is."""
        start = self.request.body.get("logprob_start_len") if self.request.api == "sglang" else None
        length = len(self.tokens.prompt)
        return min(start, length) if isinstance(start, int) and start >= 0 else length

    @property
    def named_ids(self) -> Sequence[int]:
        """The ids whose log probabilities SGLang is asked for at each place."""
        return (self.request.body.get("token_ids_logprob") or ()) if self.request.api == "sglang" else ()

    @property
    def wants_usage(self) -> bool:
        """Whether a stream is to end with the usage."""
        return bool((self.request.body.get("stream_options") or {}).get("include_usage"))

    def usage_so_far(self, share: float = 1) -> dict[str, Any]:
        """What a chunk says of the tokens when that share of them was said, where a client asks all chunks for it."""
        if not (self.wants_usage and self.request.body["stream_options"].get("continuous_usage_stats")):
            return {}
        read, said = len(self.tokens.prompt), int(len(self.tokens.generation) * share)
        return {"usage": {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}}

    @property
    def matched_stop(self) -> int | None:
        """The token that ended it, as SGLang names it."""
        return None if self.cut or not self.tokens.generation else self.tokens.generation[-1]

    @property
    def metadata(self) -> dict[str, Any]:
        """What SGLang says beside the choices of every whole reply: by which weights it was made."""
        return {"metadata": {"weight_version": self.made.weight_version}}

    @property
    def log_probs(self) -> list[tuple[int, float]]:
        """Each generated token with its log probability."""
        return list(zip(self.tokens.generation, self.made.log_probs(self.tokens.generation), strict=True))

    @property
    def named_log_probs(self) -> list[dict[str, Any]]:
        """The same as OpenAI writes them, each with the likeliest where these are asked for."""
        most = self.listed("top_logprobs") if self.request.body.get("top_logprobs") else 0
        named = []
        for name, (token, log_prob) in zip(self.token_names, self.log_probs, strict=True):
            first, *others = (
                {"token": each, "logprob": one, "bytes": list(each.encode(errors="replace"))}
                for each, one in self.likeliest(name, token, log_prob, most)
            )
            named.append(first | {"top_logprobs": [first, *others] if most else []})
        return named

    def likeliest(self, name: str, token: int, log_prob: float, most: int) -> list[tuple[str, float]]:
        """The names and log probabilities of a token and others, as many as are asked for."""
        others = self.made.likeliest(token, log_prob, most)[1:]
        return [(name, log_prob), *((self._name_of(other), one) for other, one in others)]

    @cached_property
    def _name_of(self) -> Callable[[int], str]:
        by_ids, decoded = self._named_by_ids, self.tokenizer.decoded
        return lru_cache(None)(lambda token: f"token_id:{token}" if by_ids else decoded([token]))

    @cached_property
    def prompt_log_probs(self) -> list[tuple[int, float | None]]:
        """Each of the prompt's tokens with its log probability; the first follows nothing, and has none."""
        read = self.tokens.prompt
        return list(zip(read, [*([None] if read else []), *self.made.log_probs(read[1:])], strict=True))

    @property
    def token_names(self) -> list[str]:
        """How log probabilities name the generated tokens: by their texts, or as vLLM's clients ask, nemo-gym's vllm_model among them, by ids."""
        if self._named_by_ids:
            return [f"token_id:{token}" for token in self.tokens.generation]
        return self.token_texts

    @cached_property
    def token_texts(self) -> list[str]:
        """What each of the generated tokens stands for."""
        said = [text for item in sent_back(self.request.api, self.turn) for text in self.tokenizer.spelled(item)]
        named = [*said, self.tokenizer.decoded([self.tokenizer.end])]
        return named[self.begun : self.begun + len(self.tokens.generation)]

    @property
    def prompt_names(self) -> list[str]:
        """The same of the prompt's tokens, where that is no conversation."""
        by_ids = self._named_by_ids or self.request.raw is None
        return [f"token_id:{token}" for token in self.tokens.prompt] if by_ids else self.prompt_texts

    @cached_property
    def prompt_texts(self) -> list[str]:
        """What each of the prompt's tokens stands for."""
        raw = self.request.raw
        if raw and not raw.as_ids:
            return self.tokenizer.spelled(raw.text)
        texts = {token: self.tokenizer.decoded([token]) for token in set(self.tokens.prompt)}
        return [texts[token] for token in self.tokens.prompt]

    @property
    def _named_by_ids(self) -> bool:
        asked = self.request.body.get("return_tokens_as_token_ids")
        return self.made.named_by_ids if asked is None else bool(asked)

    @property
    def model(self) -> str:
        """The model it names: the one asked for."""
        return self.request.model or "mock"

    def id(self, kind: str, index: int = 0) -> str:
        """An id of its own: deterministic, and recognisable as ours."""
        return f"{kind}_{MARK}_{self.key}_{index}"


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces of a stream: of 16 characters."""
    yield from (text[start : start + 16] for start in range(0, len(text), 16))
