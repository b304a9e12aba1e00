"""A text adventure whose things are named by what it says alone, and a twin of which a thing that is taken is gone for all."""

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.unrecorded import rows_of


def adventure(*, shared: bool) -> ResourcesServer:
    """One room with a rope and an old lamp; all sessions have one room if it is `shared`."""
    room = ["rope", "old lamp"]

    def look(state: list[str]) -> str:
        """Look around."""
        return f"You stand at a gate, which is open.\nHere: {', '.join(state) or 'nothing'}\nExits: north"

    def take(state: list[str], item: str) -> str:
        """Take a thing."""
        if item not in state:
            return "There is no such thing here."
        state.remove(item)
        return f"Taken: {item}."

    return ResourcesServer(
        "adventure", tools=[look, take], verify=lambda: 0.0, state=lambda: room if shared else list(room)
    )


@pytest.mark.parametrize("shared", [False, True])
def test_things_that_a_reply_lists_are_tried(*, shared: bool) -> None:
    server = adventure(shared=shared)
    findings = judge(server, rows_of(server), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if shared else set())
