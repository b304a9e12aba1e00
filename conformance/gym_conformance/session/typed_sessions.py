"""Sessions under the typed contract: the caller's session id and episode at seed and close, a cookie in between.

Source: environment_servers/single_agent_turn/app.py, 0.7.0: tools and verify get the cookies of the seed.
"""

from dataclasses import replace

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import CLOSE_SESSION, SEED_SESSION
from gym_conformance.contract.identity import Identity, task_of
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, CookieSession, post
from gym_conformance.session.exchange import Exchange


class TypedSession(CookieSession):
    """A session whose id the caller chooses."""

    def __init__(self, channel: Channel, row: Row, habit: CookieHabit, identity: Identity) -> None:
        super().__init__(channel, row, habit)
        self.identity = identity

    @property
    def id(self) -> str | None:
        """The id that the caller chose."""
        return self.identity.session_id

    async def seed(self) -> Exchange:
        """`POST /seed_session` with the identity and the row's data."""
        return self._seeded(
            await self.channel.send(post(SEED_SESSION, self.identity.seed(self.row.data), self.cookies))
        )

    def shared(self) -> "TypedSession":
        """A second client with the same identity and cookies."""
        return self._known_to(TypedSession(self.channel, self.row, self.habit, self.identity))

    def again(self, **changes: object) -> "TypedSession":
        """A client without cookies that names the same session, possibly in another episode."""
        identity = replace(self.identity, **changes)  # type: ignore[arg-type]
        return TypedSession(self.channel, self.row, self.habit, identity)

    async def close(self) -> Exchange:
        """`POST /close_session`, with the session's cookies."""
        return await self.send(post(CLOSE_SESSION, self.identity.close()))


class TypedContract:
    """The contract of environment servers from 0.7.0 on."""

    name = "typed"

    def session(self, channel: Channel, row: Row, habit: CookieHabit = CookieHabit.REPLACING) -> TypedSession:
        """A new session with a new id, not yet seeded."""
        return TypedSession(channel, row, habit, Identity(task_id=task_of(row)["task_id"]))
