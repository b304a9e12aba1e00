"""What all tests share."""

import pytest


@pytest.fixture(autouse=True)
def few_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test runs pytest, a handful of trajectories for each property will do."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--gym-profile=smoke")
