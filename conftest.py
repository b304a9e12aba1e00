"""Runs of pytest inside the tests, each in a process of its own that need not import everything anew; what takes long; and clients."""

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx._transports import default

from tests.nested.warm_pytest import WarmPytest

# Most tests make a client, which reads all the authorities of the web anew: 30 ms of work for a server without TLS.
vars(default)["create_ssl_context"] = cache(httpx.create_ssl_context)

#: Markers of what takes long.
LONG = ("corpus", "hostile", "load", "ray", "twins")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, whatever else `-m` and `-k` say, unless `-m` names its marker."""
    left_out = [marker for marker in LONG if marker not in config.option.markexpr]
    if long := [item for item in items if any(map(item.get_closest_marker, left_out))]:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_collection_finish() -> None:
    """Spare the collector the tests and all that they import: some tests collect, which took most of their time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def warm_pytest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPytest]:
    """What such runs are forked from."""
    warm = WarmPytest(tmp_path_factory.mktemp("warm-pytest"))
    yield warm
    warm.close()


@pytest.fixture(autouse=True)
def forked_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pytester.runpytest_subprocess` forks its runs."""
    if "pytester" not in request.fixturenames:
        return
    pytester: pytest.Pytester = request.getfixturevalue("pytester")
    popen = pytester.popen

    def forked(command: tuple[str, ...], **streams: Any) -> Any:
        if command[:2] != (sys.executable, "-mpytest"):
            return popen(command, **streams)
        warm: WarmPytest = request.getfixturevalue("warm_pytest")
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path.cwd()), environment.get("PYTHONPATH")]))
        return warm.start(
            command[2:], Path.cwd(), environment, *(Path(streams[name].name) for name in ("stdout", "stderr"))
        )

    monkeypatch.setattr(pytester, "popen", forked)
