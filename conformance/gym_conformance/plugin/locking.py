"""The lock file."""

from pathlib import Path

from gym_conformance.documents import read_text, write_whole
from gym_conformance.drift.lock import BadLock, Lock, parse_lock
from gym_conformance.option_readers import BadOption
from gym_conformance.printable import counted, printable


def load_lock(path: Path | None) -> Lock | None:
    """The lock to compare the tools with; None if none was given.

    Raises:
        BadOption: it cannot be read, or is no lock.
    """
    if path is None:
        return None
    try:
        return parse_lock(read_text(path))
    except OSError as error:
        raise BadOption(f"--gym-lock {str(path)!r}: {error.strerror}; give a file that can be read") from None
    except UnicodeDecodeError:
        raise BadOption(f"--gym-lock {str(path)!r}: not UTF-8; rewrite it with --gym-lock-update") from None
    except BadLock as bad:
        raise BadOption(f"--gym-lock {str(path)!r}: {bad}") from None


def write_lock(path: Path, lock: Lock) -> str:
    """Write the lock atomically.

    Returns:
        A line that says what it contains.
    """
    write_whole(path, lock.render())
    rows = f"{counted(len(lock.rows or ()), 'tool')} of the rows"
    server = (
        "none of the server, which does not list its tools"
        if lock.server is None
        else f"{len(lock.server)} of the server"
    )
    return f"{printable(str(path), None)} was written: {rows}, {server}."
