"""The suite inside pytest, for several targets; and the choice between one and several."""

from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pytest

from gym_conformance.baseline import Baseline, Stale
from gym_conformance.checks.entry_points import BadCheck
from gym_conformance.checks.registry import all_checks
from gym_conformance.fleet.course import Course
from gym_conformance.fleet.division import divide, ensure_several
from gym_conformance.fleet.load_on_ray import LoadOnRay
from gym_conformance.fleet.on_ray import OnRay
from gym_conformance.fleet.resuming import Ledger, Resumed
from gym_conformance.fleet.scheduling import allow_restarts, scheduler, target_of
from gym_conformance.fleet.table import write_table
from gym_conformance.option_readers import BadOption
from gym_conformance.options import Options, ensure_lock
from gym_conformance.plugin.check_items import CheckItem, collect_checks, is_chosen
from gym_conformance.plugin.command_line import choose_paths, options_of
from gym_conformance.plugin.gate import BASELINE, BEFORE, collect_unknown, load_baseline
from gym_conformance.plugin.github import tell_github
from gym_conformance.plugin.hooks import Checking, Suite, checks_of, prepare, worker_of
from gym_conformance.plugin.junit_file import ask_for_junit, take_junit, write_junit
from gym_conformance.plugin.launched_target import launched_target
from gym_conformance.plugin.locking import write_lock
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.plugin.replays import read_replay
from gym_conformance.plugin.run_outputs import unwritten, write_outputs
from gym_conformance.plugin.summary import Tally, exit_status
from gym_conformance.reports.earlier_report import BadReport, read_earlier


def start(config: pytest.Config) -> None:
    """Register the suite for this run: for one target, or for several.

    Raises:
        pytest.UsageError: an option's value cannot be used.
    """
    try:
        options = options_of(config)
        ensure_several(options)
        config.stash[BEFORE] = read_earlier(options.before, several=len(options.envs) > 1)
        suite = _fleet(config, options) if len(options.envs) > 1 else _suite(config, options)
    except (BadCheck, BadOption, BadReport) as bad:
        raise pytest.UsageError(str(bad)) from None
    ask_for_junit(config, options)
    config.pluginmanager.register(Checking(config), "gym-conformance-checks")
    config.pluginmanager.register(suite, "gym-conformance-suite")
    if options.ray and options.load:
        config.pluginmanager.register(LoadOnRay(config, options), "gym-conformance-ray")
    elif options.ray:
        take_output = suite.take_locks if isinstance(suite, Fleet) else _ignore
        config.pluginmanager.register(OnRay(config, options.ray, take_output), "gym-conformance-ray")


def _suite(config: pytest.Config, options: Options) -> Suite:
    ensure_lock(options)
    replays = tuple(read_replay(path, all_checks()) for path in options.replay)
    config.stash[BASELINE] = load_baseline(options.baseline)
    choose_paths(config)
    return Suite(config, options, replays)


def _fleet(config: pytest.Config, options: Options) -> "Fleet":
    each = divide(options, lock_in_ini=config.option.gym_lock is None)
    baseline = load_baseline(options.baseline)
    _ensure_named(baseline)
    config.stash[BASELINE] = baseline
    choose_paths(config, [env.name for env in options.envs])
    allow_restarts(config, len(each))
    return Fleet(config, options, each)


def _ignore(output: dict[str, Any]) -> None:
    """With one target, the process that began the run writes the lock."""


def _ensure_named(baseline: Baseline) -> None:
    """Of several servers, each entry of the baseline names its own.

    Raises:
        pytest.UsageError: one does not.
    """
    if unnamed := next((entry for entry in baseline.entries if not entry.server), None):
        where = f"{baseline.file}, line {unnamed.line}" if unnamed.line else f"{baseline.file}, {unnamed.check}"
        raise pytest.UsageError(f"--gym-baseline: {where}: several servers are judged; say which one: server = ...")


