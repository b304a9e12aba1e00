"""The suite inside pytest: loaded only when an option asks for a gym to be judged."""

from collections.abc import Generator, Iterable
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import Any

import pytest

from gym_conformance.baseline import Stale
from gym_conformance.checks.entry_points import BadCheck
from gym_conformance.checks.registry import FILES, JUDGE_MODELS, all_checks
from gym_conformance.dataset import BadData, load
from gym_conformance.findings import Finding, Verdict
from gym_conformance.fleet.division import divide, ensure_several
from gym_conformance.option_readers import BadOption
from gym_conformance.options import FIXED_REQUESTS, Options, ensure_lock, is_here
from gym_conformance.plugin.command_line import choose_paths, options_of, write_junit
from gym_conformance.plugin.fleet import Course, write_fleet
from gym_conformance.plugin.gate import BASELINE, StaleItem, collect_unknown, load_baseline
from gym_conformance.plugin.github import tell_github
from gym_conformance.plugin.items import TARGETS, CheckItem, collect_checks, nodes_of, target_of
from gym_conformance.plugin.locking import load_lock, write_lock
from gym_conformance.plugin.mocks import MockPeers, demo_data, serve_demo
from gym_conformance.plugin.on_ray import OnRay
from gym_conformance.plugin.outputs import unwritten, write_outputs
from gym_conformance.plugin.progress import progress_of
from gym_conformance.plugin.replays import Replay, collect_replays, read_replay
from gym_conformance.plugin.resuming import Ledger
from gym_conformance.plugin.run import Unreachable, ensure_reachable
from gym_conformance.plugin.scheduling import allow_restarts, scheduler
from gym_conformance.plugin.summary import Tally, status, write_summary
from gym_conformance.plugin.target import Target, launched_targets, names_of, running_target, travelling
from gym_conformance.reports.report import Report


def activate(config: pytest.Config) -> None:
    """Register the suite for this run.

    Raises:
        pytest.UsageError: an option's value cannot be used.
    """
    try:
        options = options_of(config)
        ensure_several(options)
        each = divide(options, lock_in_ini=config.option.gym_lock is None) if len(options.envs) > 1 else (options,)
        ensure_lock(each[0])
        checks = all_checks()
        replays = tuple(read_replay(path, checks) for path in options.replay)
    except (BadCheck, BadOption) as bad:
        raise pytest.UsageError(str(bad)) from None
    config.stash[BASELINE] = load_baseline(options.baseline, several=len(options.envs) > 1)
    write_junit(config, options)
    choose_paths(config, options)
    allow_restarts(config, len(options.envs))
    suite = Suite(config, options, each, replays)
    config.pluginmanager.register(suite, "gym-conformance-suite")
    if options.ray:
        config.pluginmanager.register(OnRay(config, options.ray, suite.tallies), "gym-conformance-ray")


