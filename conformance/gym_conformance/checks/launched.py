"""What is known of a server that the suite launched itself, and the mock that stands in for the models it asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from gym_conformance.launch.env import Env


class Saying(StrEnum):
    """What the model that a launched server asks is made to answer."""

    USUAL = "no, as long as no check asks for another"
    YES = "yes"
    NO = "no"
    GARBAGE = "garbage"
    BROKEN = "what is no JSON"
    FAILURE = "500"
    TOO_LONG = "400, as its context is too short"
    NOTHING = "nothing, for long"


class FakeModel(Protocol):
    """The mock in the place of every model server that a launched server's config names, its judge for one."""

    @property
    def asked(self) -> int:
        """How many requests it got."""

    def says(self, saying: Saying) -> None:
        """Answer so from now on."""


@dataclass(frozen=True)
class JudgeModels:
    """The model servers that a launched server's config refers to, by name, and the one mock that answers for them."""

    names: tuple[str, ...]
    model: FakeModel


@dataclass(frozen=True)
class Launched:
    """What is known of a server that the suite launched; nothing of one that was there before.

    Attributes:
        env: its files.
        interpreter: its interpreter; raises `NotLaunched` where that cannot be had.
        judge_models: what answers in the place of the model servers that it asks.
        log: the last lines that it printed.
    """

    env: Env | None = None
    interpreter: Callable[[], str] = str
    judge_models: JudgeModels | None = None
    log: Callable[[], Sequence[str]] = tuple


NOT_LAUNCHED: Final = Launched()
