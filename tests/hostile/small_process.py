"""Measuring a process's memory at its peak: on Linux that begins with what its parent had when it forked."""

import sys

_CALL = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"


def of_a_small_process(*arguments: str) -> list[str]:
    """A command that runs Python with these arguments as a child of a process that holds next to nothing."""
    return [sys.executable, "-c", _CALL, *arguments]
