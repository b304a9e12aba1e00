"""What can go wrong between a request and its answer: the server's part, with a closed list of causes, and our own."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gym_conformance.session.exchange import Exchange

PARTIAL_LIMIT = 4096  # bytes of an unusable answer that are kept for the finding


class Fault(enum.StrEnum):
    """Why no usable answer came; the value is a short fact for people."""

    UNREACHABLE = "no connection could be made"
    TLS = "no trusted TLS connection could be made"
    HANG = "no complete answer came in time"
    BROKEN = "the connection broke before the answer was complete"
    INVALID = "the answer is not valid HTTP"
    OVERSIZED = "the answer is larger than allowed"


class NotSent(Exception):
    """A request was not sent, for a reason on our side; the message says what it would have needed."""


class ServerFault(Exception):
    """A request that got no usable answer, and all that is known of it.

    Attributes:
        fault: Which of the six it is.
        detail: What was seen, in one line.
        exchange: The record of it, once there is one.
        partial: The first bytes of the answer as they came off the wire, at most 4 KiB; None when none came.
    """

    def __init__(self, fault: Fault, detail: str, *, partial: bytes | None = None) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail
        self.partial = partial
        self.exchange: Exchange | None = None
