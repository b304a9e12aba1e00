"""What is known of a server that the suite launched itself, and the mock that stands in for the models it asks."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from operator import sub
from typing import Any, Final, NamedTuple, Protocol

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

    @property
    def prompts(self) -> Sequence[Mapping[str, Any]]:
        """The JSON objects that it was asked since it was last told what to say."""

    def says(self, saying: Saying | str) -> None:
        """Answer so from now on; a text that is none of the known ones, word for word."""


@dataclass(frozen=True)
class JudgeModels:
    """The model servers that a launched server's config refers to, by name, and the one mock that answers for them."""

    names: tuple[str, ...]
    model: FakeModel


class OtherHosts(StrEnum):
    """What the hosts that a launched server asks on the network are made to do."""

    DOWN = "not there"
    SLOW = "slow, and then answer 503"
    TOO_MANY = "answer 429"
    FAILURE = "answer 500"
    GARBAGE = "answer 200 with garbage"
    EMPTY = "answer 200 with an empty object"


class FakeHosts(Protocol):
    """What stands for all other hosts."""

    @property
    def requests(self) -> dict[str, int]:
        """What was asked of them, and how often."""

    @property
    def settled(self) -> OtherHosts:
        """What they do as long as no check has it otherwise."""

    def let(self, hosts: OtherHosts) -> None:
        """Let them do so from now on."""

    def settle(self, hosts: OtherHosts) -> None:
        """Let them do so from now on, and after each check that has it otherwise."""


class SandboxTrouble(StrEnum):
    """What goes wrong with the sandboxes that a launched server asks for."""

    NONE = "nothing goes wrong"
    NOT_CREATED = "creation fails"
    NO_CAPACITY = "there is no capacity"
    FAILED = "commands end with status 1"
    TIMEOUT = "commands time out"
    KILLED = "commands are killed for memory, with 137"
    NOT_TEXT = "the output is no UTF-8"
    ENDLESS = "the output does not end"
    NO_FILE = "no file is there"
    BAD_GATEWAY = "commands are answered with 502"
    NOT_CLOSED = "closing fails"


class FakeSandboxes(Protocol):
    """What stands for the sandboxes that a launched server asks for."""

    @property
    def asked_sandboxes(self) -> int:
        """How many requests they got."""

    @property
    def left_sandboxes(self) -> list[str]:
        """Those that were made, and that nobody has tried to close."""

    def let_sandboxes(self, trouble: SandboxTrouble) -> None:
        """Let this go wrong from now on."""


class Relaunch(Protocol):
    """Launches a server again that the suite launched; blocks for as long as that takes.

    Each raises `NotLaunched` where it does not come up.
    """

    @property
    def seconds(self) -> float:
        """How long the launch took."""

    def restart(self) -> None:
        """End the process, and start it again at the same address."""

    def another(self) -> AbstractContextManager[str]:
        """A second process beside it, for as long as the block lasts; its URL."""


#: Begins to listen to a log, and returns what gives the last lines that were printed since.
Listen = Callable[[], Callable[[], Sequence[str]]]


def _nothing_printed() -> Callable[[], Sequence[str]]:
    return tuple


MOCKED: Final = (
    "its reward is the opinion of a judge model, which is a mock here",
    "its reward comes from a sandbox, which runs nothing here",
)


class TimesAsked(NamedTuple):
    """How often each mock was asked that stands for something of which a reward may come."""

    judge_model: int = 0
    sandbox: int = 0
    outside: int = 0

    def since(self, before: "TimesAsked") -> "TimesAsked":
        """How often since then."""
        return TimesAsked(*map(sub, self, before))

    @property
    def mocked(self) -> str:
        """Why a reward that came meanwhile may be none of the server's own, one of `MOCKED`; '' where it is."""
        return next((why for why, times in zip(MOCKED, self, strict=False) if times), "")


NONE_ASKED: Final = TimesAsked()


@dataclass(frozen=True)
class Launched:
    """What is known of a server that the suite launched; nothing of one that was there before.

    Attributes:
        env: its files.
        interpreter: its interpreter; raises `NotLaunched` where that cannot be had.
        judge_models: what answers in the place of the model servers that it asks.
        workers: how many processes serve it.
        listen: begins to listen to what it prints, for one trial, and returns what gives the last lines since.
        relaunch: launches it again.
        outside: what stands for all other hosts; None where the server may reach them.
        sandboxes: what stands for the sandboxes that it asks for.
        made_up: the credentials and other keys of its config that the suite made up.
        refused: what NeMo Gym says of data sets in its YAML that it does not accept.
        left_out: its requirements that could not be fetched, and are not there.
    """

    env: Env | None = None
    interpreter: Callable[[], str] = str
    judge_models: JudgeModels | None = None
    workers: int = 1
    listen: Listen = _nothing_printed
    relaunch: Relaunch | None = None
    outside: FakeHosts | None = None
    made_up: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    sandboxes: FakeSandboxes | None = None

    @property
    def asked(self) -> TimesAsked:
        """How often the mocks were asked so far."""
        return TimesAsked(
            self.judge_models.model.asked if self.judge_models else 0,
            self.sandboxes.asked_sandboxes if self.sandboxes else 0,
            sum(self.outside.requests.values()) if self.outside else 0,
        )

    @property
    def has_log(self) -> bool:
        """Whether what it prints can be read."""
        return self.listen is not _nothing_printed


NOT_LAUNCHED: Final = Launched()
