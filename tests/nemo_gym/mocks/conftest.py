"""The sample environment on nemo-gym's own class, and the same one made with our library."""

import importlib.util
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest

from gym_mocks.serving import serve
from tests.nemo_gym.mocks.notes_twin import NOTES_ENV, notes_twin


async def divide(body: dict[str, int]) -> float:
    return 1 / body["number"]


def notes_env() -> Any:
    """The fixture's app as nemo-gym's `run_webserver` builds it, without Ray."""
    from nemo_gym.server_utils import ServerClient  # noqa: PLC0415 - takes a while; only where a test asks

    spec = importlib.util.spec_from_file_location("notes_env_app", NOTES_ENV / "app.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = module.NotesResourcesServerConfig(
        host="127.0.0.1", port=1, name="notes", entrypoint="app.py", domain="agent"
    )
    server = module.NotesResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    app = server.setup_webserver()
    app.post("/divide")(divide)
    for step in ("setup_liveness", "setup_exception_middleware", "setup_cancellation_middleware"):
        if hasattr(server, step):  # 0.2.1 knows no liveness, and 0.7.0 was the first to cancel
            getattr(server, step)(app)
    return app


@pytest.fixture(scope="session")
def real() -> Iterator[httpx.Client]:
    with serve(notes_env()) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def ours() -> Iterator[httpx.Client]:
    with serve(notes_twin()) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client
