"""`--gym-ray`: targets judged by tasks of a Ray cluster that is there already, one task a target.

The session that the user started judges nothing then: it hands the items out, and takes in each worker's reports as
pytest gives them to any plugin, so that table, reports, exit status and `--gym-resume` are as without a cluster.
"""

import socket
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from gym_conformance.findings import Verdict
from gym_conformance.fleet.ray_worker import WorkerReport, judge
from gym_conformance.fleet.resuming import Resumed
from gym_conformance.plugin.check_items import CheckItem
from gym_conformance.printable import printable

#: Seconds within which a cluster's address must take a connection.
_CONNECT: Final = 5.0

#: Seconds between two looks, in which Ctrl-C is heard; and that cancelled tasks have to stop their servers.
_LOOK: Final = 1.0
_STOP: Final = 20.0

#: The exit statuses of a pytest run that finished: all passed, or some failed.
_WELL: Final = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class NoCluster(Exception):
    """There is none to use; the message says why and how to fix it."""


@dataclass(frozen=True)
class Unit:
    """What one task judges: the items of one target."""

    target: str
    items: tuple[CheckItem, ...]


class OnRay:
    """Hands each target to the cluster, and tells what comes back."""

    def __init__(self, config: pytest.Config, address: str, take_output: Callable[[dict[str, Any]], None]) -> None:
        self._config = config
        self._address = address
        self._take_output = take_output
        self._ray: Any = None
        self._ours = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Join the cluster, before anything is judged."""
        if self._config.option.collectonly:
            return
        if getattr(self._config.option, "numprocesses", None):
            raise pytest.UsageError(
                "--gym-ray and -n: the cluster decides how many run at once; leave out -n, or give -n0"
            )
        try:
            self._join()
        except NoCluster as error:
            raise pytest.UsageError(f"--gym-ray {self._address}: {printable(str(error))}") from None

    def _join(self) -> None:
        try:
            import ray  # noqa: PLC0415 - only where it is asked for
        except ImportError:
            raise NoCluster("Ray is not installed here; python -m pip install ray, in the cluster's version") from None
        self._ray = ray
        if ray.is_initialized():
            return
        _ensure_there(self._address)
        try:
            with warnings.catch_warnings(action="ignore"):
                ray.init(address=self._address, configure_logging=False, log_to_driver=False)
        except Exception as error:  # noqa: BLE001 - Ray raises whatever its layers do: all mean that it is not joined
            first = next(iter(str(error).splitlines()), type(error).__name__)
            fix = "Ray's version must be the cluster's, and where that asks for a token, RAY_AUTH_MODE=token be set"
            raise NoCluster(f"the cluster cannot be joined: {first}; {fix}") from None
        self._ours = True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Run here what is no check of a launched server, or is known already; meanwhile the cluster does the rest."""
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
        """The tasks under way; what is not ended with the block is cancelled."""
        invocation = self._config.invocation_params
        task = self._ray.remote(num_cpus=1, max_retries=1)(judge)
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
                self._ray.cancel(each)
            if tasks:
                self._ray.wait(list(tasks), num_returns=len(tasks), timeout=_STOP)

    def _ended(self, tasks: dict[Any, Unit]) -> Iterator[tuple[Unit, WorkerReport]]:
        while tasks:
            ready, _ = self._ray.wait(list(tasks), timeout=_LOOK)
            for each in ready:
                try:
                    said = self._ray.get(each)
                except self._ray.exceptions.RayError as error:
                    said = WorkerReport((), -1, str(error), "the cluster")
                yield tasks.pop(each), said

    def _tell(self, unit: Unit, said: WorkerReport) -> None:
        """Give pytest a worker's reports; of an item that has none, say so, once."""
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
        ended = f"ended with {said.code}" if said.code not in _WELL else "left it out"
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
        """Leave the cluster, unless it was joined before us."""
        if self._ours:
            self._ray.shutdown()


def _read(data: dict[str, Any]) -> dict[str, Any]:
    """A report as pytest made it: JSON knows no tuples, and the reason of a skip must be one."""
    if isinstance(data["longrepr"], list):
        data["longrepr"] = tuple(data["longrepr"])
    return data


def _ensure_there(address: str) -> None:
    """Try an address that names a host, since Ray itself waits for a minute.

    Raises:
        NoCluster: nothing accepts the connection.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, ValueError) as error:
        raise NoCluster(f"nothing answers there ({error}); `ray status` shows the cluster's address") from None
