from dataclasses import dataclass
from hashlib import blake2b
from time import time

from gym_mocks.policy.conversation import MARK, PolicyRequest
from gym_mocks.policy.items import Turn
from gym_mocks.policy.tokens import Tokens, tokens_of


@dataclass(frozen=True)
class Answer:
    """A turn, and all that an API's reply needs beside it.

    Attributes:
        request: what it answers.
        turn: what the policy said.
        tokens: of prompt and turn.
        token_fields: whether the reply carries the trainer's fields.
        cut: whether it stopped for want of tokens (`incomplete_details`, finish reason `length`).
        created: seconds since the epoch.
        key: tells this answer's ids from those of other turns.
    """

    request: PolicyRequest
    turn: Turn
    tokens: Tokens
    token_fields: bool
    cut: bool
    created: int
    key: str

    @classmethod
    def of(cls, request: PolicyRequest, turn: Turn, *, token_fields: bool = False, cut: bool = False) -> "Answer":
        """The answer that says a turn."""
        tokens = tokens_of(request, turn)
        digest = blake2b(repr((request.route, tokens.prompt, tokens.generation)).encode(), digest_size=8)
        return cls(request, turn, tokens, token_fields, cut, int(time()), digest.hexdigest())

    @property
    def model(self) -> str:
        """The model it names: the one asked for."""
        return self.request.model or "mock"

    def id(self, kind: str, index: int = 0) -> str:
        """An id of its own: deterministic, and recognisable as ours."""
        return f"{kind}_{MARK}_{self.key}_{index}"
