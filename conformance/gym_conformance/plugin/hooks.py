"""The suite inside pytest; loaded only if an option says that a gym is to be judged."""

import gc
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from gym_conformance.baseline import Stale
from gym_conformance.checks.registry import (
    EVERY_ROW,
    FILES,
    JUDGE_MODELS,
    LAUNCHING,
    LOAD,
    OUTSIDE,
    RESTARTS,
    all_checks,
)
from gym_conformance.dataset import BadData, Dataset, load
from gym_conformance.findings import Finding, Verdict
from gym_conformance.option_readers import BadOption
from gym_conformance.options import FIXED_REQUESTS, LOCAL, Options, is_here
from gym_conformance.plugin.check_items import CheckItem, collect_checks, is_chosen, target_of
from gym_conformance.plugin.demo import NoDemo, demo_of
from gym_conformance.plugin.gate import BASELINE, BEFORE, StaleItem, collect_unknown
from gym_conformance.plugin.github import tell_github
from gym_conformance.plugin.junit_file import take_junit, write_junit
from gym_conformance.plugin.keeping import Keeper
from gym_conformance.plugin.launched_target import launched_target
from gym_conformance.plugin.locking import load_lock, write_lock
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.plugin.progress import progress_of, tell
from gym_conformance.plugin.replays import Replay, collect_replays
from gym_conformance.plugin.run_outputs import unwritten, write_outputs
from gym_conformance.plugin.summary import Tally, exit_status, status, write_summary
from gym_conformance.plugin.target import Target, running_target
from gym_conformance.plugin.target_run import Unreachable, ensure_process, ensure_reachable
from gym_conformance.trajectories.in_flight import HERE, Drivers
from gym_conformance.trials.check import Check
from gym_conformance.trials.needs import FIRST_LOOK

#: The drivers of a load, if this process does not run its episodes itself.
DRIVERS: Final = pytest.StashKey[Drivers]()


def checks_of(options: Options) -> tuple[Check, ...]:
    """The checks for these options, in order."""
    load = (EVERY_ROW if options.rows is not None else ()) + (LOAD if options.load else ())
    return (
        (FILES + LAUNCHING + all_checks() + JUDGE_MODELS + OUTSIDE + load + RESTARTS)
        if options.envs
        else all_checks() + load
    )


def worker_of(config: pytest.Config) -> dict[str, Any] | None:
    """The input of an xdist worker; None in any other process."""
    return getattr(config, "workerinput", None)


def prepare(target: Target, config: pytest.Config) -> None:
    """Give a target what this pytest run provides: lock, progress line, folder for findings, and drivers.

    Raises:
        pytest.UsageError: the lock is invalid.
    """
    target.drivers = config.stash.get(DRIVERS, HERE)
    target.progress = None if worker_of(config) else progress_of(config)
    if target.interpreter:
        target.interpreter.say = partial(tell, config)
    target.keeper = Keeper(config.invocation_params.dir, target.name, target.option, launched=target.env is not None)
    if not target.options.lock_update:
        try:
            target.lock = load_lock(target.options.lock)
        except BadOption as bad:
            raise pytest.UsageError(str(bad)) from None


