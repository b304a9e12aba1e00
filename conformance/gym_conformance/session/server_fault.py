"""Failures between a request and its reply: those of the server, from a closed list of causes, and our own."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gym_conformance.session.exchange import Exchange

PARTIAL_LIMIT = 4096  # bytes of an unusable reply to keep for the finding


class Fault(enum.StrEnum):
    """Why no usable reply came; the value is a short statement for users."""

    UNREACHABLE = "no connection could be made"
    TLS = "no trusted TLS connection could be made"
    HANG = "no complete answer came in time"
    BROKEN = "the connection broke before the answer was complete"
    INVALID = "the answer is not valid HTTP"
    OVERSIZED = "the answer is larger than allowed"


class NotSent(Exception):
    """The request was not sent, for a reason on our side; the message says what it would have needed."""


class ServerFault(Exception):
    """A request that got no usable reply, and all that is known about it.

    Attributes:
        fault: which of the six causes.
        detail: what was observed, in one line.
        exchange: its record, once there is one.
        session: the record of its channel from the last seed on, which it ends.
        partial: the first bytes of the reply as received, at most 4 KiB; None if none came.
    """

    def __init__(self, fault: Fault, detail: str, *, partial: bytes | None = None) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail
        self.partial = partial
        self.exchange: Exchange | None = None
        self.session: tuple[Exchange, ...] = ()
