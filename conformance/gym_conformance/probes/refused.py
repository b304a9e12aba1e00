"""Does the live server refuse a call that the schema allows, while it accepts another allowed one?"""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

from gym_conformance.contract.statuses import UNROUTED, is_crash, is_success
from gym_conformance.drift.argument_places import ANY
from gym_conformance.drift.tool_drift import Drift, Witness
from gym_conformance.drift.wording import short
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import ask
from gym_conformance.probes.call_places import Place, known_places
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import places, says_yes
from gym_conformance.trajectories.trajectory import Trajectory
from gym_schemas import Acceptance, Schema, admits, boundary_values
from gym_schemas.json_values import ABSENT, first_step, steps_of, type_of

#: A schema with one of these keywords lists its values.
_ENUMERATES: Final = frozenset({"enum", "const"})

#: Known calls that are varied.
_PLACES: Final = 4

#: Refusals that do not concern the arguments, but the caller, the path, the method, or the rate.
_OTHER_REFUSALS: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        *UNROUTED,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)


async def is_refused(
    gym: Gym, channel: Channel, drift: Drift, known: Callable[[], Awaitable[Sequence[Trajectory]]]
) -> Live:
    """Send the witness and its counterpart, each in a session of a row that declares the tool.

    If that shows nothing, because made-up calls are refused for other reasons as well, put the one value in question of
    the witness into a call that is `known` to be meaningful, in its place.

    Raises:
        NoSession: the server refuses the seed.
        ServerFault: the server does not answer: a hang or a broken connection is not drift.
    """
    if drift.witness is None:
        return Live(LiveAnswer.NOT_TRIED, "no value was found that would show it")
    row = gym.row_for(drift)
    reply = await ask(gym, channel, row, drift.tool, drift.witness.value)
    if doubt := _doubt(drift, reply):
        live = Live(LiveAnswer.NOT_CONFIRMED, doubt)
    else:
        live = await _beside(gym, channel, drift, reply)
    if live.confirmed or is_success(reply.status) or is_crash(reply.status) or not drift.shown:
        return live
    return await _in_its_place(gym, channel, drift, await known()) or live


async def _in_its_place(gym: Gym, channel: Channel, drift: Drift, known: Sequence[Trajectory]) -> Live | None:
    """Compare a known call in its place with the same call with the one value of the witness that is in question."""
    served, way = (gym.served or {}).get(drift.tool), steps_of(drift.path)
    if served is None or drift.witness is None or not way:
        return None
    theirs = Acceptance(served.arguments)
    for place in known_places(gym, channel, drift.tool, known)[:_PLACES]:
        base, reply = await place.ask(place.base)
        if not says_yes(reply, base) or not isinstance(base, dict):
            continue
        changed = _taking(place.base, drift.witness.value, way)
        sent, refusal = await place.ask(changed)
        if is_success(refusal.status):
            return Live(LiveAnswer.NOT_CONFIRMED, f"the server accepted {short(sent)}: status {refusal.status}")
        definition = place.row.parameters_of(drift.tool)
        shows = admits(definition, base) and admits(definition, sent) and not theirs.accepts(sent)
        if not shows or _doubt(drift, refusal):
            continue
        if await _is_for_its_value(place, drift, sent, refusal):
            detail = (
                f"status {refusal.status} for {short(sent)}; {short(base)} is accepted there: status {reply.status}"
            )
            return Live(LiveAnswer.CONFIRMED, f"{detail}; it says {refusal.text}")
    return None


async def _is_for_its_value(place: Place, drift: Drift, sent: dict[str, Any], refusal: Reply) -> bool:
    """Whether the refusal concerns the schemas' difference: the closest value that both allow is not refused so.

    A value that is merely meaningless there, such as an unknown name, is refused in the same words whatever it is.
    """
    way = steps_of(drift.path)
    own = _at(sent, way)
    if own is ABSENT:
        return True  # the known call, which is accepted, differs only in this
    other = _taking(place.base, drift.counterpart.value, way) if drift.counterpart else place.base
    beside, reply = await place.ask(other)
    its = None if (its := _at(beside, way)) is ABSENT else its
    if says_yes(reply, beside):
        return _names(refusal, drift.path) or _near(own, its, drift.served)
    same_words = alike(Answer(refusal, (own,)), Answer(reply, (its,)))
    return not same_words and _names(refusal, drift.path)


def _near(one: Any, other: Any, served: Any) -> bool:
    """Whether only the server's schema separates a refused value from an accepted one."""
    kinds = [type_of(each) for each in (one, other)]
    if set(kinds) <= {"integer", "number"}:
        return bool(abs(one - other) <= 1)
    if kinds == ["string", "string"]:
        return abs(len(one) - len(other)) <= 1 or (isinstance(served, dict) and not _ENUMERATES.isdisjoint(served))
    return kinds[0] != kinds[1]


def _taking(base: Any, other: Any, way: Sequence[str]) -> Any:
    """The call with what is there as the other call has it, or without it; and with all around it as far as both have it."""
    match base, other, way:
        case dict(), dict(), [name, *further] if name != ANY:
            kept = {key: value for key, value in base.items() if key != name}
            return {**kept, name: _taking(base.get(name), other[name], further)} if name in other else kept
        case [first, *more], [only], [_, *further]:
            return [_taking(first, only, further), *more]
    return other


def _at(call: Any, way: Sequence[str]) -> Any:
    """What is there in the call, in the first member of each list; ABSENT if nothing is."""
    match call, way:
        case _, []:
            return call
        case dict(), [name, *further] if name in call:
            return _at(call[name], further)
        case [first, *_], [_, *further]:
            return _at(first, further)
    return ABSENT


def _doubt(drift: Drift, reply: Reply) -> str:
    """Why the reply to the witness does not refuse its arguments; '' if it does."""
    if is_success(reply.status):
        return f"the server accepted the witness: status {reply.status}"
    if is_crash(reply.status):
        return f"the witness crashes the server, which is not drift: status {reply.status}"
    if reply.status in _OTHER_REFUSALS:
        return f"status {reply.status}, which is not about the arguments"
    if not drift.shown and not _names(reply, drift.path):
        return f"status {reply.status}, and it does not name the argument: {reply.text}"
    return ""


async def _beside(gym: Gym, channel: Channel, drift: Drift, refusal: Reply) -> Live:
    """What the refusal of the witness shows, compared with a call that differs."""
    status, body = f"status {refusal.status}", f"it says {refusal.text}"
    other = drift.counterpart or _of_the_server(gym, drift.tool)
    if other is not None:
        reply = await ask(gym, channel, gym.row_for(drift), drift.tool, other.value)
        if is_success(reply.status):
            return Live(
                LiveAnswer.CONFIRMED, f"{status}; {short(other.value)} is accepted: status {reply.status}; {body}"
            )
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
    """A call that the server's own schema allows, if the declared schema allows none of these."""
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
    first = first_step(path)
    return any(first in place for place in places(refusal)) if first else any(places(refusal))
