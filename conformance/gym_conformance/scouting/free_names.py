"""Which names a trajectory may give otherwise: those under which its calls are granted, too.

Others are the world's own, such as a colleague's address: where one of them is new, nothing is done.
"""

from typing import Any

from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.renaming import days_in, names_in, new_names, renamed
from gym_conformance.trajectories.trajectory import Trajectory

#: Names that are tried, one after the other.
_TRIED = 6


async def free_names(gym: Gym, trajectory: Trajectory) -> frozenset[Any]:
    """The trajectory's days and names under which each call is granted that is granted as it is.

    Each is tried beside those that are known to be free, since where these are new, what calls refer to is not there.

    Raises:
        ServerFault: the server does not answer.
    """

    async def granted(names: frozenset[Any]) -> frozenset[int]:
        outcome = await run(gym, Channel(gym.endpoint), renamed(trajectory, new_names(names)))
        return frozenset(at for at, step in enumerate(outcome.calls) if not step.is_refused)

    days, names = days_in(trajectory), frozenset[Any]().union(*names_in(trajectory)[:1])
    if not days | names:
        return frozenset()
    needed = await granted(frozenset())
    if needed <= await granted(days | names):
        return days | names
    free = frozenset[Any]()
    for more in (*([days] if days else []), *(frozenset([name]) for name in sorted(names, key=str)[:_TRIED])):
        if needed <= await granted(free | more):
            free |= more
    return free
