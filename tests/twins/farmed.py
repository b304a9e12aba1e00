"""What was done may be done again, and pays no more than the whole."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.twin import Twin, rollout_of, twin
from tests.twins.unrecorded import rows_of


@dataclass
class Round:
    delivered: list[str] = field(default_factory=list)


class Parcels(TaskRow):
    """A row with what is to be delivered."""

    parcels: list[str]


#: The reward for what was delivered, in its order, and what there was to deliver.
Worth = Callable[[list[str], list[str]], float]


def share(delivered: list[str], parcels: list[str]) -> float:
    return len({*delivered} & {*parcels}) / len(parcels)


def count(delivered: list[str], parcels: list[str]) -> float:
    return len(delivered) / len(parcels)


def each_pays(delivered: list[str], _: list[str]) -> float:
    return float(len(delivered))


def courier(worth: Worth) -> ResourcesServer:
    def deliver(state: Round, parcel: str) -> dict[str, int]:
        """Deliver a parcel."""
        state.delivered.append(parcel)
        return {"delivered": len(state.delivered)}

    def verify(state: Round, row: Parcels) -> float:
        return worth(state.delivered, row.parcels)

    return ResourcesServer("courier", tools=[deliver], verify=verify, state=Round)


def rounds(server: ResourcesServer, worth: Worth, *, parcels: Callable[[int], int]) -> Dataset:
    """Five rows with so many parcels each, and rollouts that deliver all of them."""
    first = rows_of(server).rows[0]
    several = [["red", "blue", "green", "black", "white"][: parcels(at)] for at in range(5)]
    rows = [
        replace(first, data={**first.data, "parcels": some}, source=replace(first.source, line=at))
        for at, some in enumerate(several, 1)
    ]
    turns: list[list[tuple[str, dict[str, Any], dict[str, Any]]]] = [
        [("deliver", {"parcel": one}, {"delivered": at}) for at, one in enumerate(some, 1)] for some in several
    ]
    rollouts = [
        rollout_of(row, *made, reward=worth(some, some)) for row, made, some in zip(rows, turns, several, strict=True)
    ]
    return Dataset(tuple(rows), tuple(rollouts), len(rows))


def _twin(name: str, fails: str, worth: Worth, parcels: Callable[[int], int]) -> Twin:
    data = rounds(courier(worth), worth, parcels=parcels)
    return twin(name, fails, lambda: courier(worth), data=data, tempts="reward")


TWINS: tuple[Twin, ...] = (
    _twin("the number of deliveries pays", "reward-farmed repeat-tool-calls", count, lambda at: at + 1),
    _twin("what is delivered pays", "repeat-tool-calls", share, lambda at: at + 1),
    # where each of them pays, and every rollout makes one, another may well pay, too
    _twin("each of any number pays", "repeat-tool-calls", each_pays, lambda _: 1),
)
