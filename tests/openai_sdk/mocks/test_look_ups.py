"""How notebooks and env repos find and use a gym, as the contract page describes them."""

from typing import Any

import pytest
import requests
import yaml

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import scripted_rows
from gym_mocks.reference import reference_app
from gym_mocks.serving import serve


@pytest.fixture
def config() -> Any:
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.default = scripted_rows(weather.ROWS, weather.SOLUTIONS)
        yield yaml.safe_load(requests.get(f"{gym.head_url}/global_config_dict_yaml", timeout=10).json())


def test_trls_script(config: Any) -> None:
    """Every agent by host and port, whatever it is called; then /run."""
    agents = [
        agent
        for server in config.values()
        if isinstance(server, dict)
        for agent in server.get("responses_api_agents", {}).values()
        if "host" in agent and "port" in agent
    ]
    (agent,) = agents
    url = f"http://{agent['host']}:{agent['port']}/run"
    assert requests.post(url, json=weather.ROWS[0], timeout=10).json()["reward"] == 1.0


def test_unsloths_notebook(config: Any) -> None:
    """The outer name is the inner one; alive; then verify with no seed and no cookie."""
    server = config["weather"]["resources_servers"]["weather"]
    base = f"http://{server['host']}:{server['port']}"
    assert requests.get(base, timeout=10).ok
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "status": "completed"}
    response = {"id": "r", "object": "response", "created_at": 0, "model": "m", "output": [message]}
    reply = requests.post(f"{base}/verify", json=weather.ROWS[0] | {"response": response}, timeout=30)
    assert reply.json()["reward"] == 0.0


def test_verifiers_pr_points_the_policy_at_its_own_proxy(config: Any) -> None:
    (model,) = config["policy_model"]["responses_api_models"].values()
    assert {"host", "port"} <= model.keys()


def test_an_env_repos_own_rollout_script() -> None:
    """One `requests.Session`: seed with `{}`, then a tool."""
    with serve(reference_app()) as url, requests.Session() as session:
        assert session.post(f"{url}/seed_session", json={}, timeout=10).json() == {}
        amount = {"amount": {"item": "pen", "quantity": 2}, "category": "tool", "place": "van"}
        for quantity in (2, 4):
            assert session.post(f"{url}/add_stock", json=amount, timeout=10).json() == {"quantity": quantity}
