"""Sessions of gymnasium-style servers: an agent resets, and hands over a policy output for each step.

Source: responses_api_agents/gymnasium_agent/app.py and resources_servers/gymnasium/base.py (0.4.0 to 0.7.0).
"""

from collections.abc import Mapping
from typing import Any

from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.session.contracts import CookieSession, post
from gym_conformance.session.exchange import Exchange


class SteppingSession(CookieSession):
    """A session that is identified by a cookie, and proceeds in steps."""

    async def seed(self) -> Exchange:
        """`POST /reset` with the whole row; a session that was reset already is reset again."""
        return self._seeded(await self.channel.send(post(RESET, dict(self.row.data), self.cookies)))

    async def step(self, response: Mapping[str, Any]) -> Exchange:
        """`POST /step` with row | response."""
        return await self.send(post(STEP, {**self.row.data, "response": response}))
