"""Whether verify scores rollouts of a prompt only together: it then hangs alone, by design, and nothing is wrong with it.

Such servers compare the rollouts of a group (`genrm_compare` in nemo-gym 0.4.0 waits for 16). How many they wait for is
their config's; that they do is seen: alone no rollout is answered, and then several at the same moment.
"""

import asyncio
import json
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from gym_conformance.contract.endpoints import ROLLOUT_INDEX, VERIFY
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel, NotSent
from gym_conformance.session.exchange import Request
from gym_conformance.session.server_fault import ServerFault

#: So many rollouts of one prompt, so many seconds apart: the usual groups are of 4 to 16.
_MOST: Final = 40
_GAP: Final = 0.2

#: Seconds that those who waited together may be apart, and the least that one alone is given.
_MOMENT: Final = 0.5
_ALONE: Final = 2.0


class WholeGroups:
    """A verify that hangs alone is sent as several rollouts of its prompt, and once for a gym."""

    def __init__(self) -> None:
        self._probed = False

    def suspects(self, case: Case) -> bool:
        """Whether a verify hung."""
        return case.hung is not None and case.hung.path == VERIFY and not self._probed

    async def confirm(self, case: Case) -> Missing | None:
        """Send it together with others of its kind."""
        self._probed = True
        together = await answered_together(case.bench.gym, case.hung) if case.hung else 0
        if not together:
            return None
        return Missing(
            f"all rollouts of a prompt at the same time: /verify does not answer one alone, but {together} together; "
            "set its number of rollouts to 1",
            lasts=True,
        )


async def answered_together(gym: Gym, request: Request) -> int:
    """How many were answered together of a verify that hung alone; 0 where company makes no difference."""
    hangs = gym.endpoint.hangs.pop(request.path, 0)
    tasks: list[asyncio.Task[bool]] = []
    try:
        while len(tasks) < min(_MOST, gym.endpoint.in_flight) and not any(task.done() for task in tasks):
            tasks.append(asyncio.create_task(_answered(gym, _numbered(request, len(tasks)))))
            await asyncio.sleep(_GAP)
        waited = len(tasks) * _GAP
        done, _ = await asyncio.wait(tasks, timeout=_MOMENT)
        together = sum(task.result() for task in done)
        if together < 2:  # noqa: PLR2004 - company is two
            return 0
        tasks.append(asyncio.create_task(_answered(gym, _numbered(request, len(tasks)))))
        alone, _ = await asyncio.wait(tasks[-1:], timeout=max(_ALONE, 2 * waited))
        return 0 if any(task.result() for task in alone) else together
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        gym.endpoint.hangs[request.path] = hangs


def _numbered(request: Request, number: int) -> Request:
    """As the rollout of that number, if the request says which it is: 0.7.0's genrm_compare waits for different ones."""
    body = json.loads(request.body or b"null")
    if not isinstance(body, dict) or ROLLOUT_INDEX not in body:
        return request
    return replace(request, body=json.dumps({**body, ROLLOUT_INDEX: number}).encode())


async def _answered(gym: Gym, request: Request) -> bool:
    try:
        reply = (await Channel(gym.endpoint).send(request)).reply
    except (ServerFault, NotSent):
        return False
    return reply is not None and reply.status == HTTPStatus.OK
