"""A launched server: its process, and the end of its output."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from shutil import which
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import psutil

from gym_conformance.documents import parse_json
from gym_conformance.launch.env import BadConfig, written
from gym_conformance.launch.leftovers import MARK, PREFIX, end_marked, remove_left_folders
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.reasons import (
    failed_start_up,
    missing_credentials,
    named_credentials,
    raised,
    reason,
    unfinished,
)
from gym_conformance.launch.specification import MADE_UP, Launch
from gym_conformance.printable import printable
from gym_conformance.redaction import Secrets, named_values

#: Bytes of a server's output to keep, and lines of it to show.
LOG_LIMIT, LOG_LINES = 1 << 20, 12

#: Lines of output to search for what uvicorn says about the start.
_SEARCHED = 400

#: Seconds within which guard and server are gone: the guard's own limit, and a margin.
_STOP_TIMEOUT = 12.0

#: Characters to show of NeMo Gym's complaints about data sets.
_REFUSED = 400

#: How often to start it, each time with more made-up values.
_STARTS = 4

#: Seconds between checks whether a server listens.
_POLL = 0.2

#: The largest announcement in bytes, and how much to show of anything else written to that descriptor.
_ANNOUNCEMENT, _SHOWN = 4 << 20, 80

_HERE = Path(__file__).parent


@dataclass
class LaunchedServer:
    """A server about to accept at `url`. `close`, or the end of this process, ends it and all that it started.

    Attributes:
        url: its base URL; the socket is bound before the server starts, so that no other process can take the port.
        pid: the server's process id.
        config: its global config with unresolved interpolations, which the head serves.
        seconds: how long it took to start.
        not_accepted: NeMo Gym's complaints about data sets in its YAML.
        known: the addresses of itself and of the servers that it may call, by name.
        started_beside: the servers that were started for it.
    """

    launch: Launch
    url: str = ""
    pid: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    not_accepted: tuple[str, ...] = ()
    known: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    started_beside: list["LaunchedServer"] = field(default_factory=list)
    _guard: "subprocess.Popen[bytes] | None" = None
    _folder: "tempfile.TemporaryDirectory[str] | None" = None
    _written: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    _mark: str = field(default_factory=lambda: token_hex(16), repr=False)

    def start(self) -> Self:
        """Start it, and wait until it is about to accept; uses made-up credentials if nothing else is missing.

        Raises:
            NotLaunched: it is not ready within the deadline.
        """
        wanted: NotLaunched | None = None
        for _ in range(_STARTS):
            try:
                return self._start(0)
            except NotLaunched as refused:
                wanted = wanted or (refused if refused.variables else None)  # a service may refuse made-up values
                tried, self.launch = self.launch, self.launch.with_made_up(refused.credentials, refused.variables)
                if self.launch == tried:
                    raise (wanted or refused) from None
        return self._start(0)

    def restart(self) -> None:
        """Stop it, and start it again at the same address.

        Raises:
            NotLaunched: it is not ready within the deadline, or the address has been taken meanwhile.
        """
        port = urlsplit(self.url).port or 0
        self.close()
        self._start(port)

    def another(self) -> "LaunchedServer":
        """Another one launched in the same way at its own address; not started yet."""
        return LaunchedServer(self.launch)

    def _start(self, port: int) -> Self:
        began = time.monotonic()
        self._written = tuple(written(self.launch.env))
        try:
            with self._listener(port) as listener:
                port = listener.getsockname()[1]
                self.url = f"http://127.0.0.1:{port}"
                self._spawn(listener, replace(self.launch, beside=self._accompanied(port)).specification(port))
            deadline = time.monotonic() + self.launch.deadline
            self._await(deadline)
            if self.launch.real:
                self._await_listening(port, deadline)
        except BaseException as error:
            self.close()
            if isinstance(error, BadConfig):
                raise NotLaunched(str(error)) from None
            raise
        self.seconds = time.monotonic() - began
        return self

    def _accompanied(self, port: int) -> dict[str, tuple[str, int]]:
        """The addresses of the servers that it calls, directly or not, which are started first; and its own, at `port`.

        Raises:
            NotLaunched: one of them does not start.
            BadConfig: the env has no usable YAML.
        """
        launch = self.launch
        known = dict(launch.beside)
        if launch.env.application:
            return known
        known[launch.env.configured.name] = ("127.0.0.1", port)
        for env in replace(launch, beside=known).asked:
            if env.server in known:
                continue  # another server that it calls has started it
            python = launch.pythons.get(env.server, launch.interpreter)
            own = replace(launch, env=env, python=python, beside=known, workers=1, real=False)
            one = LaunchedServer(replace(own, network=launch.network or launch.real))
            self.started_beside.append(one)
            try:
                one.start()
            except NotLaunched as refused:
                raise NotLaunched(
                    f"the server {env.server}, which it asks; that needs {refused.needs}", refused.log
                ) from None
            known |= one.known
        self.known = known
        return known

    def _listener(self, port: int) -> socket.socket:
        try:
            return _bound(port, listening=not self.launch.real)
        except OSError as error:
            raise NotLaunched(f"its port {port} again: {error.strerror}") from None

    def refused(self, why: str) -> NotLaunched:
        """The error to raise if it announced itself, but does not answer."""
        ended = self._ended()
        if not ended and (said := unfinished(self.log(_SEARCHED))):
            limit = f"{self.launch.deadline:g} s, or longer with --gym-launch-timeout"
            return self._refusal(f"a start-up that ends within {limit}: it is still at {said!r}")
        return self._refusal(f"to answer: {ended or why}")

    @property
    def log_folder(self) -> Path | None:
        """The folder of its log, until it is closed."""
        return Path(self._folder.name) if self._folder else None

    def log(self, lines: int = LOG_LINES, since: tuple[int, int] = (0, 0)) -> tuple[str, ...]:
        """The last lines of its output, safe to show; none before `since`, a file's inode and an offset in it."""
        said = b""
        for path in self._logs():
            with suppress(OSError), path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino == since[0]:
                    said = b""
                    file.seek(since[1])
                said += file.read()
        printed = [line.strip() for line in said.decode(errors="replace").splitlines()]
        last = "\n".join([one for one in printed if one.strip("^~")][-lines:])
        return tuple(map(printable, self.secrets.told(last).splitlines()))

    def listen(self, lines: int = LOG_LINES) -> Callable[[], tuple[str, ...]]:
        """Start to listen: the function returned gives the last lines of output since now."""
        since = (0, 0)
        with suppress(OSError, IndexError):
            now = self._logs()[-1].stat()
            since = (now.st_ino, now.st_size)
        return lambda: self.log(lines, since)

    def _logs(self) -> list[Path]:
        """The files with the end of its output, oldest first."""
        return [self.log_folder / name for name in ("log.before", "log")] if self.log_folder else []

    @property
    def made_up(self) -> tuple[str, ...]:
        """The config keys and environment variables whose values were made up, since none were given."""
        keys = (key for key, value in named_values(self.config) if value == MADE_UP)
        variables = (f"${name}" for name in self.launch.wanted_variables if name not in os.environ)
        return tuple(dict.fromkeys((*keys, *variables)))

    @property
    def secrets(self) -> Secrets:
        """The secrets in its environment, settings, config and files, by their names."""
        settings = [(key, value) for key, _, value in (setting.partition("=") for setting in self.launch.settings)]
        return Secrets.of_named([*os.environ.items(), *settings, *named_values(self.config), *self._written])

    def close(self) -> None:
        """Stop it, all that it started, and the servers started for it; closing twice does nothing."""
        while self.started_beside:
            self.started_beside.pop().close()
        if (guard := self._guard) is not None:
            assert guard.stdin is not None  # noqa: S101
            assert guard.stdout is not None  # noqa: S101
            with suppress(BrokenPipeError):
                guard.stdin.close()
            try:
                guard.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(guard.pid, signal.SIGKILL)
                guard.wait()
            guard.stdout.close()
            self._guard = None
            end_marked(self._mark)  # in case the server killed the guard
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spawn(self, listener: socket.socket, specification: Mapping[str, Any]) -> None:
        remove_left_folders()
        self._folder = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True)
        number = str(listener.fileno())
        log = [str(Path(self._folder.name, "log")), str(LOG_LIMIT), number]
        server = [self.launch.interpreter, str(_HERE / "child.py"), number]
        try:
            self._guard = subprocess.Popen(  # noqa: S603 - runs our own scripts
                [sys.executable, str(_HERE / "guard.py"), *log, "--", *server],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
                env=_environment(self.launch.interpreter) | {MARK: self._mark},
            )
            assert self._guard.stdin is not None  # noqa: S101
            self._guard.stdin.write(json.dumps(specification, default=str).encode() + b"\n")
            self._guard.stdin.flush()
        except OSError as error:
            raise NotLaunched(f"a working interpreter: {self.launch.interpreter}: {error.strerror}") from None

    def _await_listening(self, port: int, deadline: float) -> None:
        """Wait until a server that binds its port itself has done so."""
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                return
            if said := self._line(time.monotonic() + _POLL):
                how = self._reason(failure) if (failure := raised(self.log())) else ""
                raise self._refusal(how or f"to start: it ended {_status(said['ended'])}")
        raise self._late()

    def _refusal(self, needs: str, credentials: tuple[str, ...] = (), variables: tuple[str, ...] = ()) -> NotLaunched:
        return NotLaunched(needs, self.log(), self.secrets, credentials, variables)

    def _reason(self, failure: Mapping[str, Any]) -> str:
        return reason(self.secrets.redact_json(failure), self.launch.env, self.launch.interpreter)

    def _late(self) -> NotLaunched:
        return self._refusal(f"to start within {self.launch.deadline:g} s (--gym-launch-timeout)")

    def _await(self, deadline: float) -> None:
        said = self._line(deadline) or self._line(time.monotonic() + self.kept_waiting())
        if "failed" in said:
            self._ended()  # it may print until it ends
            failed = said["failed"]
            if failed["type"] == "SystemExit":
                failed = failed_start_up(self.log(_SEARCHED)) or failed
            variables = tuple(name for name in named_credentials(failed) if name not in os.environ)
            raise self._refusal(self._reason(failed), missing_credentials(failed), variables)
        if "ended" in said:
            raise self._refusal(f"to start: it ended {_status(said['ended'])}")
        if "pid" not in said:
            raise self._late()
        self.pid, self.config = said["pid"], said["config"]
        self.not_accepted = tuple(self.secrets.show(str(each), _REFUSED) for each in said.get("refused", ()))

    def kept_waiting(self) -> float:
        """Seconds that its processes waited for a processor on a busy machine; 0 if the system does not tell."""
        assert self._guard is not None  # noqa: S101
        with suppress(psutil.Error, OSError, ValueError, IndexError):
            delays = [
                int(Path(f"/proc/{child.pid}/schedstat").read_text().split()[1])
                for child in psutil.Process(self._guard.pid).children(recursive=True)
            ]
            return min(max(delays) / 1e9, self.launch.deadline)
        return 0.0

    def _ended(self) -> str:
        """How it ended; '' while it runs."""
        said = self._line(time.monotonic() + 1.0)
        return f"it ended {_status(said['ended'])}" if "ended" in said else ""

    def _line(self, deadline: float) -> dict[str, Any]:
        """The next line of the announcement; empty once the deadline has passed."""
        assert self._guard is not None  # noqa: S101
        assert self._guard.stdout is not None  # noqa: S101
        said = b""
        while not said.endswith(b"\n") and len(said) < _ANNOUNCEMENT:
            ready, _, _ = select.select([self._guard.stdout], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._guard.stdout.fileno(), 1 if b"\n" in said else 65536) if ready else b""
            if not data:
                return {"ended": self._guard.poll()} if ready else {}
            said += data
        return self._announced(said)

    def _announced(self, line: bytes) -> dict[str, Any]:
        """The content of a line if it is ours: the server's own code can write there, too."""
        assert self._guard is not None  # noqa: S101
        try:
            said = parse_json(line.splitlines()[0])
        except (ValueError, IndexError):
            said = None
        match said:
            case {"pid": int(pid), "config": dict()} if _is_below(pid, self._guard.pid):
                return dict(said)
            case {"failed": {"type": str(), "bases": list(), "message": str(), **more}}:
                return {"failed": {"name": "", "file": "", **more, **said["failed"]}}
            case {"ended": int() | None}:
                return dict(said)
        shown = line[:_SHOWN].decode(errors="replace").strip()
        message = f"to announce itself; instead it wrote {shown!r} to a descriptor that is not its own"
        return {"failed": {"type": "LaunchError", "bases": [], "message": message, "name": "", "file": ""}}


