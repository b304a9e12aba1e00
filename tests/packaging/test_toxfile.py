import os
import runpy
from pathlib import Path

import pytest

_TOXFILE = Path(__file__).parents[2] / "toxfile.py"


def _prepared(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> dict[str, str]:
    monkeypatch.setattr(os, "environ", environ)
    runpy.run_path(str(_TOXFILE))
    return environ


def _pyenv(root: Path, *versions: str) -> Path:
    for version in versions:
        (root / "versions" / version / "bin").mkdir(parents=True)
    return root


def test_interpreters_of_pyenv_come_last_on_path_newest_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = _pyenv(tmp_path, "3.9.18", "3.12.1", "3.12.10", "pypy3.10-7.3.15", "2.7.18", "3.13.0t")
    environ = _prepared(monkeypatch, {"PATH": "/shims:/usr/bin", "PYENV_ROOT": str(root)})
    found = [str(root / "versions" / version / "bin") for version in ("3.12.10", "3.12.1", "3.9.18")]
    assert environ["PATH"].split(os.pathsep) == ["/shims", "/usr/bin", *found]


def test_without_pyenv_path_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ = _prepared(monkeypatch, {"PATH": "/usr/bin", "PYENV_ROOT": str(tmp_path / "absent")})
    assert environ["PATH"] == "/usr/bin"


def test_uv_downloads_no_interpreter_unless_the_user_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ = _prepared(monkeypatch, {"PYENV_ROOT": str(tmp_path)})
    assert environ["UV_PYTHON_DOWNLOADS"] == "manual"
    environ = _prepared(monkeypatch, {"PYENV_ROOT": str(tmp_path), "UV_PYTHON_DOWNLOADS": "automatic"})
    assert environ["UV_PYTHON_DOWNLOADS"] == "automatic"
