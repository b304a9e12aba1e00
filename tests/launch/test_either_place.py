"""The child finds nemo-gym's modules where its releases have them and where its main has moved them, with Ray or without."""

import subprocess
import sys
from pathlib import Path

import pytest

from gym_conformance.launch import launched_server

CHILD = Path(launched_server.__file__).with_name("child.py")

_ASKS = """
import runpy, sys
sys.path.insert(0, {folder!r})
child = runpy.run_path({child!r})
child["keep_ray_out"]()
server = child["framework"]("server_utils", "server_runtime.base_server")
print(server.__name__, server.initialize_ray("given"))
print(child["framework"]("global_config", "config.global_config").__name__)
try:
    child["framework"]("base_resources_server", "server_runtime.base_resources_server")
except ModuleNotFoundError as missing:
    print(missing.name)
"""


def _package(folder: Path, modules: dict[str, str]) -> None:
    for name, source in modules.items():
        file = folder.joinpath("nemo_gym", *name.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)


_RAY = "def initialize_ray():\n    raise AssertionError('Ray is started')\n"


@pytest.mark.parametrize(
    ("server", "config", "missing"),
    [
        ("server_utils", "global_config", "nemo_gym.base_resources_server"),
        ("server_runtime.base_server", "config.global_config", "nemo_gym.base_resources_server"),
    ],
)
def test_modules_are_found_at_either_place(tmp_path: Path, server: str, config: str, missing: str) -> None:
    _package(tmp_path, {server: _RAY, config: ""})
    asks = _ASKS.format(folder=str(tmp_path), child=str(CHILD))
    said = subprocess.run([sys.executable, "-I", "-c", asks], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.splitlines() == [f"nemo_gym.{server} None", f"nemo_gym.{config}", missing]


def test_what_a_module_imports_and_is_not_there_is_named(tmp_path: Path) -> None:
    _package(tmp_path, {"server_utils": "import no_such_module_here\n"})
    asks = _ASKS.format(folder=str(tmp_path), child=str(CHILD))
    said = subprocess.run([sys.executable, "-I", "-c", asks], capture_output=True, text=True, timeout=60, check=False)
    assert "No module named 'no_such_module_here'" in said.stderr