class Suite:
    """The hooks of one run; in the xdist controller it judges nothing, and gathers what the workers found."""

    def __init__(
        self, config: pytest.Config, options: Options, each: tuple[Options, ...], replays: tuple[Replay, ...] = ()
    ) -> None:
        self.config = config
        self.each = each
        self.options = options
        self.replays = replays
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.checks = FILES + all_checks() + JUDGE_MODELS if options.envs else all_checks()
        self.tallies = {name: Tally(options, self.checks) for name in names_of(options)}
        self.tally = next(iter(self.tallies.values()))
        self.url = options.url or ""
        self.ledger = Ledger(config.rootpath, options) if len(self.tallies) > 1 else None
        self.course = Course(self.tallies)
        self._started = ExitStack()

    def pytest_sessionstart(self) -> None:
        """Read the data and see whether the server is there, before anything is judged; envs are launched later."""
        config = self.config
        if config.option.collectonly:
            return
        if self.ledger and self.worker is None:
            with suppress(OSError):  # then nothing can be resumed, and all else works
                self.ledger.begin(resume=self.options.resume)
        targets = self._launched() if self.options.envs else {"": self._running()}
        config.stash[TARGETS] = targets
        for name, target in targets.items():
            self._hold_to_lock(target)
            target.progress = None if self.worker else progress_of(config)
            self._started.callback(target.close)
            self.tallies[name].target = target.target()

    def _hold_to_lock(self, target: Target) -> None:
        path = target.options.lock
        if self.options.lock_update:
            target.lock_file = path if len(self.tallies) > 1 else None  # one alone is written in the end, once
            return
        try:
            target.lock = load_lock(path)
        except BadOption as bad:
            raise pytest.UsageError(str(bad)) from None

    def _launched(self) -> dict[str, Target]:
        peers = MockPeers(self._started)
        return dict(zip(self.tallies, launched_targets(self.each, peers), strict=True))

    def _running(self) -> Target:
        try:
            if self.worker is not None:
                self.url = self.worker["gym_url"]
            elif self.options.url is None:
                self.url = serve_demo(self._started)
            else:
                ensure_reachable(self.url, self.options)
            dataset = load(demo_data() if self.options.url is None else self.options.data)
        except (BadData, Unreachable) as bad:
            raise pytest.UsageError(str(bad)) from None
        return running_target(self.url, dataset, self.options)

    def pytest_report_header(self) -> str | None:
        """Say what a server that may be others' too is in for."""
        options = self.options
        if options.envs or is_here(options.url):
            return None
        profile, properties = options.search.profile, sum(check.attempt is not None for check in self.checks)
        return (
            f"{self.url}: not on this machine; about {FIXED_REQUESTS} requests, and trajectories for {properties} times "
            f"{profile.seconds:g} s, at most {options.in_flight} under way at once (--gym-in-flight)"
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker where the server is."""
        node.workerinput["gym_url"] = self.url

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: Any, log: Any) -> Any:
        """With several targets, each goes to one worker, unless the user says how to distribute."""
        return scheduler(config, log) if len(self.tallies) > 1 and config.option.dist == "load" else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """Remember of which check of a target a worker died."""
        if (tally := self.tallies.get(target_of(crashitem))) is not None:
            tally.died.append(crashitem.rpartition("::")[2])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the checks first; after this, pytest's own -k, -m and --lf choose among them."""
        if self.replays:
            self._left_out(check.id for check in set(self.checks) - {replay.check for replay in self.replays})
            items[:0] = collect_replays(session, self.replays)
            return
        chosen = set(self.config.option.gym_chosen)
        checks = [item for name in self.tallies for item in collect_checks(session, self.checks, name)]
        wanted = [item for item in checks if not chosen or chosen.intersection(nodes_of(item.check, item.target))]
        for item in set(checks) - set(wanted):
            self.tallies[item.target].deselected.add(item.check.id)
        unknown = collect_unknown(session, self.config.stash[BASELINE], {check.id for check in self.checks})
        items[:0] = [*wanted, *([] if chosen else unknown)]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Where a run is resumed, do not judge again what an earlier one finished."""
        if self.ledger and self.options.resume:
            for name, target in session.config.stash.get(TARGETS, {}).items():
                wanted = {
                    item.check.id for item in session.items if isinstance(item, CheckItem) and item.target == name
                }
                target.earlier = self.ledger.earlier(name, wanted)

    def _left_out(self, checks: Iterable[str]) -> None:
        for tally in self.tallies.values():
            tally.deselected |= set(checks)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """After a launched target's last check in this process, stop it."""
        after = nextitem.target if isinstance(nextitem, CheckItem) else None
        if self.options.envs and isinstance(item, CheckItem) and item.target != after:
            self.config.stash[TARGETS][item.target].close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the findings travel with pytest's report, also from an xdist worker."""
        report = yield
        if isinstance(item, CheckItem) and call.when == "call":
            findings = item.findings or [_cut_off(item, call.excinfo)]
            report.gym = travelling(  # type: ignore[attr-defined]
                self.config.stash[TARGETS][item.target],
                findings,
                self.worker["workerid"] if self.worker else "",
                own_fault=not item.findings and not _stopped(call.excinfo),
            )
        if isinstance(item, CheckItem | StaleItem) and call.when == "call":
            report.gym_stale = [asdict(stale) for stale in item.stale]  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what was found; runs in the controller for every worker's report."""
        if (found := getattr(report, "gym", None)) is not None:
            self.tallies[found["name"]].add(found)
            if self.ledger and self.worker is None:
                terminal = self.config.pluginmanager.get_plugin("terminalreporter")
                self.course.follow(terminal, found["effort"][0], found["name"])
                with suppress(OSError):
                    self.ledger.write(found)
        for stale in getattr(report, "gym_stale", ()):
            self.tallies.get(stale["server"], self.tally).stale.append(Stale(**stale))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """A check that fails no run and yet has something to tell shows as that."""
        found = getattr(report, "gym", None)
        if not found or not report.passed:
            return None
        return status([Finding.from_json(one) for one in found["findings"]])

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember what -k, -m or --lf left out, for the report."""
        for item in items:
            if isinstance(item, CheckItem):
                self.tallies[item.target].deselected.add(item.check.id)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what the server is and what was found."""
        if self.worker is None and not self.config.option.collectonly:
            if len(self.tallies) > 1:
                write_fleet(terminalreporter, self.tallies)
            else:
                write_summary(terminalreporter, self.tally)
            if self.config.getini("gym_github"):
                tell_github(terminalreporter, self._reports())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what an xdist worker left out, and which locks it wrote; one that crashed says nothing."""
        said = getattr(node, "workeroutput", {})
        for name, checks in said.get("gym_deselected", {}).items():
            self.tallies[name].deselected |= set(checks)
        for name, *lock in said.get("gym_locks", ()):
            self.tallies[name].take_lock(*lock)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what was started and write the reports, also when the run was interrupted."""
        if self.worker is None and self.options.lock_update and not self.config.option.collectonly:
            self._write_lock()
        self._started.close()
        targets = self.config.stash.get(TARGETS, {})
        locks = [(name, target.locked, target.unwritten) for name, target in targets.items()]
        if self.worker is not None:
            left_out = {name: sorted(tally.deselected) for name, tally in self.tallies.items()}
            self.config.workeroutput.update(gym_deselected=left_out, gym_locks=locks)  # type: ignore[attr-defined]
            return
        if self.config.option.collectonly:
            return
        for name, *lock in locks:
            self.tallies[name].take_lock(*lock)
        if any(tally.own_fault for tally in self.tallies.values()):
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        self.tally.unwritten += write_outputs(self.options, self.tallies, self.config.stash[BASELINE].file)
        if any(tally.unwritten for tally in self.tallies.values()):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _write_lock(self) -> None:
        """The lock of one alone; of several, each is written when its server is stopped."""
        path, targets = self.options.lock, self.config.stash.get(TARGETS, {})
        if path is not None and len(targets) == 1:
            [target] = targets.values()
            option = f"--gym-lock {str(path)!r}"

            def write() -> None:
                self.tally.locked = write_lock(path, target.tools())

            self.tally.take_lock("", unwritten(option, write))

    def _reports(self) -> dict[str, Report]:
        baseline = self.config.stash[BASELINE].file
        return {name: tally.report(baseline) for name, tally in self.tallies.items()}

    def pytest_unconfigure(self) -> None:
        """Stop what was started also where the session never began."""
        self._started.close()


def _stopped(excinfo: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """Whether pytest or a plugin of the user's, such as a time limit, ended the item: that is no fault of ours."""
    return excinfo is not None and isinstance(excinfo.value, pytest.fail.Exception | pytest.skip.Exception)


def _cut_off(item: CheckItem, excinfo: pytest.ExceptionInfo[BaseException] | None) -> Finding:
    who = "it was stopped" if _stopped(excinfo) else f"{item.itself} itself failed"
    reason = f"{who}: {excinfo.exconly(tryshort=True) if excinfo else 'it found nothing'}"
    return item.check.finding(Verdict.UNTESTABLE, item.redacted(reason))
