"""Forks runs of pytest from a process that has imported it and the suite already. Run by path.

It reads one JSON object a line: `arguments`, `cwd`, `environment`, and `stdout` and `stderr`, which are files. For each
it answers with two lines: the process's id, and then its exit code.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any


def _import_all() -> None:
    """Import what a run imports, as pytest does it: it warns of plugins that are there before it."""
    import pytest  # noqa: PLC0415 - nothing is imported before the streams are ours

    pytest.main(["-q", "-p", "no:cacheprovider", "--collect-only", "--gym-url", "http://127.0.0.1:1"])
    import fastapi  # noqa: F401, PLC0415 - a mock's OpenAPI document needs it

    from gym_conformance.checks.registry import all_checks  # noqa: PLC0415
    from gym_mocks import reference, serving  # noqa: F401, PLC0415

    all_checks.cache_clear()  # a run may bring checks of its own
    gc.collect()
    gc.freeze()


def _become(request: dict[str, Any]) -> None:
    """Take on what a new process would have been given."""
    import xdist.plugin  # noqa: PLC0415
    from hypothesis.configuration import set_hypothesis_home_dir  # noqa: PLC0415

    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [sys.executable, *request["arguments"]]
    # As `python -m` does it
    sys.path[:0] = [str(Path.cwd()), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    xdist.plugin._sys_path[:] = sys.path  # noqa: SLF001 - what its workers get, as it was when it was imported
    set_hypothesis_home_dir(Path.cwd() / ".hypothesis")


def serve() -> int:
    """Fork until nobody asks any more; in each fork, the run's exit code."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    sys.path.pop(0)  # this script's folder
    _import_all()
    sys.stdout.flush()  # or each fork prints it once more
    import pytest  # noqa: PLC0415

    for line in os.fdopen(requests):  # closed with the process
        child = os.fork()
        if not child:
            os.close(replies)
            _become(json.loads(line))
            return int(pytest.main())
        os.write(replies, f"{child}\n".encode())
        os.write(replies, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(serve())
