"""Web sessions: named by the client, which closes them by a capability that it made before the seed."""

import asyncio
from http import HTTPStatus
from secrets import token_hex
from typing import Any, Final

from gym_conformance.contract.endpoints import CLOSE, CLOSE_CAPABILITY, SEED_SESSION, WEB_SESSION_ID
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.printable import counted
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Exchange, reply_of
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, need
from gym_conformance.trials.trial import Trial, describe, expect_status, expect_success, refuse_made_up

#: Seeds of one session at the same time.
_AT_ONCE: Final = 3

_BOUND: Final = "Keep a digest of the row and of the capability by the session's id, and compare both."


_WEB: Final = [
    RESOURCES_SERVER,
    need(
        "web sessions",
        lambda trial: trial.gym.api.closes_web_sessions,
        f"its OpenAPI document declares no {CLOSE} with {CLOSE_CAPABILITY} (NeMo Gym's main)",
    ),
]


class _WebSession:
    """A session of the gym's first row, and the capability to close it."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.id, self.capability = token_hex(), token_hex(32)

    async def seed(self, **fields: Any) -> Exchange:
        """Seed it, without a cookie."""
        return await self._send(SEED_SESSION, {**self._trial.gym.row.data, **fields}, self.capability)

    async def close(self, capability: str = "") -> Exchange:
        """Close it, without a cookie."""
        return await self._send(CLOSE, {}, capability or self.capability)

    async def opened(self) -> Exchange:
        """Seed it.

        Raises:
            Untestable: it is not taken.
        """
        seeded = await self.seed()
        reply = reply_of(seeded)
        refuse_made_up(self._trial.gym.row, reply)
        if not is_success(reply.status):
            raise Untestable(f"a web session: {SEED_SESSION} answers {describe(reply)} to a row with {WEB_SESSION_ID}")
        return seeded

    async def _send(self, path: str, fields: dict[str, Any], capability: str) -> Exchange:
        identity = {WEB_SESSION_ID: self.id, CLOSE_CAPABILITY: capability}
        return await self._trial.channel.send(post(path, fields | identity))


def _session_of(seeded: Exchange) -> object:
    """Which session a seed has opened, as its reply names it or its cookie."""
    return reply_of(seeded).fields.get("session_id") or seeded.received.session_id


@check(
    "web-seed",
    "A web session's id SHOULD name one session, of one row",
    why="clients resend a seed when its reply is lost; otherwise a second browser is paid for, and nobody closes the first.",
    needs=_WEB,
)
async def web_seed(trial: Trial, _: object) -> None:
    """Seeds a row with one id and capability once, then three times at the same time, and then with another field in the row.

    The first seeds must open one session, the last one must be refused with a 4xx, and no reply may reveal the
    capability.

    Our inference, from environment-tutorials/web-session-lifecycle in the documentation of NeMo Gym's main, not
    released: "Reusing the identity with a different payload is rejected", "The capability is a secret".
    """
    session = _WebSession(trial)
    first = await session.opened()
    seeds = [first, *await asyncio.gather(*(session.seed() for _ in range(_AT_ONCE)))]
    for seeded in seeds:
        expect_success(reply_of(seeded), "The same seed again is the one that was lost: answer as before.")
        if session.capability.encode() in reply_of(seeded).body:
            hint = "It is a secret; leave it out of replies, rows and logs."
            raise Violation("a reply without the capability to close the session", f"{CLOSE_CAPABILITY} in it", hint)
    if len(opened := set(map(_session_of, seeds))) > 1:
        hint = "Look the id up before a session is made, with nothing awaited in between."
        raise Violation(f"one session for {len(seeds)} seeds of one id", counted(len(opened), "session"), hint)
    other = reply_of(await session.seed(conformance_other=1))
    if not is_refusal(other.status):
        raise Violation("a refusal (4xx) of another row with the same id", describe(other), _BOUND)


@check(
    "web-close",
    "A web session SHOULD be closed only by its capability, and for good",
    why="a close that fails leaves a browser running; one that anybody may send ends another rollout's session.",
    needs=_WEB,
)
async def web_close(trial: Trial, _: object) -> None:
    """Closes a session with another capability, which must be refused, then twice with its own, and seeds it again.

    Each close with its own capability must answer 200, or 503 if the release failed, and the seed must be refused with
    a 4xx; so must the seed of a session that was closed before it was seeded.

    Our inference, from environment-tutorials/web-session-lifecycle in the documentation of NeMo Gym's main, not
    released: "A close request requires the matching capability", "retains a tombstone to reject late seed retries".
    """
    session = _WebSession(trial)
    await session.opened()
    stranger = reply_of(await session.close(token_hex(32)))
    if not is_refusal(stranger.status):
        raise Violation("a refusal (4xx) of a close with another capability", describe(stranger), _BOUND)
    for one, closes in ((session, 2), (_WebSession(trial), 1)):
        for _close in range(closes):
            hint = "Closing what is closed, or not there yet, succeeds: whoever closes may not know."
            expect_status(reply_of(await one.close()), [HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE], hint)
        late = reply_of(await one.seed())
        if not is_refusal(late.status):
            hint = "Remember for a while which ids were closed, and refuse their seeds."
            raise Violation("a refusal (4xx) of a seed after the close", describe(late), hint)