def _bound(port: int, *, listening: bool) -> socket.socket:
    """A loopback socket, on any port for 0. It names its protocol: only then does asyncio disable Nagle's algorithm.

    If it is not listening, it only reserves the port, and shares it with the socket that later binds that number.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # a port that we choose is unused; after a restart it is still ours, but has lingering connections
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(bool(port) or not listening))
        listener.bind(("127.0.0.1", port))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening:
            listener.listen(2048)
    except BaseException:
        listener.close()
        raise
    return listener


def _environment(python: str) -> dict[str, str]:
    """Our environment, unbuffered, and without what would tell the server that pytest, a gym or coverage runs it.

    The programs of its interpreter's environment come first, as if `gym env start` had activated it.
    """
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "NEMO_GYM_CONFIG", "COV_CORE"))
    }
    folder = Path(python).parent
    own["PATH"] = os.pathsep.join(filter(None, (str(folder), own.get("PATH"), _uv_folder(own.get("PATH")))))
    if (folder.parent / "pyvenv.cfg").is_file():
        own["VIRTUAL_ENV"] = str(folder.parent)
    return own | {"PYTHONUNBUFFERED": "1"}


def _uv_folder(path: str | None) -> str:
    """The folder of our uv, for envs that make environments, as `gym env start` does; '' if uv is on PATH anyway."""
    if which("uv", path=path):
        return ""
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - uv is an extra

        return str(Path(find_uv_bin()).parent)
    except (ImportError, FileNotFoundError):
        return ""


def _is_below(pid: int, ancestor: int) -> bool:
    """Whether a process descends from another."""
    try:
        return any(parent.pid == ancestor for parent in psutil.Process(pid).parents())
    except (psutil.Error, ValueError, OverflowError):
        return False


def _status(status: int | None) -> str:
    if status is None or status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
