"""Every pytest run on a user's machine loads the plugin, so it brings nothing heavy until it is asked to judge."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HEAVY = ("fastapi", "httpx", "hypothesis", "pydantic", "starlette", "uvicorn")
_TEST = f"import sys\n\n\ndef test_light():\n    assert not set({_HEAVY!r}) & set(sys.modules)\n"


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, gym_conformance.plugin; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not set(_HEAVY) & set(run.stdout.split())


def test_a_run_with_no_gym_option_imports_nothing_heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks count as much as imports. Other plugins stay out: respx, for one, imports httpx itself."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    tmp_path.joinpath("pytest.ini").write_text("[pytest]\n")
    tmp_path.joinpath("test_light.py").write_text(_TEST)
    command = [sys.executable, "-m", "pytest", "-p", "gym_conformance.plugin"]
    run = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout
