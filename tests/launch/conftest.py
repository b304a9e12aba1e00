"""Envs that pytest launches."""

import pytest


@pytest.fixture(autouse=True)
def few_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is the plugin: a handful of trajectories for each property will do."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--gym-profile=smoke")
