"""Sessions of gymnasium-style servers: an agent resets, and hands over a policy output for each step.

Source: responses_api_agents/gymnasium_agent/app.py and resources_servers/gymnasium/base.py (0.4.0 to 0.7.0).
"""

from collections.abc import Mapping
from typing import Any

from gym_conformance.contract.endpoints import CLOSE, RESET, STEP
from gym_conformance.session.contracts import CookieSession, post
from gym_conformance.session.exchange import Exchange, reply_of


class SteppingSession(CookieSession):
    """A session that is identified by a cookie, and proceeds in steps.

    `closes` says whether the last reset offered to close it (0.7.0 on).
    """

    closes = False

    async def seed(self) -> Exchange:
        """`POST /reset` with the whole row; a session that was reset already is reset again."""
        exchange = self._seeded(await self.channel.send(post(RESET, dict(self.row.data), self.cookies)))
        info = reply_of(exchange).fields.get("info")
        self.closes = isinstance(info, dict) and info.get("supports_explicit_close") is True
        return exchange

    async def step(self, response: Mapping[str, Any], **fields: Any) -> Exchange:
        """`POST /step` with row | response, and with `fields` besides."""
        return await self.send(post(STEP, {**self.row.data, **fields, "response": response}))

    async def close(self) -> Exchange | None:
        """`POST /close`, if the reset offered it."""
        return await self.send(post(CLOSE, {})) if self.closes else None
