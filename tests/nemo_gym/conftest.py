"""Fixtures that serve nemo-gym's own bundled resources servers, unmodified, to the suite's tests."""

import importlib.util
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("nemo_gym") else ["**/test_*.py"]
if collect_ignore_glob or importlib.util.find_spec("nemo_gym.testing") is None:
    # nemo-gym 0.7.0 was the first to have them
    collect_ignore_glob += ["test_session_helpers.py", "test_environment_servers.py", "test_verifier_fixture.py"]
    collect_ignore_glob += ["mocks/test_real_episodes.py"]

START_SECONDS = 180.0  # nemo-gym's imports take 10 s of processor time; a dead server is noticed at once
LOG_LINES = 30


@dataclass(frozen=True)
class RealServer:
    """A bundled server that accepts requests."""

    name: str
    """Its folder under `resources_servers/`."""
    url: str
    folder: Path
    log: Path
    """What it has printed so far, tracebacks included."""

    @property
    def rows(self) -> Path:
        """The dataset rows bundled with it, JSONL."""
        return self.folder / "data" / "example.jsonl"

    @property
    def rollouts(self) -> Path:
        """The rollouts recorded on it by its authors, JSONL."""
        return self.folder / "data" / "example_rollouts.jsonl"


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])


class Nursery:
    """A process that has nemo-gym imported, and forks a server for each name; each server is a process group."""

    def __init__(self, python: str, log: Path) -> None:
        command = [python, str(Path(__file__).with_name("serve.py"))]
        with log.open("wb") as sink:
            self.process = subprocess.Popen(  # our own script
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink, start_new_session=True
            )
        self.log = log

    @contextmanager
    def serving(self, folder: Path, log: Path) -> Iterator[RealServer]:
        """Serve `folder`'s server, which does not outlive the block.

        Raises:
            RuntimeError: it ended, or was not ready within START_SECONDS; the last log lines are in the message.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(f"{folder.name} {log}\n".encode())
        self.process.stdin.flush()
        deadline = time.monotonic() + START_SECONDS
        child = self._line(deadline)
        if not child.isdigit():
            raise RuntimeError(f"nemo-gym cannot be imported:\n{_tail(self.log)}")
        try:
            said = self._line(deadline)
            if not said.startswith("READY "):
                raise RuntimeError(f"{folder.name} does not start; its log's last lines:\n{_tail(log)}")
            yield RealServer(folder.name, said.split()[1], folder, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(int(child), signal.SIGKILL)

    def close(self) -> None:
        """End the process that forks; the servers ended with their blocks."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def _line(self, deadline: float) -> str:
        """What was said next, up to a line end, the end, or the deadline."""
        assert self.process.stdout is not None
        said = b""
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            byte = os.read(self.process.stdout.fileno(), 1) if ready else b""
            if not byte:
                break
            said += byte
        return said.decode().strip()


@pytest.fixture(scope="session")
def gym_python() -> str:
    """The interpreter that has nemo-gym: `$NEMO_GYM_PYTHON`, or else this one if it does."""
    named = os.environ.get("NEMO_GYM_PYTHON")
    if named:
        return named
    spec = importlib.util.find_spec("nemo_gym")
    if spec is None or spec.origin is None:  # this folder alone gives a namespace package, without origin
        pytest.fail("this interpreter has no nemo-gym, and NEMO_GYM_PYTHON names none that has")
    return sys.executable


@pytest.fixture(scope="session")
def gym_bundle(gym_python: str) -> Path:
    """The folder in which nemo-gym's wheel puts `resources_servers/`."""
    show = "import importlib.util as u; print(u.find_spec('nemo_gym').origin)"
    found = subprocess.run(  # our own one-liner
        [gym_python, "-c", show], check=True, capture_output=True, text=True, timeout=30
    )
    return Path(found.stdout.strip()).parents[1]


@pytest.fixture(scope="session")
def real_server(
    gym_python: str, gym_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], RealServer]]:
    """Serve a bundled server by name; each is started once and killed, with its group, at the end."""
    logs = tmp_path_factory.mktemp("real-servers")
    running: dict[str, RealServer] = {}
    nursery = Nursery(gym_python, logs / "nursery.log")
    with ExitStack() as started:
        started.callback(nursery.close)

        def serve(name: str) -> RealServer:
            if name not in running:
                folder = gym_bundle / "resources_servers" / name
                running[name] = started.enter_context(nursery.serving(folder, logs / f"{name}.log"))
            return running[name]

        yield serve
