"""From an env's folder to a verdict, against what its own import takes.

    python benchmarks/launch.py ENV                              # in this interpreter, with nemo-gym installed
    python benchmarks/launch.py ENV --python PYTHON --whole --real
    python benchmarks/launch.py 'resources_servers/*' --sweep -k live

Prints, each a median of three: seconds until Python has imported the env's entry point; until `--gym-env` has it
answering; until `pytest --gym-env` shows its first check. `--whole` adds the whole default verdict, `--real` the time to an
answer with `--gym-launch real`, Ray and all, and `--sweep` does several envs with one worker, and with two; words after
these reach pytest. Peak memory is that of the largest process among all.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import httpx

from gym_conformance.launch.env import Env, find_envs, find_server
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.specification import Launch
from gym_conformance.plugin.mocks import MockPeers

_IMPORT = "import runpy, sys; sys.path[:1] = sys.argv[2:]; runpy.run_path(sys.argv[1], run_name='benchmark')"
_TIMES = 3


def imported(env: Env, python: str) -> float:
    """Seconds that the env's own interpreter needs to import its entry point, and to start and end itself."""
    entry = env.folder / find_server(env.folder).entrypoint
    started = time.perf_counter()
    command = [python, "-c", _IMPORT, str(entry), str(env.folder), str(env.root)]
    subprocess.run(command, cwd=env.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def answers(env: Env, python: str, *, real: bool = False) -> float:
    """Seconds until the launched server has answered `GET /`."""
    with ExitStack() as stack:
        launch = Launch(env, MockPeers(stack).addresses, python, real=real)
        started = time.perf_counter()
        with LaunchedServer(launch) as server:
            httpx.get(server.url, timeout=60).raise_for_status()
            return time.perf_counter() - started


def first_check(env: Env, python: str) -> float:
    """Seconds until pytest has shown a check that asks the server."""
    command = _pytest([str(env.folder)], python, "-v", "-k", "live-root")
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if "live-root PASSED" in line:
                return time.perf_counter() - started
    raise SystemExit(f"{env.name}: live-root did not pass")


def whole(envs: list[str], python: str, *more: str) -> float:
    """Seconds of a whole run."""
    started = time.perf_counter()
    subprocess.run(_pytest(envs, python, "-q", *more), check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _pytest(envs: list[str], python: str, *more: str) -> list[str]:
    given = [f"--gym-env={env}" for env in envs]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *given, "--gym-python", python, *more]


def _say(what: str, seconds: float, against: float = 0.0) -> None:
    print(f"{what:36}{seconds:8.2f} s" + (f"  {seconds / against:5.2f} times the import" if against else ""))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="from an env's folder to a verdict")
    parser.add_argument("env", help="an env's folder, or with --sweep a glob of them")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to launch with")
    parser.add_argument("--whole", action="store_true", help="the whole default verdict, too")
    parser.add_argument("--real", action="store_true", help="--gym-launch real, too")
    parser.add_argument("--sweep", action="store_true", help="several envs, with one worker and with two")
    given, more = parser.parse_known_args()
    if given.sweep:
        one, two = (whole([given.env], given.python, "-n", str(workers), *more) for workers in (1, 2))
        _say(f"sweep of {len(find_envs([given.env], Path.cwd()))}, one worker", one)
        print(f"{'two workers':36}{two:8.2f} s  {two / one:5.2f} times one")
    else:
        [env] = find_envs([given.env], Path.cwd())
        base = _often(lambda: imported(env, given.python))
        _say("import of its entry point", base)
        _say("launched, until it answers", _often(lambda: answers(env, given.python)), base)
        _say("pytest, until the first check", _often(lambda: first_check(env, given.python)), base)
        if given.real:
            _say("as NeMo Gym starts it", answers(env, given.python, real=True), base)
        if given.whole:
            _say("the whole default verdict", whole([str(env.folder)], given.python, *more), base)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # KiB on Linux
    print(f"peak memory of one process {peak:.0f} MiB")


def _often(measure: Callable[[], float]) -> float:
    return median(measure() for _ in range(_TIMES))


if __name__ == "__main__":
    main()
