"""Text adventures: things that are named by what it says alone, and commands in words; each with a twin."""

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import recorded_in_each
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


def of_commands(*, careless: bool) -> ResourcesServer:
    """One tool that takes a command; where it is `careless`, it reads what is to be taken, though nothing is named."""

    def act(state: list[str], command: str) -> str:
        """Do something, as in `take rope`."""
        verb, *rest = command.lower().split() or [""]
        if verb != "take":
            return "I do not know how to do that."
        if not careless and not rest:
            return "What do you want to take?"
        state.append(rest[0])
        return f"Taken: {rest[0]}."

    return ResourcesServer("commands", tools=[act], verify=lambda: 0.0, state=list)


@pytest.mark.parametrize("careless", [False, True])
def test_a_command_is_given_as_its_first_word_alone(*, careless: bool) -> None:
    server = of_commands(careless=careless)
    data = recorded_in_each(rows_of(server), ("act", {"command": "take rope"}, "Taken: rope."))
    findings = judge(server, data, checks={"calls-invalid", "calls-refused-harmless"})
    assert telling(findings) == ({"calls-invalid"} if careless else set())
