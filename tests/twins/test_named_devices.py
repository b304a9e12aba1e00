"""A home whose devices are called by names that nobody can make up, so that a known one is turned otherwise, or asked for less."""

from collections.abc import Callable
from copy import deepcopy
from typing import Annotated, Literal

import pytest
from pydantic import Field

from gym_conformance.findings import Verdict, worst
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by, judge, telling
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


def _lamps(habit: str) -> ResourcesServer:
    def list_lamps(state: State) -> dict[str, list[dict[str, object]]]:
        """All lamps."""
        return {"lamps": [{"lamp": name} for name in state]}

    def get_lamp(state: State, lamp: str) -> dict[str, object]:
        """How one is."""
        return {"lamp": lamp, **state[lamp]} if lamp in state else {"error": f"there is no lamp {lamp}"}

    def set_lamp(
        state: State,
        lamp: str,
        on: bool,
        brightness: Annotated[int, Field(ge=1, le=100)] | None = None,
        color: Literal["white", "red", "blue"] | None = None,
    ) -> dict[str, object]:
        """Switch a lamp."""
        if lamp not in state:
            return {"error": f"there is no lamp {lamp}"}
        wanted = {
            "always": color is None,
            "where it is lit": on and color is None,
            "or a brightness": color is None and brightness is None,
        }
        if wanted.get(habit):
            return {"error": "color: required"}
        state[lamp] |= {"on": on, "brightness": brightness, "color": color}
        return {"lamp": lamp, **state[lamp]}

    tools: list[Callable[..., object]] = [list_lamps, get_lamp, set_lamp]
    server = ResourcesServer(
        "lamps",
        tools=tools,
        verify=lambda: 0.0,
        state=lambda: {f"lamp-{number}": {"brightness": 40, "color": "white"} for number in (41, 57, 83)},
    )
    del server.handlers["GET", "/openapi.json"]
    return server


@pytest.mark.parametrize(
    ("habit", "verdict"),
    [
        ("never", Verdict.PASS),
        ("always", Verdict.FAIL),
        ("where it is lit", Verdict.PASS),
        ("or a brightness", Verdict.PASS),
    ],
)
def test_a_color_that_each_call_needs_is_told_though_the_lamp_is_looked_up_first(habit: str, verdict: Verdict) -> None:
    server = _lamps(habit)
    declared = deepcopy(server.declarations)
    for parameter in declared[-1]["parameters"]["properties"].values():  # in place of "or null"
        parameter.update(parameter.pop("anyOf", [{}])[0])
        parameter.pop("default", None)
    data = said_by_users(("Red light, please.", "I cannot see a thing."), declared)
    found = found_by("drift-argument-refused", server, data)
    assert worst(found) is verdict, [finding.actual for finding in found]
    assert any("color" in finding.actual for finding in found) is (verdict is Verdict.FAIL)
