"""pytest in a process of its own, without the two seconds of computing that its imports take."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

#: Seconds until all is imported, on a busy machine.
_READY = 120.0

#: As it is before a test changes it.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


class WarmPytest:
    """Runs pytest in forks of a process that has imported all, one run at a time."""

    def __init__(self, folder: Path) -> None:
        """Start that process; `folder` is where it lives and logs."""
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("forking.py")],
                cwd=folder,
                env=_ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._log = folder / "log"

    def start(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> "WarmRun":
        """Begin a run that appends what it prints to two files."""
        request = {"arguments": arguments, "cwd": str(cwd), "environment": dict(environment)}
        request |= {"stdout": str(stdout), "stderr": str(stderr)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        pid = self.line(_READY)
        if pid is None:
            raise RuntimeError(f"nothing is forked:\n{self._log.read_text(errors='replace')[-2000:]}")
        return WarmRun(self, int(pid))

    def completed(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """A run and what it printed, as `subprocess.run` has it."""
        with TemporaryDirectory() as folder:
            stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
            run = self.start(arguments, cwd, environment, stdout, stderr)
            try:
                code = run.wait(timeout)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
                raise
            return subprocess.CompletedProcess(arguments, code, stdout.read_text(), stderr.read_text())

    def line(self, seconds: float | None) -> str | None:
        """The next line that it says, None where it says none in time."""
        assert self._process.stdout is not None
        said, end = b"", None if seconds is None else time.monotonic() + seconds
        while not said.endswith(b"\n"):
            left = None if end is None else max(0.0, end - time.monotonic())
            ready, _, _ = select.select([self._process.stdout], [], [], left)
            byte = os.read(self._process.stdout.fileno(), 1) if ready else b""
            if not byte:
                return None
            said += byte
        return said.decode().strip()

    def close(self) -> None:
        """End that process."""
        self._process.kill()
        self._process.communicate()


class WarmRun:
    """One run, as much of `subprocess.Popen` as its users need."""

    stdin = None

    def __init__(self, pytest: WarmPytest, pid: int) -> None:
        self._pytest = pytest
        self.pid = pid
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended after so many seconds.
        """
        if self.returncode is None:
            said = self._pytest.line(timeout)
            if said is None:
                raise subprocess.TimeoutExpired(f"pytest, in process {self.pid}", timeout or 0.0)
            self.returncode = int(said)
        return self.returncode

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)
