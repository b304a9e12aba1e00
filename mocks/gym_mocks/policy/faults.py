from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from gym_mocks.fault_values import check_fault
from gym_mocks.policy.conversation import PolicyRequest
from gym_mocks.policy.items import Refuse, Say, Think, ToolCall, Turn, TurnItem

FaultKind = Literal[
    "latency",
    "status",
    "drop",
    "truncate",
    "invalid_json",
    "cut",
    "abort",
    "malformed_arguments",
    "unknown_tool",
    "no_final_message",
    "no_tokens",
    "no_token_fields",
]


@dataclass(frozen=True)
class PolicyFault:
    """Something that goes wrong between a policy and its client.

    Attributes:
        kind: what goes wrong. `latency`: it waits first. `status`: an error is the reply. `drop`: the connection breaks
            within the reply. `truncate`: a stream ends early, or a complete reply breaks off. `invalid_json`: the body
            ends early, or in a stream one event. `cut`: the tokens ran out. `abort`: the engine was paused (finish reason
            `abort`); a text or token ids are continued half the way, and from there when they come back. `no_tokens`: the
            turn has no generated token. `no_token_fields`: the token fields are left out. The others change what the
            policy says.
        turn: the turn of a conversation, counted from 0, at which it happens; None for any.
        rate: its probability.
        route: the route that it happens on; None for any.
        times: how often it happens at most; None for no limit.
        seconds: of latency; a callable draws them from a distribution.
        status: the HTTP status of an error.
        message: the text of an error.
        retry_after: seconds for the `Retry-After` header.
        code: an error's code, by which clients know it: `context_length_exceeded`, say.

    Raises:
        ValueError: a value with which it could never happen.
    """

    kind: FaultKind
    turn: int | None = None
    rate: float = 1.0
    route: str | None = None
    times: int | None = None
    seconds: float | Callable[[Random], float] = 0.0
    status: int = 500
    message: str = "a fault on purpose"
    retry_after: float | None = None
    code: str | None = None

    def __post_init__(self) -> None:
        check_fault(self, get_args(FaultKind))
        if self.turn is not None and not (isinstance(self.turn, int) and self.turn >= 0):
            raise ValueError(f"PolicyFault: turn={self.turn!r} is no turn of a conversation, which are counted from 0")


class Faults:
    """The faults of a policy server, drawn from one seed."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self._left: list[tuple[PolicyFault, int | None]] = []

    def add(self, fault: PolicyFault) -> None:
        """Let a fault happen from now on.

        Raises:
            TypeError: it is no policy's.
        """
        if not isinstance(fault, PolicyFault):
            raise TypeError(f"a PolicyFault is expected: not {fault!r:.80}")
        self._left.append((fault, fault.times))

    def clear(self) -> None:
        """Remove all faults."""
        self._left.clear()

    def strike(self, request: PolicyRequest) -> list[PolicyFault]:
        """The faults that happen to a request; each counts as having happened."""
        struck: list[PolicyFault] = []
        for index, (fault, left) in enumerate(self._left):
            here = fault.turn in {None, request.step} and fault.route in {None, request.route} and left != 0
            if here and (fault.rate >= 1 or self.random.random() < fault.rate):
                self._left[index] = (fault, None if left is None else left - 1)
                struck.append(fault)
        return struck

    def delay(self, faults: Sequence[PolicyFault]) -> float:
        """Seconds to wait before the answer."""
        waits = (fault.seconds for fault in faults if fault.kind == "latency")
        return sum(wait(self.random) if callable(wait) else wait for wait in waits)


def distorted(turn: Turn, faults: Sequence[PolicyFault]) -> Turn:
    """A turn after what the faults do to it; never empty."""
    for fault in faults:
        turn = tuple(changed for item in turn for changed in _change(item, fault.kind))
    return turn or (Think(""),)


def _change(item: TurnItem, kind: FaultKind) -> Turn:
    if kind == "no_final_message" and isinstance(item, Say | Refuse):
        return ()
    if isinstance(item, ToolCall) and kind == "malformed_arguments":
        return (ToolCall(item.name, item.arguments[:-1] + ","),)
    if isinstance(item, ToolCall) and kind == "unknown_tool":
        return (ToolCall(f"no_such_{item.name}", item.arguments),)
    return (item,)
