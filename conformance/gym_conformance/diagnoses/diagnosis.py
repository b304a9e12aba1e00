"""What a diagnosis is: an examination of a trial's record, and at most one probe of the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.statuses import is_crash
from gym_conformance.session.exchange import Exchange, Request
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.launched import NONE_ASKED, TimesAsked


@dataclass(frozen=True)
class Case:
    """A trial that ended in what looks like a violation.

    Attributes:
        bench: the gym, and what is known of it.
        exchanges: the trial's record.
        fault: what ended the trial, if no complete reply came.
        asked: how often the server asked our mocks meanwhile; without other hosts if the check is about these.
        repeated: whether the trial is already a second try of the same, or hung where a finding tells of a hang.
        log: the last lines that a launched server has printed since the trial began.
    """

    bench: Bench
    exchanges: Sequence[Exchange]
    fault: ServerFault | None = None
    asked: TimesAsked = NONE_ASKED
    repeated: bool = False
    log: Callable[[], Sequence[str]] = tuple

    @property
    def verified(self) -> bool:
        """Whether the trial had anything scored."""
        return any(exchange.request.path == VERIFY for exchange in self.exchanges)

    @property
    def failed(self) -> Exchange | None:
        """The last exchange without a complete reply, or with one of 500 or above."""
        return next((each for each in reversed(self.exchanges) if has_failed(each)), None)

    @property
    def crashed(self) -> bool:
        """Whether any reply was of 500 or above."""
        return any(exchange.reply is not None and is_crash(exchange.reply.status) for exchange in self.exchanges)

    @property
    def hung(self) -> Request | None:
        """The request that got no answer in time and so ended the trial, whichever channel it was sent over."""
        if self.fault is None or self.fault.fault is not Fault.HANG or self.fault.exchange is None:
            return None
        return self.fault.exchange.request


def has_failed(exchange: Exchange) -> bool:
    """Whether no complete reply came, or one of 500 or above."""
    return exchange.reply is None or is_crash(exchange.reply.status)


@dataclass(frozen=True)
class Missing:
    """The server lacks something, so that the rule cannot be tested: `needs` stands after "needs ".

    `lasts` where all that it scores from now on is scored without it, asked for again or not.
    """

    needs: str
    lasts: bool = False


@dataclass(frozen=True)
class TryAgain:
    """The trial says nothing, and another may; `note` says why."""

    note: str


class Diagnosis(Protocol):
    """One cause that is not a fault of the env's code. An instance belongs to one gym, and may remember what it probed."""

    def suspects(self, case: Case) -> bool:
        """Whether the record suggests this cause. Sends nothing."""

    async def confirm(self, case: Case) -> Missing | TryAgain | None:
        """What follows, after at most one probe; None if it has another cause after all."""
