"""Findings of a run of several servers, saved to disk so that finished servers need not be judged again.

`.gym-conformance/fleet.jsonl`, in the folder where pytest was started, has a line for each check, appended as the check
ends, so that it is up to date however the run ends. A server is finished if a single run has a line for each check that
is now selected, and neither the server's own files nor the options have changed since.
"""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from gym_conformance import __version__
from gym_conformance.documents import append_line, own_folder, parse_json, read_lines, write_whole
from gym_conformance.findings import Finding
from gym_conformance.grouping import grouped
from gym_conformance.launch.env import Env
from gym_conformance.options import Options
from gym_conformance.plugin.keeping import FOLDER
from gym_conformance.plugin.target import Target
from gym_conformance.session.latencies import Latencies
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.check import Check


@dataclass(frozen=True)
class Earlier:
    """What an earlier run found on one server: findings by check; target, effort and latency as reports have them."""

    findings: Mapping[str, list[Finding]]
    target: Mapping[str, Any]
    requests: int
    seconds: float
    latency: list[list[Any]]


class Resumed:
    """A target with the findings of an earlier run: nothing is judged again."""

    def __init__(self, target: Target, earlier: Earlier) -> None:
        self.name = target.name
        self.server = target.server
        self.options = target.options
        self._earlier = earlier
        self._latency = earlier.latency

    def judge(self, check: Check, schedule: Schedule | None = None) -> list[Finding]:
        """The findings of an earlier run."""
        del schedule  # replays are for one server only
        return self._earlier.findings[check.id]

    def statistics(self, check: Check) -> str:
        """An empty string: statistics are not saved."""
        del check
        return ""

    def travelling(self, findings: Sequence[Finding], process: str, *, own_fault: bool = False) -> dict[str, Any]:
        """The data as they travelled then, marked as coming from an earlier run."""
        earlier = self._earlier
        latency, self._latency = self._latency, []
        return {
            "findings": [finding.as_json() for finding in findings],
            "name": self.name,
            "target": dict(earlier.target),
            "effort": [process, earlier.requests, earlier.seconds],
            "latency": latency,
            "own_fault": own_fault,
            "resumed": True,
        }

    def close(self) -> None:
        """Do nothing: no server was started."""


class Ledger:
    """The file. Many processes may read it; only the one that gathers the findings writes it."""

    def __init__(self, start: Path, options: Options) -> None:
        self.path = start / FOLDER / "fleet.jsonl"
        self._run = time.time_ns()
        self._marks = {env.name: _mark(env, options) for env in options.envs}
        self._lines: list[dict[str, Any]] | None = None

    def begin(self, *, resume: bool) -> None:
        """Prepare for writing; unless `resume`, discard the findings of earlier runs.

        Raises:
            OSError: the file cannot be written.
        """
        write_whole(own_folder(self.path.parent) / ".gitignore", "*\n")
        if not resume:
            self.path.unlink(missing_ok=True)
        elif self.path.exists():
            append_line(self.path, "")  # the last line may lack its newline

    def write(self, found: Mapping[str, Any]) -> None:
        """Append one check's findings, in the form that travels with pytest's report; internal errors are left out."""
        if found["own_fault"]:
            return
        line = json.dumps({"run": self._run, "mark": self._marks[found["name"]], **found})
        append_line(self.path, line)

    def earlier(self, name: str, wanted: Collection[str]) -> Earlier | None:
        """The findings on a server of the last run that has all the checks in `wanted`; None if there is none."""
        if self._lines is None:
            self._lines = list(_lines(self.path))
        its = (line for line in self._lines if (line["name"], line["mark"]) == (name, self._marks[name]))
        runs = grouped(lambda line: line["run"], its)
        whole = (lines for lines in reversed(runs.values()) if set(wanted) <= set(map(_check, lines)))
        lines = next(whole, None)
        return _earlier(lines) if lines and wanted else None


def _earlier(lines: list[dict[str, Any]]) -> Earlier:
    effort = {process: (requests, seconds) for process, requests, seconds in (line["effort"] for line in lines)}
    return Earlier(
        {_check(line): [replace(Finding.from_json(one), accepted="") for one in line["findings"]] for line in lines},
        lines[-1]["target"],
        sum(requests for requests, _ in effort.values()),
        sum(seconds for _, seconds in effort.values()),
        [sample for line in lines for sample in line["latency"]],
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The complete lines: a run may have ended while it wrote the last one."""
    if not path.is_file():
        return
    for text in read_lines(path):
        try:
            line = parse_json(text)
        except ValueError:
            continue
        if _is_ours(line):
            yield line


def _is_ours(line: Any) -> bool:
    """Whether a line has the form that `Ledger.write` writes, as far as we read it: the file may have been edited."""
    try:
        process, requests, seconds = line["effort"]
        for sample in line["latency"]:
            Latencies().merge([sample])
        found = [Finding.from_json(one) for one in line["findings"]]
    except (AttributeError, LookupError, TypeError, ValueError):
        return False
    texts = (line.get("name"), line.get("mark"), process)
    numbers = (line.get("run"), requests, seconds)
    return (
        bool(found)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int | float) for number in numbers)
        and isinstance(line.get("target"), dict)
    )


def _check(line: Mapping[str, Any]) -> str:
    return str(line["findings"][0]["check"])


def _mark(env: Env, options: Options) -> str:
    """A hash of all that could change the findings: our version, the options, and the env's own files."""
    shown = replace(
        options,
        envs=(),
        reports=(),
        drift=(),
        baseline=None,
        baseline_write=None,
        before=None,
        strict=False,
        resume=False,
        ray=None,
    )
    files = sorted(
        {
            *env.folder.glob("*.py"),
            *env.folder.glob("requirements.txt"),
            *env.folder.glob("pyproject.toml"),
            *env.folder.glob("configs/*.yaml"),
            *([env.config] if env.config else []),
            *env.data,
        }
    )
    stats = [(str(file), stat.st_mtime_ns, stat.st_size) for file in files if (stat := file.stat())]
    facts = (__version__, repr(shown), sorted(options.headers.items()), repr(env), stats)
    return sha256(repr(facts).encode("utf-8", "surrogateescape")).hexdigest()
