"""The agent's endpoints beside `/run`."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import call


@pytest.fixture
def gym() -> Iterator[MockGym]:
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.script("weather", weather.SOLUTIONS[0])
        yield gym


def test_responses_plays_without_seed_and_verify_and_hands_the_session_on(gym: MockGym) -> None:
    """The cookies of the last tool go back to the caller, who may verify with them."""
    params = weather.ROWS[0]["responses_create_params"]
    reply = httpx.post(f"{gym.url('weather_simple_agent')}/v1/responses", json=params)
    output = reply.json()["output"]
    assert [item["type"] for item in output] == ["function_call", "function_call_output", "message"]
    body = weather.ROWS[0] | {"response": reply.json()}
    with httpx.Client(base_url=gym.url("weather"), cookies=reply.cookies) as resources:
        assert resources.post("/verify", json=body).json()["reward"] == 1.0
    assert httpx.post(f"{gym.url('weather')}/verify", json=body).json()["reward"] == 0.0


def test_steps_are_bounded_where_that_is_asked(gym: MockGym) -> None:
    gym.policy.default = lambda _: call("get_weather", city="x")
    gym.policy.routes.release(gym.policy.routes.bind("weather", gym.policy.default))
    url = gym.add_agent("short", resources="weather", max_steps=3)
    output = httpx.post(f"{url}/run", json=weather.ROWS[0]).json()["response"]["output"]
    assert [item["type"] for item in output].count("function_call") == 3


def test_a_row_that_is_none_is_refused(gym: MockGym) -> None:
    bodies: list[Any] = [{}, {"responses_create_params": {"input": 3}}, []]
    for body in bodies:
        assert httpx.post(f"{gym.url('weather_simple_agent')}/run", json=body).status_code == 422
