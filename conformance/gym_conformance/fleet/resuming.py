"""What a run of several servers has found so far, on disk: what is finished need not be judged again.

`.gym-conformance/fleet.jsonl`, where pytest was started, has a line for each check, appended as it ends, so that whatever ends the
run leaves all lines before. A server is finished where one run has a line for each check that is wanted of it now, and
neither its own files nor the options have changed since.
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
    """What an earlier run found on one server: findings by check, and, as reports have them, target, effort, latency."""

    findings: Mapping[str, list[Finding]]
    target: Mapping[str, Any]
    requests: int
    seconds: float
    latency: list[list[Any]]


class Resumed:
    """A target as an earlier run found it: nothing is judged again."""

    def __init__(self, target: Target, earlier: Earlier) -> None:
        self.name = target.name
        self.server = target.server
        self.options = target.options
        self._earlier = earlier
        self._latency = earlier.latency

    def judge(self, check: Check, schedule: Schedule | None = None) -> list[Finding]:
        """What was found."""
        del schedule  # a replay is of one server
        return self._earlier.findings[check.id]

    def statistics(self, check: Check) -> str:
        """Nothing: they are not kept."""
        del check
        return ""

    def travelling(self, findings: Sequence[Finding], process: str, *, own_fault: bool = False) -> dict[str, Any]:
        """As it travelled before, and that it is from an earlier run."""
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
        """Nothing was started."""


class Ledger:
    """The file. Many may read it; the process that gathers what is found writes it."""

    def __init__(self, start: Path, options: Options) -> None:
        self.path = start / FOLDER / "fleet.jsonl"
        self._run = time.time_ns()
        self._marks = {env.name: _mark(env, options) for env in options.envs}
        self._lines: list[dict[str, Any]] | None = None

    def begin(self, *, resume: bool) -> None:
        """Make ready to write; unless resumed, what an earlier run found is dropped.

        Raises:
            OSError: nothing can be written there.
        """
        write_whole(own_folder(self.path.parent) / ".gitignore", "*\n")
        if not resume:
            self.path.unlink(missing_ok=True)
        elif self.path.exists():
            append_line(self.path, "")  # the last line may have no end

    def write(self, found: Mapping[str, Any]) -> None:
        """Append what one check found, as it travels with pytest's report; our own failure is not kept."""
        if found["own_fault"]:
            return
        line = json.dumps({"run": self._run, "mark": self._marks[found["name"]], **found})
        append_line(self.path, line)

    def earlier(self, name: str, wanted: Collection[str]) -> Earlier | None:
        """What was found on a server by the last run that has all checks that are wanted; None where none has."""
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
    """The lines that are whole: the run may have ended in the middle of the last one."""
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
    """Whether it is what `Ledger.write` writes, as far as it is read again: in this folder anybody may have changed it."""
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
    """Changes with whatever would change what is found: our version, the options, the env's own files."""
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
