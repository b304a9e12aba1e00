"""Fixtures for tests of trainers and environments; what they need is imported when a test first asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gym_mocks.gym import MockGym
    from gym_mocks.head import Head
    from gym_mocks.policy import FakePolicy
    from gym_mocks.run_helper import RunHelper


@pytest.fixture
def mock_gym() -> Iterator[MockGym]:
    """A whole gym on loopback with one environment, `weather`; `add_env` and the like add to it."""
    from gym_mocks.examples import weather  # noqa: PLC0415 - a pytest run without mocks pays nothing
    from gym_mocks.gym import MockGym  # noqa: PLC0415

    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        yield gym


@pytest.fixture
def mock_run_helper() -> Iterator[type[RunHelper]]:
    """`gym_mocks.nemo.RunHelper` in nemo-gym's place: a trainer's own start-up code gets a mock gym.

    Its `policy`, `resources` and `options` are those of the gyms that it starts, `gyms[-1]` is the last.
    """
    from gym_mocks.nemo import patched_run_helper  # noqa: PLC0415

    with patched_run_helper() as helper:
        yield helper


@pytest.fixture
def fake_policy() -> Iterator[FakePolicy]:
    """A fake policy, served at its `url`; the OpenAI base URL is `{url}/v1`."""
    from gym_mocks.policy import FakePolicy  # noqa: PLC0415
    from gym_mocks.serving import serve  # noqa: PLC0415

    policy = FakePolicy()
    with serve(policy):
        yield policy


@pytest.fixture
def mock_head() -> Iterator[Head]:
    """A head with an empty `config` and no `instances`, served at its `url`; both may be set at any time."""
    from gym_mocks.head import Head  # noqa: PLC0415
    from gym_mocks.serving import serve  # noqa: PLC0415

    head = Head({})
    with serve(head):
        yield head
