"""What the live server said to a witness, and the calls with which it is asked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.gym import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contract import Client, Session
from gym_conformance.session.exchange import Reply, reply_of

_CRASH = 500


class LiveAnswer(StrEnum):
    """What came of a witness; as the reports show it."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Live:
    """What the live server said, and in `detail` how it said it, or why it was not asked."""

    said: LiveAnswer
    detail: str

    @property
    def confirmed(self) -> bool:
        """Whether the drift is there for any client to see."""
        return self.said is LiveAnswer.CONFIRMED


class NoSession(Exception):
    """The row is not seeded, which is another check's finding; the message says what came."""


async def opened(gym: Gym, channel: Channel, row: Row, client: Client = Client.REPLACING) -> Session:
    """A seeded session.

    Raises:
        NoSession: the server does not take the seed.
    """
    session = gym.contract.session(channel, row, client)
    status = reply_of(await session.seed()).status
    if not _is_good(status):
        raise NoSession(f"/seed_session answered {status}; see seed-accepts-rows")
    return session


async def ask(gym: Gym, channel: Channel, row: Row, tool: str, arguments: Any) -> Reply:
    """Call the tool once, in a fresh session of the row.

    Raises:
        NoSession: the server does not take the seed.
    """
    session = await opened(gym, channel, row)
    return reply_of(await session.call(Call(tool, arguments)))


def taken(reply: Reply) -> bool:
    """Whether the call was taken."""
    return _is_good(reply.status)


def crashed(reply: Reply) -> bool:
    """Whether the server failed: that is another check's finding, and no drift."""
    return reply.status >= _CRASH


def _is_good(status: int) -> bool:
    return 200 <= status < 300  # noqa: PLR2004 - HTTP's own ranges
