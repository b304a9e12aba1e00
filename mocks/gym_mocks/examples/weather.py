"""One tool, no state to speak of: reward for having used it (as nemo-gym's example_single_tool_call)."""

from dataclasses import dataclass, field
from typing import Any

from gym_mocks.policy.items import call, say
from gym_mocks.resources import ResourcesServer

CITIES = ("Paris", "Lima", "Oslo", "Accra", "Hanoi")


@dataclass
class Asked:
    """The cities that the policy asked for."""

    cities: list[str] = field(default_factory=list)


def get_weather(state: Asked, city: str) -> dict[str, str]:
    """Say how the weather is in a city."""
    state.cities.append(city)
    return {"city": city, "weather": "The weather in " + city + " is sunny."}


def verify(state: Asked) -> float:
    """One for having asked at all."""
    return float(bool(state.cities))


def server() -> ResourcesServer:
    """A fresh server."""
    return ResourcesServer("weather", tools=[get_weather], verify=verify, state=Asked)


def _row(city: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    prompt = {"role": "user", "content": f"What is the weather like in {city}?"}
    return {"responses_create_params": {"input": [prompt], "tools": tools}}


TOOLS = server().declarations
ROWS = [_row(city, TOOLS) for city in CITIES]
SOLUTIONS: list[list[Any]] = [[call("get_weather", city=city), say(f"It is sunny in {city}.")] for city in CITIES]