class Checking:
    """The hooks around each check, of any target."""

    def __init__(self, config: pytest.Config) -> None:
        worker = worker_of(config)
        self.process: str = worker["workerid"] if worker else ""
        self._first: dict[tuple[str, str], str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell each target which of its checks are selected, and skip the first look if none of them needs it.

        In an xdist worker the checks that it will judge are not known: it shares them with others.
        """
        targets: dict[int, Target] = {}
        chosen: dict[int, list[CheckItem]] = {}
        for item in session.items:
            if isinstance(item, CheckItem) and isinstance(item.target, Target):
                targets[id(item.target)] = item.target
                chosen.setdefault(id(item.target), []).append(item)
        for key, target in targets.items():
            target.first_look = any(FIRST_LOOK in item.check.needs for item in chosen[key])
            target.upcoming = () if self.process else [item.check for item in chosen[key] if item.schedule is None]

    def pytest_runtestloop(self) -> None:
        """Exempt existing objects from garbage collection: they live as long as the process, and are slow to visit."""
        gc.freeze()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Stop a launched target after its last check in this process."""
        after = nextitem.target if isinstance(nextitem, CheckItem) else None
        if isinstance(item, CheckItem) and item.target is not after and item.target.options.envs:
            item.target.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the findings to pytest's report, which also carries them from an xdist worker."""
        report = yield
        if isinstance(item, CheckItem) and call.when == "call":
            findings = item.findings or [_cut_off(item, call.excinfo)]
            own_fault = not item.findings and not _stopped(call.excinfo)
            report.gym = item.target.travelling(findings, self.process, own_fault=own_fault)  # type: ignore[attr-defined]
        if isinstance(item, CheckItem | StaleItem) and call.when == "call":
            report.gym_stale = [asdict(stale) for stale in item.stale]  # type: ignore[attr-defined]
        return report

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Give a check that is no ordinary pass or failure a status of its own.

        Of those that are untestable for the same reason, only the first is listed among the failures: it says it all.
        """
        found = getattr(report, "gym", None)
        if not found:
            return None
        findings = [Finding.from_json(one) for one in found["findings"]]
        if report.passed:
            return status(findings)
        lacks = {finding.reason for finding in findings if finding.verdict is Verdict.UNTESTABLE}
        if (
            found["own_fault"]
            or getattr(report, "gym_stale", ())
            or len(lacks) != 1
            or any(one.verdict is Verdict.FAIL for one in findings)
        ):
            return None
        first = self._first.setdefault((found["name"], *lacks), report.nodeid)
        return None if first == report.nodeid else ("untestable", "F", ("UNTESTABLE", {"red": True}))


class JudgingSession:
    """The session of one or more targets, by name; an xdist controller judges nothing, but gathers findings."""

    def __init__(self, config: pytest.Config, options: Options, each: Mapping[str, Options]) -> None:
        self.config = config
        self.options = options
        self.worker = worker_of(config)
        self.checks = checks_of(options)
        self.targets: dict[str, Target] = {}
        before = config.stash[BEFORE]
        self.tallies = {
            name: Tally(one, self.checks, before=before.file, earlier=before.of(one.envs[0].name if one.envs else ""))
            for name, one in each.items()
        }
        self._unlocked = set(each) if options.lock_update else set()
        self._started = ExitStack()
        self.concluding = not config.option.collectonly

    def launch_from(self, each: Mapping[str, Options]) -> None:
        """Create the targets, each launched from its env by its first check, with mocks that they all share."""
        peers = MockPeers(self._started)
        self.targets = {name: launched_target(name, one, peers) for name, one in each.items()}

    def pytest_sessionstart(self) -> None:
        """Prepare the targets before anything is judged; envs are launched later."""
        take_junit(self.config, self.options)
        if self.config.option.collectonly:
            return
        self.begin()
        for name, target in self.targets.items():
            prepare(target, self.config)
            self._started.callback(target.close)
            self.tallies[name].target = target.target()

    def begin(self) -> None:
        """Do what must precede the preparation of targets."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """Note during which check of a target a worker died."""
        if (tally := self.tallies.get(target_of(crashitem))) is not None:
            tally.died.append(crashitem.rpartition("::")[2])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the checks first, target by target; pytest's own -k, -m and --lf then select among them."""
        checks = [item for target in self.targets.values() for item in collect_checks(session, self.checks, target)]
        wanted = [item for item in checks if is_chosen(item)]
        self.pytest_deselected(list(set(checks) - set(wanted)))
        items[:0] = [*wanted, *collect_unknown(session, self.checks)]

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note what -k, -m or --lf deselected, for the report."""
        for item in items:
            if isinstance(item, CheckItem):
                self.tallies[item.target.name].deselected.add(item.check.id)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather findings; runs in the controller for every worker's report."""
        if (found := getattr(report, "gym", None)) is not None:
            self.tallies[found["name"]].add(found)
            if self.worker is None:
                self.follow(found)
        for stale in (Stale(**one) for one in getattr(report, "gym_stale", ())):
            self.tallies.get(stale.server, next(iter(self.tallies.values()))).stale.append(stale)

    def follow(self, found: dict[str, Any]) -> None:
        """Act on the findings of a check that has just run."""

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary; pytest's own comes next, and would have each failure's text whole again in CI."""
        for report in terminalreporter.getreports("failed"):
            if hasattr(report, "gym"):
                report.longrepr = str(report.longrepr).partition("\n")[0]
        if self.worker is None and self.concluding:
            self.summarise(terminalreporter)
            if self.config.getini("gym_github"):
                file = self.config.stash[BASELINE].file
                tell_github(terminalreporter, {name: tally.report(file) for name, tally in self.tallies.items()})

    def summarise(self, terminal: Any) -> None:
        """Print the summary of the findings."""
        raise NotImplementedError

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what an xdist worker deselected, and which locks it wrote; one that crashed reports nothing."""
        output = getattr(node, "workeroutput", {})
        for name, checks in output.get("gym_deselected", {}).items():
            self.tallies[name].deselected |= set(checks)
        self.take_locks(output)

    def take_locks(self, output: dict[str, Any]) -> None:
        """Take over which locks a worker wrote, and why it did not write others."""
        for name, locked, why_not in output.get("gym_locks", ()):
            self.tallies[name].locked = locked or self.tallies[name].locked
            self.tallies[name].unwritten += why_not

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Stop what was started and write the reports, even if the run was interrupted."""
        if exitstatus == pytest.ExitCode.USAGE_ERROR and not any(tally.found for tally in self.tallies.values()):
            self.concluding = False  # such as for a typo in -k: an earlier run's files stay as they are
        for name, target in self.targets.items():
            if self.concluding and self.judged(target):
                self.write_lock(name)
        self._started.close()
        if self.worker is not None:
            left_out = {name: sorted(tally.deselected) for name, tally in self.tallies.items()}
            locks = [(name, tally.locked, tally.unwritten) for name, tally in self.tallies.items()]
            self.config.workeroutput.update(gym_deselected=left_out, gym_locks=locks)  # type: ignore[attr-defined]
        elif self.concluding:
            first = next(iter(self.tallies.values()))
            first.unwritten += write_outputs(
                self.options, self.tallies, self.config.stash[BASELINE].file, partial(write_junit, self.config)
            )
            session.exitstatus = exit_status(self.tallies.values(), session.exitstatus)

    def judged(self, target: Target) -> bool:
        """Whether this process writes the target's lock."""
        return target.tried

    def write_lock(self, name: str) -> None:
        """Write the lock of a target, once, if requested."""
        if name not in self._unlocked:
            return
        self._unlocked.discard(name)
        tally, target = self.tallies[name], self.targets[name]
        path = target.options.lock
        assert path is not None  # noqa: S101 - --gym-lock-update requires --gym-lock

        def write() -> None:
            tally.locked = write_lock(path, target.tools())

        said = unwritten(f"--gym-lock {str(path)!r}", write)
        tally.unwritten += [said] if said else []

    def pytest_unconfigure(self) -> None:
        """Stop what was started, in case the session never began."""
        self._started.close()


class Suite(JudgingSession):
    """The session of one target, which has no name."""

    def __init__(self, config: pytest.Config, options: Options, replays: tuple[Replay, ...] = ()) -> None:
        super().__init__(config, options, {"": options})
        self.replays = replays
        self.url = options.url or ""
        self.data = options.data
        if options.envs:
            self.launch_from({"": options})
        else:
            self.targets[""] = running_target(self.url, Dataset(), options)

    def begin(self) -> None:
        """Read the data and check that the server is reachable."""
        if not self.options.envs:
            self.targets[""] = self._running()

    def _running(self) -> Target:
        try:
            if self.worker is not None:
                self.url, self.data = self.worker["gym_url"], tuple(map(Path, self.worker["gym_data"]))
            elif self.options.url is None:
                demo = demo_of(self.config)
                self.url, self.data = demo.url, (demo.data,)
            else:
                ensure_reachable(self.url, self.options)
                ensure_process(self.options.pid)
            dataset = load(self.data)
        except (BadData, NoDemo, Unreachable) as bad:
            raise pytest.UsageError(str(bad)) from None
        return running_target(self.url, dataset, self.options)

    def pytest_report_header(self) -> str | None:
        """Warn of requests to a server that others may be using, and of commands that run on this machine."""
        options = self.options
        if options.sandbox == LOCAL:
            return "--gym-sandbox local: THE COMMANDS OF SANDBOXES ARE RUN ON THIS MACHINE, AS YOU"
        if options.envs or is_here(options.url):
            return None
        profile, properties = options.profile, sum(check.attempt is not None for check in all_checks())
        return (
            f"{self.url}: not on this machine; expect about {FIXED_REQUESTS} requests, and trajectories for {properties} times "
            f"{profile.seconds:g} s, at most {options.in_flight} at a time (--gym-in-flight)"
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker the server's URL and the rows."""
        node.workerinput |= {"gym_url": self.url, "gym_data": [str(path) for path in self.data]}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the checks first, or the schedules to replay."""
        if not self.replays:
            super().pytest_collection_modifyitems(session, items)
            return
        self.tallies[""].deselected |= {check.id for check in set(self.checks) - {each.check for each in self.replays}}
        items[:0] = collect_replays(session, self.replays, self.targets[""])

    def summarise(self, terminal: Any) -> None:
        """Print what the server is, and what was found."""
        write_summary(terminal, self.tallies[""])

    def judged(self, target: Target) -> bool:
        """Whether this is no xdist worker: workers share the target, so the process that began the run writes it."""
        del target
        return self.worker is None


def _stopped(excinfo: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """Whether pytest or another plugin, such as a time limit, ended the item: then it is no fault of ours."""
    return excinfo is not None and isinstance(excinfo.value, pytest.fail.Exception | pytest.skip.Exception)


def _cut_off(item: CheckItem, excinfo: pytest.ExceptionInfo[BaseException] | None) -> Finding:
    who = "more time; it was stopped" if _stopped(excinfo) else f"{item.itself} itself failed"
    reason = f"{who}: {excinfo.exconly(tryshort=True) if excinfo else 'it found nothing'}"
    return item.check.finding(Verdict.UNTESTABLE, item.redacted(reason))