class Fleet:
    """The session of several targets; in the xdist controller it judges nothing, and gathers what the workers found."""

    def __init__(self, config: pytest.Config, options: Options, each: tuple[Options, ...]) -> None:
        self.config = config
        self.options = options
        self.worker = worker_of(config)
        self.checks = checks_of(options)
        self._started = ExitStack()
        peers = MockPeers(self._started)
        self.targets = {one.envs[0].name: launched_target(one.envs[0].name, one, peers) for one in each}
        before = config.stash[BEFORE]
        names = {one.envs[0].name: one for one in each}
        self.tallies = {
            name: Tally(one, self.checks, before=before.file, earlier=before.of(name)) for name, one in names.items()
        }
        self.ledger = Ledger(config.invocation_params.dir, options)
        self.course = Course(self.tallies)
        self.resumed: set[str] = set()
        self._unlocked = set(self.targets) if options.lock_update else set()

    def pytest_sessionstart(self) -> None:
        """Make the targets ready; each is launched by its first check."""
        take_junit(self.config, self.options)
        if self.config.option.collectonly:
            return
        if self.worker is None:
            with suppress(OSError):  # then nothing can be resumed, but everything else works
                self.ledger.begin(resume=self.options.resume)
        for name, target in self.targets.items():
            prepare(target, self.config)
            self._started.callback(target.close)
            self.tallies[name].target = target.target()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: Any, log: Any) -> Any:
        """Each target goes to one worker, unless the user says how to distribute."""
        return scheduler(config, log) if config.option.dist == "load" else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """Remember of which check of a target a worker died."""
        if (tally := self.tallies.get(target_of(crashitem))) is not None:
            tally.died.append(crashitem.rpartition("::")[2])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the checks first, target by target; after this, pytest's own -k, -m and --lf choose among them."""
        checks = [item for target in self.targets.values() for item in collect_checks(session, self.checks, target)]
        wanted = [item for item in checks if is_chosen(item)]
        self.pytest_deselected(list(set(checks) - set(wanted)))
        items[:0] = [*wanted, *collect_unknown(session, self.checks)]

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember what -k, -m or --lf left out, for the report."""
        for item in items:
            if isinstance(item, CheckItem):
                self.tallies[item.target.name].deselected.add(item.check.id)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Where a run is resumed, do not judge again what an earlier one finished."""
        if not self.options.resume or self.config.option.collectonly:
            return
        items: dict[str, list[CheckItem]] = {}
        for item in session.items:
            if isinstance(item, CheckItem):
                items.setdefault(item.target.name, []).append(item)
        for name, its in items.items():
            if earlier := self.ledger.earlier(name, {item.check.id for item in its}):
                resumed = Resumed(self.targets[name], earlier)
                for item in its:
                    item.target = resumed

    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """After a target's last check in this process, write its lock, if that is asked for."""
        after = nextitem.target if isinstance(nextitem, CheckItem) else None
        if isinstance(item, CheckItem) and item.target is not after and self.targets[item.target.name].tried:
            self._write_lock(item.target.name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what was found; runs in the controller for every worker's report."""
        if (found := getattr(report, "gym", None)) is not None:
            self.tallies[found["name"]].add(found)
            if self.worker is None:
                self._follow(found)
        for stale in (Stale(**one) for one in getattr(report, "gym_stale", ())):
            self.tallies.get(stale.server, next(iter(self.tallies.values()))).stale.append(stale)

    def _follow(self, found: dict[str, Any]) -> None:
        if found.get("resumed"):
            self.resumed.add(found["name"])
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        self.course.follow(terminal, found["effort"][0], found["name"])
        with suppress(OSError):
            self.ledger.write(found)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The table of all."""
        if self.worker is None and not self.config.option.collectonly:
            write_table(terminalreporter, self.tallies, resumed=len(self.resumed))
            if self.config.getini("gym_github"):
                file = self.config.stash[BASELINE].file
                tell_github(terminalreporter, {name: tally.report(file) for name, tally in self.tallies.items()})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what an xdist worker left out, and which locks it wrote; one that crashed says nothing."""
        output = getattr(node, "workeroutput", {})
        for name, checks in output.get("gym_deselected", {}).items():
            self.tallies[name].deselected |= set(checks)
        self.take_locks(output)

    def take_locks(self, output: dict[str, Any]) -> None:
        """Which locks a worker wrote, and why it did not write others."""
        for name, locked, why_not in output.get("gym_locks", ()):
            self.tallies[name].locked = locked or self.tallies[name].locked
            self.tallies[name].unwritten += why_not

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what was started and write the reports, also when the run was interrupted."""
        for name in [name for name, target in self.targets.items() if target.tried]:
            self._write_lock(name)
        self._started.close()
        if self.worker is not None:
            left_out = {name: sorted(tally.deselected) for name, tally in self.tallies.items()}
            locks = [(name, tally.locked, tally.unwritten) for name, tally in self.tallies.items()]
            self.config.workeroutput.update(gym_deselected=left_out, gym_locks=locks)  # type: ignore[attr-defined]
        elif not self.config.option.collectonly:
            first = next(iter(self.tallies.values()))
            first.unwritten += write_outputs(
                self.options, self.tallies, self.config.stash[BASELINE].file, partial(write_junit, self.config)
            )
            session.exitstatus = exit_status(self.tallies.values(), session.exitstatus)

    def _write_lock(self, name: str) -> None:
        """Write the lock of a target, once, in the process that judged it."""
        if name not in self._unlocked:
            return
        self._unlocked.discard(name)
        tally, target = self.tallies[name], self.targets[name]
        path = target.options.lock
        assert path is not None  # noqa: S101 - --gym-lock-update is refused without --gym-lock

        def write() -> None:
            tally.locked = write_lock(path, target.tools())

        said = unwritten(f"--gym-lock {str(path)!r}", write)
        tally.unwritten += [said] if said else []

    def pytest_unconfigure(self) -> None:
        """Stop what was started also where the session never began."""
        self._started.close()
