"""`--gym-install` from the command line: an application and the one package that it needs, from PyPI."""

import subprocess
import sys
from pathlib import Path

import pytest
import uv

from tests.launch.drills import ANSWERING

pytest_plugins = ["pytester"]

_FEW = ["-k", "live-root"]


@pytest.fixture(autouse=True)
def env(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    needing = f"import roman\n{ANSWERING.replace(chr(10) + '    ', chr(10))}"
    pytester.makepyfile(one=needing, two=needing)
    Path("requirements.txt").write_text("roman>=5\n")
    # uv's own cache stays where it is, so that nothing is downloaded twice
    cache = subprocess.run([uv.find_uv_bin(), "cache", "dir"], check=True, capture_output=True, text=True)
    monkeypatch.setenv("UV_CACHE_DIR", cache.stdout.strip())
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))


def test_what_is_missing_is_installed_once_for_all(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_subprocess("--gym-env=one:app", *_FEW, timeout=60)
    run.stdout.fnmatch_lines(["*needs the module roman: * -m pip install -r *requirements.txt, or --gym-install*"])

    run = pytester.runpytest_subprocess("--gym-env=one:app", "--gym-install", *_FEW, timeout=120)
    run.stdout.fnmatch_lines(["one.app: installing roman>=5, uvicorn; kept in *cache*gym-conformance*environments*"])
    run.assert_outcomes(passed=1)

    several = ["--gym-env=one:app", "--gym-env=two:app", "--gym-install", "-n", "2"]
    run = pytester.runpytest_subprocess(*several, *_FEW, timeout=120)
    run.stdout.fnmatch_lines(["2 of 2 servers*"])
    run.assert_outcomes(passed=2)
    assert "installing" not in run.stdout.str() + run.stderr.str()


def test_workers_of_xdist_install_once_and_say_so(pytester: pytest.Pytester) -> None:
    several = ["--gym-env=one:app", "--gym-env=two:app", "--gym-install", "-n", "2"]
    run = pytester.runpytest_subprocess(*several, *_FEW, timeout=120)
    run.assert_outcomes(passed=2)
    assert (run.stdout.str() + run.stderr.str()).count(".app: installing") == 1


def test_without_uv_it_is_one_line(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("without").mkdir()
    Path("without/sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'uv' else find(name, *rest)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(pytester.path / "without"))
    run = pytester.run(sys.executable, "-m", "pytest", "--gym-env=one:app", "--gym-install", timeout=60)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(
        ["ERROR: --gym-install: uv is not installed here; * install 'gym-conformance[[]install[]]'"]
    )
