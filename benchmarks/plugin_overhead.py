"""What the installed plugin adds to a pytest run that gives no gym option; the aim is a ratio <= 1.02.

    python benchmarks/plugin_overhead.py [--rounds 30]

Each round runs every variant once, in an order that turns from round to round, so that a slow spell of the
machine falls on all of them. The second run without the plugin is a control: its ratio is the noise. On a
busy machine CPU time (user and system) is the steadier measure of the two. All other third-party plugins are
kept out: some (respx) import httpx themselves and would hide what importing it costs. Those that Hypothesis and anyio
bring along are measured beside ours. What ours does in such a run is too little to see beside all else on a busy machine,
so the last line measures it alone: the CPU time of importing it into a process with pytest, and of adding its options.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from statistics import median

_OURS = "gym_conformance"
_OFF = ("-p", f"no:{_OURS}")
_BASELINE = "without the plugin"
_VARIANTS = {
    _BASELINE: _OFF,
    "without, again (noise)": _OFF,
    "with the plugin": (),
    "and Hypothesis's and anyio's plugins": (),
    "if httpx and hypothesis were eager": (*_OFF, "-p", "eager_client"),
    "if fastapi were eager too": (*_OFF, "-p", "eager_client", "-p", "eager_server"),
}
#: Plugins that come with what we require, and that pytest loads by itself, too.
_BROUGHT = {"and Hypothesis's and anyio's plugins": {"hypothesispytest", "anyio"}}
_OWN = """
import time, pytest
start = time.process_time()
from gym_conformance import plugin
plugin.pytest_addoption(pytest.Parser(_ispytest=True))
print(time.process_time() - start)
"""
_FILES = {
    "pytest.ini": "[pytest]\n",
    "test_trivial.py": "def test_trivial():\n    assert True\n",
    "eager_client.py": "import httpx\nimport hypothesis\n",
    "eager_server.py": "import fastapi\n",
}


@dataclass(frozen=True)
class Spent:
    """Seconds of one pytest process, from its start to its end."""

    wall: float
    cpu: float


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(folder: Path, variant: str) -> Spent:
    options = _VARIANTS[variant]
    others = {entry.name for entry in entry_points(group="pytest11")} - {_OURS} - _BROUGHT.get(variant, set())
    blocked = [word for name in sorted(others) for word in ("-p", f"no:{name}")]
    # Python as it comes: bytecode kept between runs, no options of the caller's own.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    cpu, wall = _children_cpu(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *blocked, *options],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    return Spent(wall=time.perf_counter() - wall, cpu=_children_cpu() - cpu)


def measure(folder: Path, rounds: int) -> dict[str, list[Spent]]:
    """What each variant spent, in the order of the rounds; a first, cold run is left out."""
    for name, text in _FILES.items():
        folder.joinpath(name).write_text(text)
    names = list(_VARIANTS)
    times: dict[str, list[Spent]] = {name: [] for name in names}
    for name in names:
        _run(folder, name)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            times[name].append(_run(folder, name))
    return times


def own_cost(rounds: int) -> float:
    """Median seconds of CPU time for importing the plugin and adding its options, after a cold round."""
    command = [sys.executable, "-c", _OWN]
    runs = [subprocess.run(command, capture_output=True, check=True, timeout=60) for _ in range(rounds + 1)]
    return median(float(run.stdout) for run in runs[1:])


def main() -> None:
    """Print one line for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    if not entry_points(group="pytest11", name=_OURS):
        parser.error("gym-conformance is not installed beside this Python")
    with tempfile.TemporaryDirectory() as folder:
        times = measure(Path(folder), rounds)
    base = times[_BASELINE]
    print(f"Python {sys.version.split()[0]}, {rounds} rounds; a ratio is the median of each round's own")
    print(f"{'':36}{'wall s':>8}{'ratio':>8}{'CPU s':>8}{'ratio':>8}")
    for name, spent in times.items():
        pairs = list(zip(spent, base, strict=True))
        columns = (
            median(mine.wall for mine in spent),
            median(mine.wall / its.wall for mine, its in pairs),
            median(mine.cpu for mine in spent),
            median(mine.cpu / its.cpu for mine, its in pairs),
        )
        print(f"{name:36}" + "".join(f"{column:8.3f}" for column in columns))
    own, whole = own_cost(rounds), median(spent.cpu for spent in base)
    print(f"{'the plugin alone':52}{own:8.4f}{own / whole:8.3f}")


if __name__ == "__main__":
    main()
