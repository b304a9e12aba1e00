"""The ceilings that every attack is held to: how much memory it may cost this process, and how long it may take."""

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Bytes beyond what the process held before: with that, a run of its own stays below 400 MB.
MEMORY = 250 << 20

#: Seconds that one attack may compute, and that it may take on a machine that others use, too.
COMPUTING, SECONDS = 30.0, 120.0


@pytest.fixture(autouse=True)
def ceilings() -> Iterator[None]:
    """Fail an attack that costs more, whatever became of it."""
    gc.collect()
    gc.freeze()  # what earlier tests have left would be gone through again before each
    before = _memory("VmRSS")
    _forget_peak()
    started, computed = time.monotonic(), time.process_time()
    yield
    assert time.process_time() - computed < COMPUTING
    assert time.monotonic() - started < SECONDS
    assert _memory("VmHWM") - before < MEMORY


def _memory(what: str) -> int:
    """What Linux says of this process's memory, in bytes; 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(what)), 0)


def _forget_peak() -> None:
    peak = Path("/proc/self/clear_refs")
    if peak.exists():
        peak.write_text("5")
