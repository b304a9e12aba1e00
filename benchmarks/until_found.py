"""What the time of a search buys: how many trials, and how long, until a property first sees each twin's fault.

    python -m benchmarks.until_found [--runs 20] [--seconds 4] [-k WORD] [--quick]

Each twin of tests/twins/properties.py is judged by each property that it breaks, in a fresh server each time, with a
seed of its own, until the property sees the fault; with --quick no longer than in that profile. Prints a line for each: of how many runs it was found in, and the median, 95th and 99th percentile of
the trials and of the milliseconds until the first difference. Trials are the steadier figure: they do not hang on the
load of the machine.
"""

import argparse
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Verdict
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.trajectories.profiles import QUICK, Profile
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials import attempts
from gym_mocks.serving import serve
from tests.twins.properties import TWINS, PropertyTwin
from tests.twins.twin import dataset

#: More than any search of so short a time reaches.
EXAMPLES = 5000


@dataclass
class Watch:
    """When a search first saw something."""

    began: float = field(default_factory=time.monotonic)
    tried: int = 0
    first: tuple[int, float] | None = None

    def see(self, broken: object) -> None:
        self.tried += 1
        if broken and self.first is None:
            self.first = self.tried, 1000 * (time.monotonic() - self.began)


class Seen(Exception):
    """Ends a search at its first difference, which is not shortened."""


def watched(twin: PropertyTwin, check_id: str, seed: int, profile: Profile) -> Watch:
    """When the fault of a twin was seen, if it was."""
    original = attempts.Attempts._try  # noqa: SLF001 - what is measured
    watch = Watch()

    async def try_one(self: "attempts.Attempts", schedule: Schedule, **how: bool) -> "attempts.Broken | None":
        if not watch.tried:
            watch.began = time.monotonic()
        watch.see(await original(self, schedule, **how))
        if watch.first:
            raise Seen
        return None

    attempts.Attempts._try = try_one  # type: ignore[method-assign]  # noqa: SLF001
    try:
        with serve(twin.make()) as url, suppress(Seen):
            run = Run(url, Options(url=url, timeout=5.0, profile=profile, seed=seed), dataset())
            try:
                (check,) = (check for check in CHECKS if check.id == check_id)
                began = time.monotonic()
                findings = run.judge(check)
                if any(finding.verdict is Verdict.FAIL for finding in findings):
                    watch.first = 0, 1000 * (time.monotonic() - began)
            finally:
                run.close()
    finally:
        attempts.Attempts._try = original  # type: ignore[method-assign]  # noqa: SLF001
    return watch


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("-k", dest="word", default="", help="only twins or checks with this in their name")
    parser.add_argument("--quick", action="store_true", help="no longer than in the profile quick")
    given = parser.parse_args()
    profile = QUICK if given.quick else Profile("bench", EXAMPLES, given.seconds)
    logging.disable()  # what the broken servers say
    print(f"{'found':>7} {'trials: median':>15} {'p95':>5} {'p99':>5} {'ms: median':>11} {'p95':>6} {'p99':>6}")
    for twin in TWINS:
        for check_id in sorted(twin.fails):
            if given.word not in f"{twin.name} {check_id}":
                continue
            ended = [watched(twin, check_id, seed, profile) for seed in range(1, given.runs + 1)]
            firsts = [watch.first for watch in ended if watch.first]
            trials, ms = [float(each[0]) for each in firsts], [each[1] for each in firsts]
            figures = "  never"
            if firsts:
                t, m = ([median(of), percentile(of, 0.95), percentile(of, 0.99)] for of in (trials, ms))
                figures = f"{t[0]:15.0f} {t[1]:5.0f} {t[2]:5.0f} {m[0]:11.0f} {m[1]:6.0f} {m[2]:6.0f}"
            print(f"{len(firsts):3}/{given.runs:3} {figures}  {check_id}: {twin.name}", flush=True)


if __name__ == "__main__":
    main()
