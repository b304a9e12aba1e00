"""The templates for CI, tested by running what they run: the lines of the YAML, in a fresh environment.

Only what the host of a template provides is given: the variables, and a `python` with pip.
"""

from pathlib import Path

import pytest

from tests.gate.ci_host import ROOT, bash, fresh_python, load, run_action

FINDING = "Fix first: verify-scores-rows"
#: What tells it suffices: what these tests are about is what comes before and after the checks.
DATA = "--gym-data data --gym-profile smoke -k verify-scores-rows"


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_python(tmp_path_factory.mktemp("python"))


def test_the_github_action(python: Path, repo: Path, grumpy_url: str) -> None:
    result = run_action(python, repo, {"url": grumpy_url, "args": f"{DATA}\n--gym-report out.sarif\n"})
    assert result.returncode == 1, result.stdout + result.stderr
    assert FINDING in result.stdout
    assert "\n::error title=verify-scores-rows (MUST),file=" in result.stdout
    assert repo.joinpath("out.sarif").exists()


def test_the_gitlab_template(python: Path, repo: Path, grumpy_url: str) -> None:
    job = load("templates/gym-conformance.gitlab-ci.yml")[".gym-conformance"]
    given = {"GYM_CONFORMANCE": f"{ROOT}[install]", "GYM_ENV": "", "GYM_URL": grumpy_url, "GYM_ARGS": DATA}
    assert set(given) == set(job["variables"])
    result = bash(python, repo, "\n".join(job["script"]), given)
    assert result.returncode == 1, result.stdout + result.stderr
    assert FINDING in result.stdout
    for written in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
        assert repo.joinpath(written).stat().st_size > 0


def test_the_pre_commit_hook(python: Path, repo: Path, grumpy_url: str) -> None:
    """pre-commit installs the repo that holds the hook, and runs `entry` with `args`, which a user overrides."""
    (hook,) = load(".pre-commit-hooks.yaml")
    assert hook["language"] == "python"
    assert hook["args"][0] == "--gym-url"
    assert bash(python, repo, f"python -m pip install --quiet {ROOT}", {}).returncode == 0
    result = bash(python, repo, f"{hook['entry']} --gym-url {grumpy_url} {DATA}", {})
    assert result.returncode == 1, result.stdout + result.stderr
    assert FINDING in result.stdout
