"""Towns are looked up with arguments that are read, are not, or matter in few places only."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.twin import Twin, rollout_of, twin
from tests.twins.unrecorded import rows_of

#: The towns near each: their names, how far away they are, and whether they have a port.
TOWNS: dict[str, list[tuple[str, int, bool]]] = {
    "Bergen": [("Os", 4, True), ("Voss", 15, False), ("Odda", 17, True), ("Geilo", 60, False)],
    "Narvik": [("Ankenes", 3, True), ("Bjerkvik", 9, False), ("Harstad", 19, True)],
    "Trondheim": [("Malvik", 5, False), ("Levanger", 18, True)],
}


class Goal(TaskRow):
    """A row with the town that is to be visited."""

    goal: str


@dataclass
class Trip:
    visited: list[str] = field(default_factory=list)


def atlas(unread: str = "") -> ResourcesServer:
    """Towns are found by how far they are, and visited; one argument is `unread`."""

    def find_towns(
        near: str,
        *,
        within_km: int = 50,
        kind: Literal["port", "any"] = "any",
        sort_by: Literal["distance", "name"] = "distance",
        page: int = 1,
        timeout_s: int = 10,
        similarity_threshold: float = 0.5,
    ) -> dict[str, list[str]]:
        """Find towns near another, the nearest first; all of them are on the last page."""
        del page, timeout_s, similarity_threshold
        limit, ports = 50 if unread == "within_km" else within_km, kind == "port" and unread != "kind"
        found = [name for name, km, port in TOWNS.get(near, ()) if km <= limit and (port or not ports)]
        return {"towns": sorted(found) if sort_by == "name" else found}

    def visit(state: Trip, town: str, nights: int) -> dict[str, Any]:
        """Stay in a town for so many nights."""
        state.visited += [town] * (1 if unread == "nights" else nights)
        return {"stayed": len(state.visited), "in": town}

    def verify(state: Trip, row: Goal) -> float:
        return float(row.goal in state.visited)

    return ResourcesServer("atlas", tools=[find_towns, visit], verify=verify, state=Trip)


def trips() -> Dataset:
    """A row for each town, and a rollout that looks for others near it and stays in the two nearest."""
    first = rows_of(atlas()).rows[0]
    rows = [replace(first, data={**first.data, "goal": towns[0][0]}) for towns in TOWNS.values()]
    turns = [
        [
            ("find_towns", {"near": near}, {"towns": [name for name, km, _ in towns if km <= 50]}),
            *[
                ("visit", {"town": towns[at][0], "nights": 1}, {"stayed": 1 + at, "in": towns[at][0]})
                for at in range(2)
            ],
        ]
        for near, towns in TOWNS.items()
    ]
    rollouts = tuple(rollout_of(row, *each, reward=1.0) for row, each in zip(rows, turns, strict=True))
    return Dataset(tuple(rows), rollouts, len(rows))


TWINS: tuple[Twin, ...] = (
    twin("every argument is read", "", atlas, data=trips(), tempts="drift"),
    twin("a radius that is not read", "drift-argument-unread", lambda: atlas("within_km"), data=trips()),
    twin("a kind that is not read", "drift-option-unread", lambda: atlas("kind"), data=trips()),
    twin("nights that are not counted", "drift-option-unread", lambda: atlas("nights"), data=trips()),
)
