"""The files that a run writes at its end, each atomically."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from gym_conformance.baseline_toml import write_baseline
from gym_conformance.options import Options
from gym_conformance.plugin.summary import Tally
from gym_conformance.plugin.target_run import Unreachable
from gym_conformance.printable import printable
from gym_conformance.reports.report_files import write_drifts, write_reports


def write_outputs(
    options: Options, tallies: Mapping[str, Tally], baseline: str, junit: Callable[[Path], None]
) -> list[str]:
    """Write the reports and, unless the suite itself failed, a first baseline. `baseline` is the path of the given one.

    `junit` writes pytest's JUnit report to a path.

    Returns:
        A line for each file that could not be written, with the reason.
    """
    reports = {name: tally.report(baseline) for name, tally in tallies.items()}
    work: dict[str, Callable[[], None]] = {}
    for path in options.reports:
        if path.suffix == ".jsonl":  # written row by row
            continue
        write = partial(junit, path) if path.suffix == ".xml" else partial(write_reports, path, reports)
        work[f"--gym-report {str(path)!r}"] = write
    for path in options.drift:
        work[f"--gym-drift {str(path)!r}"] = partial(write_drifts, path, reports)
    if (new := options.baseline_write) and not any(tally.own_fault for tally in tallies.values()):
        breaking = {name: tally.breaking for name, tally in tallies.items()}
        work[f"--gym-baseline-write {str(new)!r}"] = partial(write_baseline, new, breaking)
    return [said for option, write in work.items() if (said := unwritten(option, write))]


def unwritten(option: str, write: Callable[[], None]) -> str:
    """Write; returns why that failed, '' if it did not."""
    try:
        write()
    except (OSError, Unreachable) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return printable(f"{option}: {why}; it was not written", None)  # a folder's name may be a command of CI's
    return ""
