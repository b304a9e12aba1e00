"""A small server whose rollouts put something on a shelf and then all say the same; a twin that believes it."""

from functools import partial
from pathlib import Path
from typing import Any

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow, last_text
from tests.twins.twin import Twin, rollout_of, twin

_SAID = "The shelf is as you want it."


class ShelfRow(TaskRow):
    """A row with the thing that is wanted."""

    wanted: str


def put_up(state: list[str], thing: str) -> str:
    """Put a thing on the shelf."""
    if thing not in state:
        state.append(thing)
    return f"{len(state)} on the shelf"


def shelf(*, believing: bool = False) -> ResourcesServer:
    """One that pays for the thing on the shelf, and for what rollouts say, where it is `believing`."""

    def verify(state: list[str], row: ShelfRow, response: dict[str, Any]) -> float:
        said = believing and last_text(response["output"]) == _SAID
        return float(said or state == [row.wanted])

    return ResourcesServer("shelf", tools=[put_up], verify=verify, state=list)


def _data() -> Dataset:
    rows, rollouts = [], []
    tools = [tool | {"strict": False} for tool in shelf().declarations]
    for at, thing in enumerate(("a clock", "a vase", "a globe"), 1):
        prompt = [{"role": "user", "content": f"Put {thing} on the shelf."}]
        row = {"responses_create_params": {"input": prompt, "tools": tools}, "wanted": thing}
        rows.append(Row(row, Source(Path("shelf.jsonl"), at)))
        rollouts.append(rollout_of(rows[-1], ("put_up", {"thing": thing}, "1 on the shelf"), said=_SAID, reward=1.0))
    return Dataset(tuple(rows), tuple(rollouts), len(rows))


TWINS: tuple[Twin, ...] = (
    twin("things are put on a shelf", "", shelf, data=_data(), tempts="drift repeat calls isolation"),
    twin("believes what all rollouts say", "reward-claim", partial(shelf, believing=True), data=_data()),
)
