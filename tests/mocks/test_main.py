"""`python -m gym_mocks` serves the reference and stops cleanly."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_told_to_stop(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "gym_mocks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        data = process.stdout.readline().split()[-1]
        assert httpx.get(url).json() == {"status": "ok"}
        assert Path(data).is_file()
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
