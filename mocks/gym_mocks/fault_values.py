"""What both kinds of faults, of policies and of rollouts, refuse: a fault that can never happen hides a test's mistake."""

from collections.abc import Callable, Collection
from typing import Protocol

DELAYS = ("latency", "late")  # the kinds that do nothing but wait


class FaultValues(Protocol):
    """What both kinds of faults have."""

    @property
    def kind(self) -> str:
        """What goes wrong."""

    @property
    def rate(self) -> float:
        """With which probability."""

    @property
    def times(self) -> int | None:
        """How often at most."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def seconds(self) -> float | Callable[..., float]:
        """How long it waits, or what draws that."""


def check_fault(fault: FaultValues, kinds: Collection[str]) -> None:
    """Look at a fault's values.

    Raises:
        ValueError: one is of no kind, or can never happen.
    """
    name = type(fault).__name__
    if fault.kind not in kinds:
        raise ValueError(f"{name}: no kind is named {fault.kind!r}; there are {', '.join(kinds)}")
    if not 0 <= fault.rate <= 1:
        raise ValueError(f"{name}: rate={fault.rate!r} is no probability from 0 to 1")
    if fault.times is not None and fault.times < 0:
        raise ValueError(f"{name}: times={fault.times!r} is less than none")
    if not (isinstance(fault.status, int) and 400 <= fault.status <= 599):  # noqa: PLR2004 - the errors of HTTP
        raise ValueError(f"{name}: status={fault.status!r} is no error of HTTP, which are 400 to 599")
    if not callable(fault.seconds) and (fault.seconds < 0 or (fault.kind in DELAYS and not fault.seconds)):
        raise ValueError(f"{name}: seconds={fault.seconds!r} is no time to wait")
