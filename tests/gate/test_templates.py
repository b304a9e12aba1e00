"""The templates for CI, tested by running what they run: the lines of the YAML, in a fresh environment.

Only what the host of a template provides is given: the variables, and a `python` with pip.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FINDING = "Fix first: verify-scores-rows"
DATA = "--gym-data data --gym-profile smoke"


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with pip and nothing else."""
    folder = tmp_path_factory.mktemp("python")
    make = [sys.executable, "-m", "virtualenv", "--no-periodic-update", "-q", str(folder)]
    subprocess.run(make, check=True, timeout=120)
    return folder / "bin"


def _load(name: str) -> Any:
    return yaml.safe_load(ROOT.joinpath(name).read_text())


def _bash(python: Path, repo: Path, lines: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A script as GitHub and GitLab run it: bash, ending at the first line that fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VIRTUAL_ENV"))}
    environment |= {"PATH": f"{python}:{environment['PATH']}", **variables}
    # The env's own conftest may need what is not there; the template must not care.
    repo.joinpath("conftest.py").write_text("import nemo_gym_that_is_not_installed\n")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines]
    return subprocess.run(command, cwd=repo, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_the_github_action(python: Path, repo: Path, grumpy_url: str) -> None:
    action = _load("action.yml")
    given = {"url": grumpy_url, "args": f"{DATA} --gym-report out.sarif"}
    assert set(given) == set(action["inputs"])
    install, judge = action["runs"]["steps"]
    variables = {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_ACTIONS": "true"}
    for name, value in judge["env"].items():
        variables[name] = given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
    assert "${{" not in install["run"] + judge["run"]  # an input is never part of a script
    assert _bash(python, repo, install["run"], variables).returncode == 0
    result = _bash(python, repo, judge["run"], variables)
    assert result.returncode == 1, result.stdout + result.stderr
    assert FINDING in result.stdout
    assert "\n::error title=verify-scores-rows (MUST),file=" in result.stdout
    assert repo.joinpath("out.sarif").exists()


def test_the_gitlab_template(python: Path, repo: Path, grumpy_url: str) -> None:
    job = _load("templates/gym-conformance.gitlab-ci.yml")[".gym-conformance"]
    given = {"GYM_CONFORMANCE": str(ROOT), "GYM_URL": grumpy_url, "GYM_ARGS": DATA}
    assert set(given) == set(job["variables"])
    result = _bash(python, repo, "\n".join(job["script"]), given)
    assert result.returncode == 1, result.stdout + result.stderr
    assert FINDING in result.stdout
    for written in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
        assert repo.joinpath(written).stat().st_size > 0


def test_the_pre_commit_hook(python: Path, repo: Path, grumpy_url: str) -> None:
    """pre-commit installs the repo that holds the hook, and runs `entry` with `args`, which a user overrides."""
    (hook,) = _load(".pre-commit-hooks.yaml")
    assert hook["language"] == "python"
    assert hook["args"][0] == "--gym-url"
    assert _bash(python, repo, f"python -m pip install --quiet {ROOT}", {}).returncode == 0
    result = _bash(python, repo, f"{hook['entry']} --gym-url {grumpy_url} {DATA}", {})
    assert result.returncode == 1, result.stdout + result.stderr
    assert FINDING in result.stdout
