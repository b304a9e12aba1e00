"""Environments are made once, whole or not at all, and never in the env's folder. Nothing here asks the network."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest

from gym_conformance.launch import venv_cache
from gym_conformance.launch.env import Env
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.reasons import reason
from gym_conformance.launch.venv_recipe import left_out, read_recipe

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _wheel(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    with ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", _METADATA.format(name=name))
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", _WHEEL)
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where environments are kept."""
    folder = tmp_path / "cache" / "environments"
    monkeypatch.setattr(venv_cache, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def env(tmp_path: Path) -> Env:
    """An env whose requirements lie on this machine."""
    folder = tmp_path / "env"
    folder.mkdir()
    for name in ("nemo_gym", "numerals"):
        _wheel(tmp_path / "wheels", name)
    (folder / "requirements.txt").write_text("--no-index\n--find-links ../wheels\nnemo-gym\nnumerals\n")
    (folder / ".python-version").write_text(f"{sys.version_info.major}.{sys.version_info.minor}\n")
    return Env("env", folder)


def _made(env: Env, said: list[str] | None = None) -> str:
    return venv_cache.interpreter(env, "", "", (said if said is not None else []).append)


def test_it_is_made_once_and_not_in_the_env(env: Env, kept: Path) -> None:
    before = sorted(env.folder.rglob("*"))
    said: list[str] = []
    python = _made(env, said)
    subprocess.run([python, "-c", "import nemo_gym, numerals"], check=True, timeout=60)
    assert sorted(env.folder.rglob("*")) == before
    assert sorted(each.suffix for each in kept.iterdir()) == ["", ".lock"]
    assert [line.partition("; kept in ")[0] for line in said] == ["env: installing nemo-gym, numerals"]
    assert _made(env, said) == python
    assert len(said) == 1


def test_several_runs_make_it_once(env: Env, kept: Path) -> None:
    said: list[str] = []
    with ThreadPoolExecutor(4) as threads:
        pythons = set(threads.map(lambda _: _made(env, said), range(4)))
    assert len(pythons) == 1
    assert len([line for line in said if "installing" in line]) == 1
    assert sorted(each.suffix for each in kept.iterdir()) == ["", ".lock"]


def test_what_a_killed_run_left_is_replaced(env: Env, kept: Path) -> None:
    python = Path(_made(env))
    folder = python.parents[1]
    folder.with_suffix(".part").mkdir()
    python.unlink()
    python.symlink_to(kept / "python-that-is-gone")
    assert _made(env) == str(python)
    subprocess.run([python, "-c", "import numerals"], check=True, timeout=60)
    assert sorted(each.suffix for each in kept.iterdir()) == ["", ".lock"]


def test_an_interrupted_run_leaves_nothing_half_made(env: Env, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it had started is ended."""
    uv = kept.parent.parent / "uv"
    uv.write_text(f"#!/bin/sh\nmkdir -p {kept}/half\nwhile true; do sleep 1; done\n")
    uv.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(uv))
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def communicate(self, *_: object, **__: object) -> tuple[bytes, bytes]:
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        _made(env)
    assert started[0].returncode is not None
    assert sorted(each.suffix for each in kept.iterdir() if each.name != "half") == [".lock"]


@pytest.mark.skipif(sys.platform != "linux", reason="by a signal of Linux")
def test_what_installs_ends_with_a_killed_run(env: Env, kept: Path) -> None:
    pid = kept.parent.parent / "pid"
    uv = kept.parent.parent / "uv"
    uv.write_text(f"#!/bin/sh\necho $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600\n")
    uv.chmod(0o755)
    code = (
        "import sys, uv; from pathlib import Path; from gym_conformance.launch import venv_cache\n"
        "from gym_conformance.launch.env import Env\n"
        "folder, kept, program = sys.argv[1:]; uv.find_uv_bin = lambda: program\n"
        "venv_cache.cache_folder = lambda: Path(kept)\n"
        "venv_cache.interpreter(Env('env', Path(folder)), '', '', print)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(env.folder), str(kept), str(uv)]) as run:
        until = time.monotonic() + 60
        while not pid.exists() and time.monotonic() < until:
            time.sleep(0.02)
        started = psutil.Process(int(pid.read_text()))
        run.kill()
    assert not psutil.wait_procs([started], timeout=10)[1]


def test_a_package_that_is_not_there_is_said(env: Env, kept: Path) -> None:
    (env.folder / "requirements.txt").write_text("--no-index\nnemo-gym\nno-such-package\n")
    with pytest.raises(NotLaunched) as refused:
        _made(env)
    assert "requirements that can be installed: " in refused.value.needs
    assert "No solution found" in refused.value.needs
    assert any("no-such-package" in line or "nemo-gym" in line for line in refused.value.log)
    assert sorted(each.suffix for each in kept.iterdir()) == [".lock"]


def test_what_lies_on_a_host_that_is_not_there_is_left_out_and_said(
    env: Env, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the env needs it shows once it is launched; its package is not taken from an index."""
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    _wheel(kept.parents[1] / "wheels", "metrics")
    with (env.folder / "requirements.txt").open("a") as requirements:
        requirements.write("metrics @ http://me:secret@127.0.0.1:1/metrics-1.0-py3-none-any.whl\n")
    said: list[str] = []
    python = _made(env, said)
    missed = "metrics @ http://127.0.0.1:1/metrics-1.0-py3-none-any.whl"
    assert left_out(python) == (missed,)
    assert f"env: left out, as its host is not there: {missed}" in said
    subprocess.run([python, "-c", "import nemo_gym, numerals"], check=True, timeout=60)
    assert subprocess.run(
        [python, "-c", "import metrics"], check=False, timeout=60, stderr=subprocess.DEVNULL
    ).returncode
    failure = {"type": "ModuleNotFoundError", "bases": [], "message": "No module named 'metrics'", "name": "metrics"}
    assert reason(failure, env, python) == (
        "the module metrics: it may come with what was left out; left out of its requirements, as their host is not there: "
        + missed
    )
    (env.folder / "requirements.txt").write_text("--no-index\n--find-links ../wheels\nnemo-gym\nnumerals\n")
    assert left_out(_made(env)) == ()
    assert reason(failure, env, _made(env)) == "the module metrics: its requirements.txt names nothing that brings it"


def test_one_who_waits_says_so(env: Env, kept: Path) -> None:
    lock = threading.Event()
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        lock.set()

    kept.mkdir(parents=True)
    key = read_recipe(env, "", "").key
    held = venv_cache._locked(kept / f"{key}.lock", lambda: None)  # noqa: SLF001
    with ThreadPoolExecutor(1) as thread, held:  # the thread is awaited once the lock is free
        waiting = thread.submit(venv_cache.interpreter, env, "", "", say)
        assert lock.wait(30)
        (kept / key / "bin").mkdir(parents=True)
        (kept / key / "bin" / "python").touch()
    assert waiting.result(30) == str(kept / key / "bin" / "python")
    assert said == ["env: another run installs it; waiting"]


@pytest.mark.usefixtures("kept")
def test_a_folder_that_is_required_is_built_elsewhere(env: Env) -> None:
    (env.folder / "shell").mkdir()
    (env.folder / "shell" / "shell.py").write_text("")
    backend = (
        "import os, sys\nsys.path.insert(0, os.getcwd())\n"
        "def build_wheel(folder, settings=None, metadata=None):\n"
        "    from zipfile import ZipFile\n    name = 'shell-1.0-py3-none-any.whl'\n    open('here', 'w').close()\n"
        "    with ZipFile(folder + '/' + name, 'w') as wheel:\n        wheel.writestr('shell.py', '')\n"
        f"        wheel.writestr('shell-1.0.dist-info/METADATA', {_METADATA.format(name='shell')!r})\n"
        f"        wheel.writestr('shell-1.0.dist-info/WHEEL', {_WHEEL!r})\n"
        "        wheel.writestr('shell-1.0.dist-info/RECORD', '')\n    return name\n"
    )
    (env.folder / "shell" / "backend.py").write_text(backend)
    (env.folder / "shell" / "pyproject.toml").write_text(
        '[project]\nname = "shell"\nversion = "1.0"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    with (env.folder / "requirements.txt").open("a") as requirements:
        requirements.write("-e ./shell\n")
    before = sorted(env.folder.rglob("*"))
    python = _made(env)
    subprocess.run([python, "-c", "import shell"], check=True, timeout=60)
    assert sorted(env.folder.rglob("*")) == before
    assert not Path(python).parents[1].joinpath("copies").exists()


def test_what_only_a_build_knows_is_asked_of_one_in_a_copy(
    env: Env, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The env itself is not installed, so that no old copy of it is imported."""
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(kept.parents[1] / "wheels"))
    (env.folder / "requirements.txt").unlink()
    (env.folder / "backend.py").write_text(
        "import os\n"
        "def prepare_metadata_for_build_wheel(folder, settings=None):\n"
        "    open('here', 'w').close()\n    os.mkdir(folder + '/own-1.0.dist-info')\n"
        "    with open(folder + '/own-1.0.dist-info/METADATA', 'w') as file:\n"
        "        file.write('Metadata-Version: 2.1\\nName: own\\nVersion: 1.0\\nRequires-Dist: numerals\\n')\n"
        "    return 'own-1.0.dist-info'\n"
        "def build_wheel(*given, **named):\n    raise RuntimeError\n"
    )
    (env.folder / "pyproject.toml").write_text(
        "[project]\nname = 'own'\nversion = '1.0'\ndynamic = ['dependencies']\n"
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    before = sorted(env.folder.rglob("*"))
    subprocess.run([_made(env), "-c", "import numerals, nemo_gym"], check=True, timeout=60)
    assert sorted(env.folder.rglob("*")) == before


def test_an_interpreter_that_only_pyenv_has_will_do(
    env: Env, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = tmp_path / "pyenv" / "versions" / f"{minor}.0" / "bin"
    own.mkdir(parents=True)
    (own / f"python{minor}").symlink_to(Path(sys.executable).resolve())
    for name, value in {"PATH": "", "UV_PYTHON_DOWNLOADS": "never", "UV_PYTHON_INSTALL_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert Path(venv_cache.interpreter(env, minor, "", lambda _: None)).is_relative_to(kept)


def test_an_interpreter_that_is_nowhere_is_named(env: Env, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    (env.folder / ".python-version").write_text("3.99")
    with pytest.raises(NotLaunched, match=r"^Python 3\.99, which is not here .*; install it, or give --gym-python"):
        _made(env)
    assert not [each for each in kept.iterdir() if each.suffix != ".lock"]


@pytest.mark.usefixtures("kept")
def test_of_a_long_story_the_cause_is_told(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of causes ends with what went wrong, such as a host that is not found."""
    monkeypatch.setattr(venv_cache, "_LONGEST", 60)
    (env.folder / "requirements.txt").write_text("--no-index\nnemo-gym==1.0\n")
    with pytest.raises(NotLaunched) as refused:
        _made(env)
    assert " ... " in refused.value.needs
    assert refused.value.needs.endswith(refused.value.log[-1][-30:])
