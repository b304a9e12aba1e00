"""An env of its own requirements, judged as the GitHub Action does it: from its folder, with nothing prepared."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gate.ci_host import ROOT, bash, fresh_python, load, run_action

pytestmark = pytest.mark.nemo_gym


def test_the_github_action_installs_launches_and_judges(tmp_path: Path) -> None:
    repo = tmp_path / "numerals_env"
    shutil.copytree(ROOT / "fixtures" / "numerals_env", repo)
    repo.joinpath("pytest.ini").write_text("[pytest]\n")
    before = {path.relative_to(repo) for path in repo.rglob("*")}
    uv_cache = subprocess.run(["uv", "cache", "dir"], check=True, capture_output=True, text=True)  # noqa: S607
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "UV_CACHE_DIR": uv_cache.stdout.strip()}
    python = fresh_python(tmp_path / "python")
    args = "--gym-profile smoke -p no:cacheprovider --gym-report out.json"
    result = run_action(python, repo, {"env": ".", "args": args}, variables)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "numerals_env: installing nemo-gym==0.4.0, roman>=5; kept in" in result.stdout
    assert "Fit to train on" in result.stdout
    after = {path.relative_to(repo) for path in repo.rglob("*")} - before
    assert {path.parts[0] for path in after} <= {"conftest.py", "out.json", ".gym-conformance", ".hypothesis"}

    job = load("templates/gym-conformance.gitlab-ci.yml")[".gym-conformance"]
    given = {"GYM_CONFORMANCE": f"{ROOT}[install]", "GYM_ENV": ".", "GYM_URL": "", "GYM_ARGS": "-k live-root"}
    result = bash(python, repo, "\n".join(job["script"]), variables | given)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "installing" not in result.stdout
