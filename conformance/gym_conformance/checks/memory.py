"""What the checks of one run share beside the gym: how much to search, and what was learned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gym_conformance.launch.env import Env
from gym_conformance.trajectories.explore import USUAL, Search
from gym_conformance.trajectories.generate import Knowledge


class Saying(StrEnum):
    """What the model that a launched server asks is made to answer."""

    USUAL = "no, as long as no check asks for another"
    YES = "yes"
    NO = "no"
    GARBAGE = "garbage"
    BROKEN = "what is no JSON"
    FAILURE = "500"
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


@dataclass
class Memory:
    """Shared by all trials of a run.

    `pid` is the server's process, where it is on this machine and known; `statistics` are Hypothesis's, by check;
    `trials` counts them, one for each subject of a check or example of a property; `judge_models`, `env`, its interpreter `python`,
    and `log`, the last lines that it printed, are there where we launched the server.
    """

    search: Search = USUAL
    pid: int | None = None
    knowledge: Knowledge | None = None
    statistics: dict[str, str] = field(default_factory=dict)
    trials: int = 0
    judge_models: JudgeModels | None = None
    env: Env | None = None
    python: str = ""
    log: Callable[[], Sequence[str]] = tuple
