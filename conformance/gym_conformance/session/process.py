"""A process on this machine, looked at from outside: how much it keeps."""

import resource
from dataclasses import dataclass
from typing import Final

import psutil

#: Open files of a process beside its connections: modules, logs, pipes.
_FILES: Final = 256


@dataclass(frozen=True)
class Census:
    """What a process holds: resident memory in bytes, its children's too, child processes, threads, open files."""

    memory: int
    children: int
    threads: int
    files: int


def allow_open_files(connections: int) -> None:
    """Let this process, and what it starts, open as many files as so many connections need, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(connections + _FILES, hard) if hard != resource.RLIM_INFINITY else connections + _FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a process and all below it have taken, those too that have ended; 0 where it is unseen."""
    try:
        process = psutil.Process(pid)
        spent = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return sum(each.user + each.system + each.children_user + each.children_system for each in spent)


def census(pid: int) -> Census:
    """Look at a process and all below it.

    Raises:
        ProcessLookupError: there is no such process, or we may not look at it.
    """
    try:
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        members = [process, *children]
        memory = sum(each.memory_info().rss for each in members)
        return Census(memory, len(children), process.num_threads(), process.num_fds())
    except psutil.Error as error:
        raise ProcessLookupError(str(error)) from None
