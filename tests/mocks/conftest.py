"""What several of these tests need: a client of the module's policy, and what a process holds."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gym_mocks.policy import FakePolicy
from gym_mocks.serving import serve


@pytest.fixture
def client(policy: FakePolicy) -> Iterator[httpx.Client]:
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        yield client


def census() -> tuple[set[threading.Thread], int]:
    """The threads of this process, and how many files it has open."""
    return set(threading.enumerate()), len(list(Path("/proc/self/fd").iterdir()))
