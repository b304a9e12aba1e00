"""A home whose devices are called by names that nobody can make up, so that only another number tells who else turned one."""

from copy import deepcopy
from typing import Annotated

import pytest
from pydantic import Field

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import said_by_users

_DEVICES: dict[str, dict[str, object]] = {
    "lamp-1": {"kind": "lamp"},
    "heat-1": {"kind": "heater", "celsius": 19},
    "heat-2": {"kind": "heater", "celsius": 21},
}

State = dict[str, dict[str, object]]


def _home(*, shared: bool) -> ResourcesServer:
    first = deepcopy(_DEVICES)

    def list_devices(state: State) -> dict[str, list[dict[str, object]]]:
        """All devices."""
        return {"devices": [{"id": name, "kind": device["kind"]} for name, device in state.items()]}

    def get_state(state: State, device: str) -> dict[str, object]:
        """The state of one."""
        return state.get(device) or {"error": f"unknown device {device}"}

    def set_temperature(state: State, device: str, celsius: Annotated[int, Field(ge=5, le=30)]) -> dict[str, object]:
        """Set a heater."""
        if device not in state or "celsius" not in state[device]:
            return {"error": f"{device} is no heater"}
        state[device]["celsius"] = celsius
        return {"id": device, "celsius": celsius}

    def state() -> State:
        own = deepcopy(_DEVICES)
        return {**own, "heat-1": first["heat-1"]} if shared else own

    return ResourcesServer("home", tools=[list_devices, get_state, set_temperature], verify=lambda: 0.0, state=state)


@pytest.mark.parametrize("shared", [False, True])
def test_a_heater_of_all_sessions_is_told(*, shared: bool) -> None:
    server = _home(shared=shared)
    data = said_by_users(("Make it warmer, please.", "It is too warm in here."), server.declarations)
    assert telling(judge(server, data, checks={"isolation-interleaved"})) == (
        {"isolation-interleaved"} if shared else set()
    )
