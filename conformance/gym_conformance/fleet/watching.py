"""`--gym-watch`: judge again whenever a file of the env changes, failed checks first, until Ctrl-C.

Each verdict is a separate pytest run with the same arguments; in between, this process only polls the files.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from gym_conformance.documents import read_lines
from gym_conformance.launch.ending_with_us import ending_with_us
from gym_conformance.option_readers import BadOption
from gym_conformance.options import Options
from gym_conformance.plugin.command_line import options_of
from gym_conformance.printable import printable

#: Set for the runs that we start, so that they do not watch in turn even if the ini file's addopts say so.
WITHIN: Final = "GYM_CONFORMANCE_WATCHED"

#: Seconds between polls. Files must then stay the same for as long, since editors save several one after another.
_POLL: Final = 0.3

#: Files that an env consists of. Others are what it writes: logs, databases, caches.
_SOURCES: Final = frozenset(
    {".py", ".yaml", ".yml", ".json", ".jsonl", ".toml", ".txt", ".md", ".cfg", ".ini", ".csv", ".sql", ".sh"}
)

#: Folders without sources: environments, and what tools leave behind. Hidden folders are skipped, too.
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv", "results", "outputs", "logs"})

#: The most files to watch: a folder with more holds something else. And bytes of a file above which only its
#: modification time is compared, not its content.
_MOST_FILES, _LARGE_FILE = 5_000, 4 << 20

#: Seconds that a run has to end after Ctrl-C.
_STOP_TIMEOUT: Final = 20.0

_Stamp = tuple[int, int]
Files = Mapping[Path, _Stamp]


class Watched:
    """The files that an env consists of, with their state when it was last judged."""

    def __init__(self, roots: Collection[Path], written: Collection[Path]) -> None:
        """Record the files as they are now; `written` are files that the runs write themselves."""
        self.roots = tuple(roots)
        self.written = {path.resolve() for path in written}
        self.files = self._now()
        self._contents = {path: _digest(path) for path in self.files}
        self._suspected: frozenset[Path] = frozenset()  # files that differed after the last run
        self._creates = False  # whether files were created during the last run

    def changed_meanwhile(self) -> tuple[Path, ...]:
        """Files that differ since the run began that has just ended, except those that runs write themselves.

        What changed in the run before as well, and what was created if others were then, counts as written by the server.
        """
        known = self.files.keys()
        differing = frozenset(self.differing(self.changed()))
        created = differing - known
        self.written |= (differing & self._suspected) | (created if self._creates else set())
        self._suspected, self._creates = differing, bool(created)
        return tuple(sorted(differing - self.written))

    def changed(self) -> tuple[Path, ...]:
        """Files that were saved, created or removed since the last call, once they no longer change."""
        now = self._now()
        if now == self.files:
            return ()
        while (later := self._after_a_while()) != now:
            now = later
        changed = tuple(path for path in now.keys() | self.files.keys() if now.get(path) != self.files.get(path))
        self.files = now
        return tuple(sorted(changed))

    def differing(self, changed: Collection[Path]) -> tuple[Path, ...]:
        """Those of the files whose contents differ from what they were."""
        found = []
        for path in changed:
            before, now = self._contents.get(path), _digest(path)
            if before != now:
                found.append(path)
            self._contents[path] = now
        return tuple(found)

    def _after_a_while(self) -> Files:
        time.sleep(_POLL)
        return self._now()

    def _now(self) -> Files:
        found: dict[Path, _Stamp] = {}
        for path in (each for root in self.roots for each in _sources(root)):
            if len(found) >= _MOST_FILES:
                break
            try:
                status = path.stat()
            except OSError:
                continue  # it is being replaced
            found[path] = status.st_mtime_ns, status.st_size
        return {path: stamp for path, stamp in found.items() if path not in self.written}


def _sources(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, inside, names in os.walk(root):
        inside[:] = sorted(name for name in inside if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in _SOURCES)


def _digest(path: Path) -> bytes | None:
    """A hash of the contents; None if there is no such file, or no regular one."""
    try:
        if (status := path.stat()).st_size > _LARGE_FILE:
            return str(status.st_mtime_ns).encode()
        return hashlib.sha256(b"".join(read_lines(path))).digest()
    except OSError:
        return None


def watched_files(options: Options) -> Watched:
    """The env's folder, and the rows and the baseline that were given."""
    given = [*options.data, *([options.baseline] if options.baseline else [])]
    roots = [*(env.folder for env in options.envs), *given]
    written = [*options.reports, *options.drift, *filter(None, [options.lock, options.baseline_write])]
    return Watched([root.resolve() for root in roots], written)


def watch(config: pytest.Config) -> int:
    """Judge, and judge again at each change; returns the exit code of the last verdict.

    Raises:
        pytest.UsageError: an option has an unusable value.
    """
    try:
        watched = watched_files(options_of(config))
    except BadOption as bad:
        raise pytest.UsageError(str(bad)) from None
    arguments = [str(one) for one in config.invocation_params.args if str(one) != "--gym-watch"]
    if config.pluginmanager.hasplugin("cacheprovider"):
        arguments.append("--failed-first")
    command = [*ending_with_us(signal.SIGTERM), sys.executable, "-m", "pytest", *arguments]
    code = int(pytest.ExitCode.INTERRUPTED)
    try:
        while True:
            code = _judge(command, config.invocation_params.dir)
            changed = watched.changed_meanwhile()
            if not changed:
                _say(f"Watching {len(watched.files)} files; Ctrl-C ends.")
                changed = _next(watched)
            _say(f"Changed: {', '.join(path.name for path in changed[:5])}")
    except KeyboardInterrupt:
        return code


def _next(watched: Watched) -> tuple[Path, ...]:
    """Wait until a file differs."""
    while True:
        time.sleep(_POLL)
        if saved := watched.changed():
            if differing := watched.differing(saved):
                return differing
            _say(f"{saved[0].name} was saved, and nothing has changed.")


def _judge(command: list[str], folder: Path) -> int:
    with subprocess.Popen(command, cwd=folder, env={**os.environ, WITHIN: "1"}) as run:  # noqa: S603 - this very pytest
        try:
            return run.wait()
        except KeyboardInterrupt:
            # Ctrl-C in a terminal reaches it, too; a signal from elsewhere does not. Further ones are only the run's
            # business: we stay until it has ended
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            run.send_signal(signal.SIGINT)
            try:
                run.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                run.kill()
            finally:
                signal.signal(signal.SIGINT, before)
            raise


def _say(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
    sys.stdout.flush()
