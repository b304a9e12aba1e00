"""A process on this machine, looked at from outside: how much it keeps."""

from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Census:
    """What a process and its children hold: resident memory in bytes, child processes, open files."""

    memory: int
    children: int
    files: int


def census(pid: int) -> Census:
    """Look at a process and all below it.

    Raises:
        ProcessLookupError: there is no such process, or we may not look at it.
    """
    try:
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        members = [process, *children]
        return Census(sum(each.memory_info().rss for each in members), len(children), process.num_fds())
    except psutil.Error as error:
        raise ProcessLookupError(str(error)) from None
