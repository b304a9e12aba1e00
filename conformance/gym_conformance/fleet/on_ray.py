"""`--gym-ray`: judges targets in tasks of an existing Ray cluster, one task per target.

The session that the user started judges nothing itself. It hands out the items, and passes the reports of each worker
to pytest, so that the table, the reports, the exit status and `--gym-resume` work as without a cluster.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from gym_conformance.findings import Verdict
from gym_conformance.fleet.ray_cluster import RayCluster
from gym_conformance.fleet.ray_worker import WorkerReport, judge
from gym_conformance.fleet.resuming import Resumed
from gym_conformance.plugin.check_items import CheckItem
from gym_conformance.printable import printable

#: Seconds between checks for results, so that Ctrl-C is noticed; and seconds that cancelled tasks have to stop their
#: servers.
_POLL: Final = 1.0
_STOP: Final = 20.0

#: Exit statuses of a pytest run that finished: all tests passed, or some failed.
_FINISHED: Final = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


@dataclass(frozen=True)
class Unit:
    """What one task judges: the items of one target."""

    target: str
    items: tuple[CheckItem, ...]


class OnRay:
    """Hands each target to the cluster, and reports the results."""

    def __init__(self, config: pytest.Config, address: str, take_output: Callable[[dict[str, Any]], None]) -> None:
        self._config = config
        self._cluster = RayCluster(address)
        self._take_output = take_output

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Join the cluster before anything is judged."""
        if not self._config.option.collectonly:
            self._cluster.join(self._config)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run the items of launched servers that have no result yet on the cluster, and the others here meanwhile."""
        if self._config.option.collectonly:
            return (yield)
        units = self._take(session)
        with self._tasks(units) as tasks:
            told = yield
            for unit, said in self._ended(tasks):
                self._tell(unit, said)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        return told

    def _take(self, session: pytest.Session) -> list[Unit]:
        units: dict[str, list[CheckItem]] = {}
        rest = []
        for item in session.items:
            if isinstance(item, CheckItem) and not isinstance(item.target, Resumed):
                units.setdefault(item.target.name, []).append(item)
            else:
                rest.append(item)
        session.items = rest
        return [Unit(name, tuple(items)) for name, items in units.items()]

    @contextmanager
    def _tasks(self, units: Sequence[Unit]) -> Iterator[dict[Any, Unit]]:
        """The running tasks; those that have not finished when the block is left are cancelled."""
        invocation = self._config.invocation_params
        task = self._cluster.ray.remote(num_cpus=1, max_retries=1)(judge)
        arguments = [str(argument) for argument in invocation.args]
        tasks = {
            task.options(name=f"gym-conformance {unit.target}").remote(
                arguments, str(invocation.dir), [item.nodeid for item in unit.items]
            ): unit
            for unit in units
        }
        try:
            yield tasks
        finally:
            for each in tasks:
                self._cluster.ray.cancel(each)
            if tasks:
                self._cluster.ray.wait(list(tasks), num_returns=len(tasks), timeout=_STOP)

    def _ended(self, tasks: dict[Any, Unit]) -> Iterator[tuple[Unit, WorkerReport]]:
        while tasks:
            ready, _ = self._cluster.ray.wait(list(tasks), timeout=_POLL)
            for each in ready:
                try:
                    said = self._cluster.ray.get(each)
                except self._cluster.ray.exceptions.RayError as error:
                    said = WorkerReport((), -1, str(error), "the cluster")
                yield tasks.pop(each), said

    def _tell(self, unit: Unit, said: WorkerReport) -> None:
        """Pass a worker's reports to pytest, and an error, once, for items that have none."""
        hook = self._config.hook
        ended = set()
        for line in said.lines:
            if "output" in line:
                self._take_output(line["output"])
                continue
            report = hook.pytest_report_from_serializable(config=self._config, data=_read(line["report"]))
            if report.when == "setup":
                hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            hook.pytest_runtest_logreport(report=report)
            if report.when == "teardown":
                ended.add(report.nodeid)
                hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
        if lost := next((item for item in unit.items if item.nodeid not in ended), None):
            self._tally_lost(lost, said)

    def _tally_lost(self, item: CheckItem, said: WorkerReport) -> None:
        last = next((line for line in reversed(said.printed.splitlines()) if line.strip()), "it printed nothing")
        ended = f"ended with {said.code}" if said.code not in _FINISHED else "left it out"
        reason = printable(item.redacted(f"a worker that ends normally: on {said.node} it {ended}: {last.strip()}"))
        finding = item.check.finding(Verdict.UNTESTABLE, reason)
        report = pytest.TestReport(
            item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", f"needs {reason}", "call"
        )
        report.gym = item.target.travelling([finding], "ray")  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._config.hook.pytest_runtest_logreport(report=report)
        self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def pytest_unconfigure(self) -> None:
        """Leave the cluster."""
        self._cluster.leave()


def _read(data: dict[str, Any]) -> dict[str, Any]:
    """A report as pytest made it: JSON has no tuples, but the reason of a skip must be one."""
    if isinstance(data["longrepr"], list):
        data["longrepr"] = tuple(data["longrepr"])
    return data
