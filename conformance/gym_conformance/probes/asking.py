"""The calls with which a probe asks the live server, each in its own session."""

from typing import Any

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.statuses import is_success
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, Session
from gym_conformance.session.exchange import Reply, reply_of


class NoSession(Exception):
    """The row could not be seeded, which is another check's finding: nothing can be tried without `a session`."""


async def opened(gym: Gym, channel: Channel, row: Row) -> Session:
    """Open a seeded session, of a client from which none is lost: what cookies do to others is no probe's matter.

    Raises:
        NoSession: the server refuses the seed.
    """
    session = gym.contract.session(channel, row, CookieHabit.COLLECTING)
    status = reply_of(await session.seed()).status
    if not is_success(status):
        raise NoSession(f"a session: /seed_session answered {status}; see seed-accepts-rows")
    return session


async def ask(gym: Gym, channel: Channel, row: Row, tool: str, arguments: Any) -> Reply:
    """Call the tool once, in a fresh session of the row.

    Raises:
        NoSession: the server refuses the seed.
    """
    session = await opened(gym, channel, row)
    return reply_of(await session.call(Call(tool, arguments)))
