"""Servers whose verify scores the rollouts of a prompt together: sound ones, and ones that lose count."""

import asyncio
from collections import defaultdict
from typing import Any, Final

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.wire import HttpRefusal
from tests.twins.twin import Twin, twin

SIZE: Final = 4

Waiting = dict[int, tuple[float, asyncio.Future[float]]]


class Grouped(ReferenceServer):
    """Rewards a rollout by how much better it is than the others of its group, which its task's number tells.

    A rollout that comes again is the same one, as in nemo-gym 0.7.0's genrm_compare.
    """

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[object, Waiting] = defaultdict(dict)

    def key(self, row: dict[str, Any]) -> object:
        """Which group a rollout belongs to."""
        return row.get("_ng_task_index")

    def place(self, row: dict[str, Any], group: Waiting) -> int:
        """Which member of its group a rollout is."""
        return int(row.get("_ng_rollout_index", len(group)))

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        given = row.model_dump()
        mine = (await super().score(session_id, row, response)).reward
        group = self.groups[self.key(given)]
        place = self.place(given, group)
        _, scored = group.setdefault(place, (mine, asyncio.get_running_loop().create_future()))
        if len(group) == SIZE:
            del self.groups[self.key(given)]
            mean = sum(each for each, _ in group.values()) / SIZE
            for each, future in group.values():
                future.set_result(each - mean)
        return Score.summed({"advantage": await asyncio.shield(scored)})


class Numbered(Grouped):
    """Refuses a rollout that does not say which it is, as nemo-gym 0.7.0's genrm_compare does."""

    def place(self, row: dict[str, Any], _: Waiting) -> int:
        number = row.get("_ng_rollout_index")
        if number is None or not 0 <= number < SIZE:
            raise HttpRefusal(422, "_ng_rollout_index is required for cohort comparison")
        return int(number)


class Counting(Grouped):
    """Counts what arrives, whichever rollout it is: one that is sent again takes another's place (genrm_compare, 0.4.0)."""

    def place(self, _: dict[str, Any], group: Waiting) -> int:
        return len(group)


TWINS: tuple[Twin, ...] = (
    twin("scores groups of numbered rollouts", "verify-in-groups", Numbered),
    twin("counts the members of a group", "verify-in-groups verify-group-again", Counting),
)
