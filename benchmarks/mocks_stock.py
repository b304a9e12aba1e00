"""nemo-gym's bundled examples in a mock gym, for the benchmarks; needs nemo-gym."""

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from gym_mocks.gym import MockGym
from gym_mocks.nemo import add_openai_model, add_simple_agent, asgi_app

Row = dict[str, Any]
CLASSES = {
    "example_single_tool_call": "SimpleWeatherResourcesServer",
    "example_session_state_mgmt": "StatefulCounterResourcesServer",
}


def bundled(folder: str) -> tuple[Any, list[Row], list[Row]]:
    """A server of the nemo-gym wheel, with its rows and recorded rollouts."""
    from nemo_gym.server_utils import ServerClient  # noqa: PLC0415

    module = importlib.import_module(f"resources_servers.{folder}.app")
    server_class = getattr(module, CLASSES[folder])
    config_class = server_class.model_fields["config"].annotation
    config = config_class(host="127.0.0.1", port=1, name=folder, entrypoint="app.py", domain="agent")
    data = Path(str(module.__file__)).parent / "data"
    rows, rollouts = (
        [json.loads(line) for line in (data / name).read_text().splitlines()]
        for name in ("example.jsonl", "example_rollouts.jsonl")
    )
    return server_class(config=config, server_client=MagicMock(spec=ServerClient)), rows, rollouts


@contextmanager
def stock(folder: str) -> Iterator[tuple[MockGym, list[Row], list[Row]]]:
    """A stock resources server between mock agent and policy."""
    server, rows, rollouts = bundled(folder)
    with MockGym() as gym:
        gym.add_resources(folder, asgi_app(server))
        gym.add_agent("agent", resources=folder)
        yield gym, rows, rollouts


@contextmanager
def stock_with_real_agent(folder: str) -> Iterator[tuple[MockGym, list[Row], list[Row]]]:
    """A stock resources server with nemo-gym's own agent and model server; only the upstream is ours."""
    server, rows, rollouts = bundled(folder)
    with MockGym() as gym:
        gym.add_resources(folder, asgi_app(server))
        add_openai_model(gym, "model", f"{gym.url('policy_model')}/v1")
        add_simple_agent(gym, "agent", resources=folder, model="model")
        gym.policy.replay("policy", rollouts)  # the model name that this server puts in place of any other
        yield gym, rows, rollouts
