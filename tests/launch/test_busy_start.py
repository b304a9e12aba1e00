"""A start on a busy machine: what others took of the processor is not the server's."""

from pathlib import Path

import httpx
import pytest

from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.not_launched import NotLaunched
from tests.launch.drills import application


def test_a_start_is_given_the_time_that_others_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = pytest.raises(NotLaunched, match=r"^to start within 1 s \(--gym-launch-timeout\)")
    with late, application(tmp_path, "import time; time.sleep(600)", deadline=1.0):
        pass
    monkeypatch.setattr(LaunchedServer, "kept_waiting", lambda _: 60.0)
    with application(tmp_path, "import time; time.sleep(2)", deadline=1.0) as server:
        assert httpx.get(server.url, timeout=60).json() == {}


def test_how_long_others_took_is_known(tmp_path: Path) -> None:
    with application(tmp_path, "", deadline=60.0) as server:
        assert 0.0 < server.kept_waiting() <= server.launch.deadline
