"""Does the server hold each row to its own definition of a tool, as a simulator of APIs does whose rows bring their tools?"""

from itertools import permutations

from gym_conformance.drift.lax import closed
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import NoSession
from gym_conformance.probes.call_places import Place, recorded_places
from gym_conformance.session.channel import Channel
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.trajectory import is_linked
from gym_schemas import Acceptance, upgrade


async def keeps_to_rows(gym: Gym, channel: Channel, tool: str) -> bool:
    """Whether two rows take recorded calls of their own, and each call that the other's definition forbids is refused there.

    What they share is given as the other's call gives it: what is refused is no value that does not exist there.
    """
    places = [place for place in recorded_places(gym, channel, tool) if not is_linked(place.base)]
    try:
        taken = [place for place in places if says_yes((await place.ask(place.base))[1], place.base)]
        kept = [await _refuses(other, one) for one, other in permutations(taken, 2) if not _allows(other, one.base)]
    except NoSession:
        return False
    return bool(kept) and all(kept)


def _allows(place: Place, arguments: object) -> bool:
    """Whether the definition in the place's own row allows the call."""
    return Acceptance(closed({"type": "object", **upgrade(place.row.parameters_of(place.tool))})).accepts(arguments)


async def _refuses(place: Place, foreign: Place) -> bool:
    """Whether a call is refused that only the other row's definition allows, with the place's own values as far as they go."""
    mixed = {**foreign.base, **{name: value for name, value in place.base.items() if name in foreign.base}}
    return says_no((await place.ask(foreign.base if _allows(place, mixed) else mixed))[1])
