"""Does the server refuse what a schema allows, if it publishes no schema of its arguments?

How it refuses is learned from calls that are surely wrong, compared with one that is surely right. If an allowed value
is refused in the same words as a wrong one (apart from the value itself), then the value is the reason. Other words may
have other reasons, such as a state in which the call is impossible.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from gym_conformance.drift.compare import first_call
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.lax import explicit
from gym_conformance.drift.wording import short
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.call_places import Place, known_places, recorded_places
from gym_conformance.probes.lacking import lacks_optional, lacks_unoffered, wants_unoffered
from gym_conformance.probes.refused_call import RefusedCall
from gym_conformance.probes.refused_in_place import refused_in_place, says_nothing
from gym_conformance.probes.varied_argument import Argument, refused_within
from gym_conformance.session.channel import Channel
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.trajectory import Trajectory, is_linked
from gym_schemas import Acceptance, Document, Way, mapped, name_of, scalars, upgrade

#: How often a call is refused, and taken with texts in place of its numbers, before that is believed.
_TIMES = 2


async def refused_value(
    gym: Gym,
    channel: Channel,
    definition: Definition,
    known: Sequence[Trajectory] = (),
    *,
    seen: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    told: bool = False,
    records_hold: bool = True,
) -> RefusedCall | None:
    """Find a call that the schema allows and the server refuses for its arguments, or None.

    Arguments are varied in a recorded call, or else in a call of a trajectory `known` to be meaningful; `seen` has values
    of arguments and replies, by name. Unless
    `records_hold`, because sessions affect later ones, a refused recorded call shows nothing. If the server itself has
    `told` what the tool accepts, only recorded calls are tried, and an extra argument is not surely wrong, because
    FastAPI ignores it.

    Raises:
        NoSession: the server refuses the seed.
        ServerFault: the server does not answer.
    """
    schema = {"type": "object", **upgrade(definition.schema)}
    document = Document(schema)
    nodes = {name: document.alone(node) for name, node in (document.root.get("properties") or {}).items()}
    places = recorded_places(gym, channel, definition.name)
    acceptance = Acceptance(schema)
    meant = Acceptance(explicit(schema))
    for place in places if records_hold else ():
        found = await refused_in_place(place, acceptance, meant, nodes, told=told)
        if found is not None and not await says_nothing(place, places, found.argument, nodes):
            return found
    places += known_places(gym, channel, definition.name, known)
    # a policy may have made an invalid call; values taken from earlier replies are unknown here
    places = [place for place in places if is_linked(place.base) or acceptance.accepts(place.base)]
    smallest = first_call(definition)
    if not places and smallest is not None:
        places.append(Place(gym, channel, definition.name, gym.row_for(definition), smallest.value))
    elsewhere = first_of_each(lambda place: place.row, places)
    needed = document.root.get("required") or ()
    for name in nodes if places and not told else ():
        given = [each for each in places if name in each.base and not is_linked(each.base[name])]
        argument = Argument(places[0], elsewhere, name, nodes, given, needed=name in needed, seen=seen)
        found = await argument.refused() or await argument.in_another_form() or await refused_within(argument)
        if found is not None:
            return found
    if smallest is None or told:
        return None
    place = Place(gym, channel, definition.name, gym.row_for(definition), smallest.value)
    return (
        await lacks_unoffered(place, acceptance, nodes)
        or await wants_unoffered(place, nodes)
        or await lacks_optional([place, *places], nodes)
        or await _wants_texts(place, acceptance)
    )


async def _wants_texts(place: Place, acceptance: Acceptance) -> RefusedCall | None:
    """The call with a 1 for each number, if it is refused, and taken where each is a text, which the schema does not allow.

    One argument alone is not taken as a text where another one is still a number. It is no 0 that is refused, which
    may mean nothing where its text slips through.
    """
    ones, texts = (mapped(place.base, partial(_for_numbers, value)) for value in (1, "1"))
    name = next((name_of(way) for value, way in scalars(texts) if value == "1"), "")
    if not name or not acceptance.accepts(ones) or acceptance.accepts(texts):
        return None
    for _again in range(_TIMES):
        call, refusal = await place.ask(ones)
        if not says_no(refusal):
            return None
        sent, reply = await place.ask(texts)
        if not says_yes(reply):
            return None
    return RefusedCall(name, call, refusal, f"{short(sent)} is accepted: status {reply.status}", (reply,))


def _for_numbers(value: Any, each: Any, _: Way) -> Any:
    return value if type(each) in (int, float) else each
