"""Virtual environments for envs, made with uv and kept in the user's cache folder, one for each recipe.

Each is built beside its final place and renamed when complete, under a lock, since several runs may want the same one.
uv inherits the lock's descriptor, so that the lock is free only after the uv of a killed run has ended as well.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from gym_conformance.launch.ending_with_us import ending_with_us
from gym_conformance.launch.env import Env
from gym_conformance.launch.launched_server import LOG_LIMIT, LOG_LINES
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.reasons import NETWORK
from gym_conformance.launch.venv_recipe import (
    COPIES,
    LEFT_OUT,
    PINS,
    UNBUILT,
    BadRequirements,
    VenvRecipe,
    copied,
    read_recipe,
)
from gym_conformance.printable import printable
from gym_conformance.redaction import NO_SECRETS, Secrets

#: Seconds for making an environment, and for waiting while others make it: enough for PyTorch over a slow line.
_TIMEOUT: Final = 3600.0

#: Seconds between attempts to get a lock.
_POLL: Final = 0.2

#: Bytes of the largest file that a build may read.
_LARGEST_BUILT: Final = 16 << 20

#: How many requirements to name while they are installed.
_NAMED: Final = 4

#: The most characters of those names.
_LONGEST: Final = 300

#: The Python 3.13 that nemo-gym declares from 0.5.0 on.
_DECLARED: Final = (3, 13, 14)


def interpreter(env: Env, python: str, nemo: str, say: Callable[[str], None]) -> str:
    """The interpreter of an environment with an env's requirements, which is made if it does not exist.

    Args:
        env: the env.
        python: the interpreter to make it with; '' for the one that the env asks for.
        nemo: the release of nemo-gym; '' for the one that the env asks for.
        say: prints a message about what takes time.

    Raises:
        NotLaunched: it cannot be made; the message says why, and the log holds uv's output.
    """
    try:
        recipe = read_recipe(env, python, nemo)
    except BadRequirements as bad:
        raise NotLaunched(f"requirements that can be installed: {bad}") from None
    while True:
        try:
            return _interpreter(recipe, env, say)
        except _Unfetched as unfetched:
            fewer = recipe.without_unfetched(unfetched.said)
            if fewer == recipe:
                raise
            recipe = fewer
            say(NO_SECRETS.show(f"{env.name}: left out, as its host is not there: {recipe.left_out[-1]}", _LONGEST))


class _Unfetched(NotLaunched):
    """A host does not exist, according to uv's output `said`."""

    said = ""


