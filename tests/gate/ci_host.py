"""What the host of a CI template provides: the lines of the YAML are run in a fresh environment, with its variables."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def fresh_python(folder: Path) -> Path:
    """The bin folder of a fresh environment with pip and nothing else."""
    make = [sys.executable, "-m", "virtualenv", "--no-periodic-update", "-q", str(folder)]
    subprocess.run(make, check=True, timeout=120)
    return folder / "bin"


def load(name: str) -> Any:
    """A template of this repo."""
    return yaml.safe_load(ROOT.joinpath(name).read_text())


def bash(
    python: Path, repo: Path, lines: str, variables: dict[str, str], seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """A script as GitHub and GitLab run it: bash, ending at the first line that fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VIRTUAL_ENV"))}
    # Of all that is installed, little is imported: that is compiled then.
    environment |= {"PATH": f"{python}:{environment['PATH']}", "PIP_NO_COMPILE": "1", **variables}
    # The env's own conftest may need what is not there; the template must not care.
    repo.joinpath("conftest.py").write_text("import nemo_gym_that_is_not_installed\n")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines]
    return subprocess.run(
        command, cwd=repo, env=environment, capture_output=True, text=True, check=False, timeout=seconds
    )


def run_action(
    python: Path, repo: Path, given: dict[str, str], variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What the last of the GitHub Action's steps says."""
    action = load("action.yml")
    install, judge = action["runs"]["steps"]
    inputs = {name: given.get(name, each["default"]) for name, each in action["inputs"].items()}
    assert set(given) <= set(inputs)
    variables = {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_ACTIONS": "true", **(variables or {})}
    for name, value in judge["env"].items():
        variables[name] = inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
    assert "${{" not in install["run"] + judge["run"]  # an input is never part of a script
    installed = bash(python, repo, install["run"], variables)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    return bash(python, repo, judge["run"], variables)
