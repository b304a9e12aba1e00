"""Resource usage on this machine: of a process, seen from outside, and how busy all others keep it."""

import resource
import time
from dataclasses import dataclass
from typing import Final

import psutil

#: Open files of a process besides its connections: modules, logs, pipes.
_FILES: Final = 256


@dataclass(frozen=True)
class Census:
    """Resources of a process: resident memory in bytes, with its children's; child processes, threads, open files."""

    memory: int
    children: int
    threads: int
    files: int


def allow_open_files(connections: int) -> None:
    """Raise the limit on open files of this process and its children to what `connections` need, if allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(connections + _FILES, hard) if hard != resource.RLIM_INFINITY else connections + _FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def cpu_seconds(pid: int) -> float:
    """Processor seconds of a process and its descendants, ended ones included; 0 if it cannot be seen."""
    try:
        process = psutil.Process(pid)
        spent = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return sum(each.user + each.system + each.children_user + each.children_system for each in spent)


def census(pid: int) -> Census:
    """Count the resources of a process and its descendants.

    Raises:
        ProcessLookupError: it does not exist, or we may not inspect it.
    """
    try:
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        members = [process, *children]
        memory = sum(each.memory_info().rss for each in members)
        return Census(memory, len(children), process.num_threads(), process.num_fds())
    except psutil.Error as error:
        raise ProcessLookupError(str(error)) from None


def slowdown(seconds: float) -> float:
    """How many times as long as alone a computation takes here and now, at least 1.

    Args:
        seconds: of a processor; a tenth is longer than a scheduler's turn.
    """
    began, computed = time.perf_counter(), time.thread_time()
    while (spent := time.thread_time() - computed) < seconds:
        sum(range(1000))
    return max(1.0, (time.perf_counter() - began) / spent)
