"""How often the zoo is judged, and how: once in `quick`, a fault of each server, unless the command line says more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.zoo.expected import ZOO


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for runs by hand."""
    zoo = parser.getgroup("zoo")
    zoo.addoption("--zoo-all", action="store_true", help="all faults, not one of each server")
    zoo.addoption("--zoo-times", type=int, default=1, metavar="N", help="judge each N times")
    zoo.addoption("--zoo-profile", default="quick", metavar="NAME", help="the --gym-profile (quick)")
    zoo.addoption("--zoo-hog", action="store_true", help="keep every processor busy meanwhile")
    zoo.addoption("--zoo-figures", type=Path, metavar="FILE", help="append a line of JSON for each run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each server, fault and repetition."""
    option = metafunc.config.option
    if "planted" in metafunc.fixturenames:
        chosen = [(name, fault) for name, faults in ZOO.items() for fault in (faults if option.zoo_all else faults[:1])]
        metafunc.parametrize(("name", "planted"), chosen, ids=[f"{name}-{fault.name}" for name, fault in chosen])
    elif "name" in metafunc.fixturenames:
        metafunc.parametrize("name", list(ZOO))
    if "judge" in metafunc.fixturenames:
        metafunc.parametrize("judge", range(option.zoo_times), indirect=True, ids=str)


@pytest.fixture(scope="session", autouse=True)
def hog(request: pytest.FixtureRequest, worker_id: str) -> Iterator[None]:
    """What a busy machine is: a process for each processor that never rests. One worker starts them."""
    busy = request.config.option.zoo_hog and worker_id in {"master", "gw0"}
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1) if busy]
    yield
    for each in hogs:
        each.kill()
        each.wait()


@pytest.fixture(scope="session")
def zoo_data(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """One folder of rows and recorded rollouts for all workers."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "zoo"
