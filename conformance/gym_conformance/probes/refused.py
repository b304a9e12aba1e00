"""Is a call that the definition allows refused by the live server, where another that it allows is taken?"""

from http import HTTPStatus
from typing import Final

from gym_conformance.contract.statuses import UNROUTED
from gym_conformance.drift.tool_drift import Drift, Witness
from gym_conformance.drift.wording import short
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import ask, crashed, taken
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply
from gym_conformance.session.refusals import places
from gym_schemas import Acceptance, Schema, boundary_values

#: Refusals that say nothing about the arguments: of the caller, the place, the method, or the pace.
_OTHER_REFUSALS: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        *UNROUTED,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)


async def is_refused(gym: Gym, channel: Channel, drift: Drift) -> Live:
    """Send the witness, and the counterpart beside it, each in a session of a row that declares the tool.

    Raises:
        NoSession: the server does not take the seed.
        ServerFault: the server does not answer: a hang or a broken connection is no drift.
    """
    if drift.witness is None:
        return Live(LiveAnswer.NOT_TRIED, "no value was found that would show it")
    row = gym.row_for(drift)
    reply = await ask(gym, channel, row, drift.tool, drift.witness.value)
    if doubt := _doubt(drift, reply):
        return Live(LiveAnswer.NOT_CONFIRMED, doubt)
    return await _beside(gym, channel, drift, reply)


def _doubt(drift: Drift, reply: Reply) -> str:
    """Why the reply to the witness is no refusal of its arguments; '' where it is one."""
    if taken(reply):
        return f"the server accepted the witness: status {reply.status}"
    if crashed(reply):
        return f"the witness crashes the server, which is not drift: status {reply.status}"
    if reply.status in _OTHER_REFUSALS:
        return f"status {reply.status}, which is not about the arguments"
    if not drift.shown and not _names(reply, drift.path):
        return f"status {reply.status}, and it does not name the argument: {reply.text}"
    return ""


async def _beside(gym: Gym, channel: Channel, drift: Drift, refusal: Reply) -> Live:
    """What the refusal of the witness is worth beside a call that differs."""
    status, body = f"status {refusal.status}", f"it says {refusal.text}"
    other = drift.counterpart or _of_the_server(gym, drift.tool)
    if other is not None:
        reply = await ask(gym, channel, gym.row_for(drift), drift.tool, other.value)
        if taken(reply):
            return Live(LiveAnswer.CONFIRMED, f"{status}; {short(other.value)} is taken: status {reply.status}; {body}")
        if drift.counterpart is not None and not _names(refusal, drift.path):
            return Live(
                LiveAnswer.NOT_CONFIRMED,
                f"{status}; but {short(other.value)} is refused too: status {reply.status}; {body}",
                undecided=True,
            )
    if _names(refusal, drift.path):
        return Live(LiveAnswer.CONFIRMED, f"{status}; the server accepts no call that the definition allows; {body}")
    return Live(LiveAnswer.NOT_CONFIRMED, f"{status}; no call is known that the server accepts; {body}", undecided=True)


def _of_the_server(gym: Gym, tool: str) -> Witness | None:
    """A call that the server's own schema allows, where the definition allows none of these."""
    served = (gym.served or {}).get(tool)
    schema: Schema | None = served.arguments if served and served.request is not None else None
    if schema is None:
        return None
    try:
        allowed = Acceptance(schema)
        calls = (value for value in boundary_values(schema) if isinstance(value, dict) and allowed.accepts(value))
        return next((Witness(value) for value in calls), None)
    except ValueError:
        return None


def _names(refusal: Reply, path: str) -> bool:
    """Whether the refusal names the argument, as FastAPI's 422 does: `{"detail": [{"loc": ["body", "city"]}]}`."""
    first = path.removeprefix("/").split("/")[0].replace("~1", "/").replace("~0", "~")
    return any(first in place for place in places(refusal)) if first else any(places(refusal))
