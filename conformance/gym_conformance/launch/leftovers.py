"""What launches leave behind if a run is killed: processes, found by a mark, and temporary folders, found by name."""

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

#: In the environment of everything that a server starts, so that it can be found after its guard died.
MARK = "GYM_CONFORMANCE_LAUNCH"

#: The prefix of temporary folders' names; our process id follows.
PREFIX = "gym-conformance-"

#: Seconds within which marked processes must be gone.
_STOP_TIMEOUT: Final = 12.0


def end_marked(mark: str) -> None:
    """Kill every process with the mark in its environment: what a server started, and what outlived its guard."""
    deadline = time.monotonic() + _STOP_TIMEOUT
    while (rest := [each for each in psutil.process_iter() if _bears(each, mark)]) and time.monotonic() < deadline:
        for process in rest:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(rest, timeout=0.5)


def _bears(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


def remove_left_folders() -> None:
    """Remove the folders of runs that were killed before they could do so themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        with suppress(OSError):
            ours = folder.lstat().st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()
            if ours and owner.isdecimal() and not psutil.pid_exists(int(owner)):
                shutil.rmtree(folder, ignore_errors=True)