def _interpreter(recipe: VenvRecipe, env: Env, say: Callable[[str], None]) -> str:
    folder = cache_folder() / recipe.key
    if not _is_whole(folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(
                folder.with_suffix(".lock"), lambda: say(f"{env.name}: another run installs it; waiting")
            ) as lock:
                if not _is_whole(folder):
                    say(f"{env.name}: {_summary(recipe)}; kept in {folder}")
                    _make(recipe, folder, env, lock)
        except OSError as error:
            raise NotLaunched(f"an environment in {folder}: {error.strerror or error}") from None
    return str(_python(folder))


def cache_folder() -> Path:
    """Where environments are kept."""
    from platformdirs import user_cache_path  # noqa: PLC0415 - platformdirs is an extra

    return user_cache_path("gym-conformance") / "environments"


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _is_whole(folder: Path) -> bool:
    """Whether it exists, and so does the Python that it was made with."""
    return _python(folder).exists()


def _summary(recipe: VenvRecipe) -> str:
    packages = [PINS.sub("", line) for line in recipe.requirements if not line.startswith("-")]
    named = ", ".join(packages[:_NAMED]) or "nothing"
    more = len(packages) - _NAMED
    return NO_SECRETS.show(f"installing {named}{f' and {more} more' if more > 0 else ''}", _LONGEST)


@contextmanager
def _locked(path: Path, wait: Callable[[], None]) -> Iterator[IO[bytes]]:
    """Hold a lock; `wait` is called once if it is not free."""
    deadline = time.monotonic() + _TIMEOUT
    waited = False
    with path.open("wb") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NotLaunched(f"the lock {path}, which another run has held for {_TIMEOUT:g} s") from None
                if not waited:
                    waited = True
                    wait()
                time.sleep(_POLL)
            else:
                break
        yield lock


def _make(recipe: VenvRecipe, folder: Path, env: Env, lock: IO[bytes]) -> None:
    """Build it beside its place, then move it there."""
    half = folder.with_suffix(".part")
    shutil.rmtree(half, ignore_errors=True)  # left by a killed run
    shutil.rmtree(folder, ignore_errors=True)  # its Python no longer exists
    try:
        uv = _Uv(env, half, lock)
        # relocatable: its scripts still find their interpreter after the renaming
        uv.run(
            f"Python {recipe.python}, which is not here and cannot be had; install it, or give --gym-python",
            *("venv", "--relocatable", "--no-project", "--python", recipe.python, str(half)),
        )
        copies = half / "copies"
        for inside, _ in recipe.folders:  # a build writes into the folder
            shutil.copytree(env.project / inside, copies / copied(inside), ignore=_unbuilt)
        uv.run(
            "requirements that can be installed",
            "pip",
            "install",
            "--python",
            str(_python(half)),
            *_arguments(recipe, half),
            "-r",
            "-",
            *(["-r", str(copies / copied(".") / recipe.built)] if recipe.built else []),
            lines=[line.replace(COPIES, str(copies)) for line in recipe.requirements],
        )
        shutil.rmtree(copies, ignore_errors=True)
        (half / LEFT_OUT).write_text("".join(f"{line}\n" for line in recipe.left_out))
        half.replace(folder)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _unbuilt(folder: str, names: list[str]) -> set[str]:
    """What a build does not read of a folder: other environments, and large data."""

    def is_large(name: str) -> bool:
        path = Path(folder, name)
        return path.is_file() and path.stat().st_size > _LARGEST_BUILT

    return {name for name in names if name in UNBUILT or is_large(name)}


def _arguments(recipe: VenvRecipe, half: Path) -> list[str]:
    arguments = ["--no-sources"] if recipe.folders else []  # we have read the sources, and a copy is in no workspace
    for option, lines in (("--constraint", recipe.constraints), ("--override", recipe.overrides)):
        if lines:
            file = half / f"gym-conformance{option}.txt"
            file.write_text("\n".join(lines))
            arguments += [option, str(file)]
    if recipe.ignores_patch and (3, 13) <= _version(half) < _DECLARED:
        arguments += ["--python-version", ".".join(map(str, _DECLARED))]
    return arguments


def _version(half: Path) -> tuple[int, ...]:
    facts = (line.partition("=") for line in (half / "pyvenv.cfg").read_text().splitlines())
    said = next((value.strip() for key, _, value in facts if key.strip() == "version_info"), "")
    return tuple(int(part) for part in said.split(".") if part.isdigit())


def _pyenv_folders() -> list[str]:
    """Where pyenv keeps interpreters: its shims on PATH only start the selected version."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return sorted(str(each / "bin") for each in root.glob("versions/3.*"))


class _Uv:
    """Runs uv in an env's folder, to which paths in its requirements are relative."""

    def __init__(self, env: Env, half: Path, lock: IO[bytes]) -> None:
        from uv import find_uv_bin  # noqa: PLC0415 - uv is an extra

        self._uv = find_uv_bin()
        self._folder = env.project
        self._said = half.with_suffix(".log")
        self._lock = lock
        self._deadline = time.monotonic() + _TIMEOUT

    def run(self, needs: str, *arguments: str, lines: Sequence[str] = ()) -> None:
        """Run it until it ends.

        Raises:
            NotLaunched: it fails, as `needs` words it, or does not end in time.
        """
        environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        environment["UV_NO_WRAP"] = "1"  # its output is searched
        environment.setdefault("SETUPTOOLS_SCM_PRETEND_VERSION", "0.0.0")  # a copy has no repository to tell it
        environment["PATH"] = os.pathsep.join([*filter(None, [os.environ.get("PATH")]), *_pyenv_folders()])
        try:
            with (
                self._said.open("w+b") as said,
                subprocess.Popen(  # noqa: S603 - the program is uv, with its own options
                    # if we are killed, as xdist kills its workers, uv must not keep the lock
                    [*ending_with_us(signal.SIGKILL), self._uv, "--quiet", "--no-progress", *arguments],
                    cwd=self._folder,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=said,
                    stderr=said,
                    pass_fds=(self._lock.fileno(),),
                    start_new_session=True,
                ) as process,
            ):
                try:
                    process.communicate("\n".join(lines).encode(), max(0.0, self._deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise self._refusal(f"requirements that install within {_TIMEOUT:g} s", said) from None
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                if process.returncode:
                    raise self._refusal(needs, said)
        finally:
            self._said.unlink(missing_ok=True)

    def _refusal(self, needs: str, said: IO[bytes]) -> NotLaunched:
        said.seek(max(0, said.seek(0, os.SEEK_END) - LOG_LIMIT))
        secrets = Secrets.of_named(os.environ.items())
        text = secrets.told(said.read().decode(errors="replace"))
        printed = [line.strip() for line in text.splitlines() if line.strip()]
        text = " ".join(text.split())
        kind = _Unfetched if NETWORK.search(text) else NotLaunched
        refusal = kind(
            f"{needs}: {_why(printed) or 'uv does not say why'}", tuple(map(printable, printed[-LOG_LINES:])), secrets
        )
        if isinstance(refusal, _Unfetched):
            refusal.said = text
        return refusal


def _why(printed: Sequence[str]) -> str:
    """What uv says of a failure, in one line; if long, what was wanted and, from the last line, the root cause."""
    why = " ".join(re.sub(r"^\W+", "", line) for line in printed)
    return why if len(why) <= _LONGEST else f"{why[: _LONGEST // 2]} ... {printed[-1][-_LONGEST // 2 :]}"
