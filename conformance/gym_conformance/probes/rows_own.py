"""Does the server hold each row to its own definition of a tool, as a simulator of APIs does whose rows bring their tools?"""

import json
from collections.abc import Iterator
from itertools import islice, permutations

from gym_conformance.drift.lax import closed
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import NoSession
from gym_conformance.probes.call_places import Place, recorded_places
from gym_conformance.session.channel import Channel
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.made_up import plain_arguments
from gym_conformance.trajectories.trajectory import is_linked
from gym_schemas import Acceptance, upgrade

#: Definitions of one tool that are compared.
_DEFINITIONS = 3


async def keeps_to_rows(gym: Gym, channel: Channel, tool: str) -> bool:
    """Whether two rows take recorded calls of their own, and each call that the other's definition forbids is refused there.

    What they share is given as the other's call gives it: what is refused is no value that does not exist there. If no two
    such calls are recorded, the smallest call that only one definition allows must be refused in other words where it does not.
    """
    places = [place for place in recorded_places(gym, channel, tool) if not is_linked(place.base)]
    try:
        taken = [place for place in places if says_yes((await place.ask(place.base))[1], place.base)]
        kept = [await _refuses(other, one) for one, other in permutations(taken, 2) if not _allows(other, one.base)]
        least = [] if kept else list(_smallest(gym, channel, tool))
        kept += [
            await _tells_apart(one, other) for one, other in permutations(least, 2) if not _allows(other, one.base)
        ]
    except NoSession:
        return False
    return bool(kept) and all(kept)


def _smallest(gym: Gym, channel: Channel, tool: str) -> Iterator[Place]:
    """The smallest call that a row's definition allows, for each of the first different definitions."""
    declared = ((row, each) for row in gym.rows for each in row.tools if each.name == tool)
    different = first_of_each(lambda one: json.dumps(one[1].parameters, sort_keys=True), declared)
    for row, each in islice(different.values(), _DEFINITIONS):
        if base := plain_arguments(each):
            yield Place(gym, channel, tool, row, base)


async def _tells_apart(place: Place, foreign: Place) -> bool:
    """Whether the first place's call is refused in the other's row, and not in the words in which its own row answers it."""
    own = (await place.ask(place.base))[1]
    there = (await foreign.ask(place.base))[1]
    return says_no(there, place.base) and not alike(Answer(there), Answer(own))


def _allows(place: Place, arguments: object) -> bool:
    """Whether the definition in the place's own row allows the call."""
    return Acceptance(closed({"type": "object", **upgrade(place.row.parameters_of(place.tool))})).accepts(arguments)


async def _refuses(place: Place, foreign: Place) -> bool:
    """Whether a call is refused that only the other row's definition allows, with the place's own values as far as they go."""
    mixed = {**foreign.base, **{name: value for name, value in place.base.items() if name in foreign.base}}
    return says_no((await place.ask(foreign.base if _allows(place, mixed) else mixed))[1])
