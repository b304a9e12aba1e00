"""Envs that pytest launches."""

import pytest


@pytest.fixture(autouse=True)
def few_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is the plugin: a handful of trajectories for each property will do.

    The pytest that a test runs is no worker, whatever runs the test.
    """
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--gym-profile=smoke")
