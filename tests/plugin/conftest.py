"""The plugin as its users meet it: pytest in a process of its own, against servers on loopback."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from gym_mocks.reference import reference_app
from gym_mocks.serving import serve
from gym_mocks.wire.client import ASGIApp


@pytest.fixture(autouse=True)
def few_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is the plugin: a handful of trajectories for each property will do."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--gym-profile=smoke")


@pytest.fixture(scope="session")
def gym() -> Iterator[str]:
    """The URL of a reference server that all tests share."""
    with serve(reference_app()) as url:
        yield url


@pytest.fixture
def serving() -> Iterator[Callable[[ASGIApp], str]]:
    """Serve any application for the length of one test."""
    with ExitStack() as started:
        yield lambda app: started.enter_context(serve(app))
