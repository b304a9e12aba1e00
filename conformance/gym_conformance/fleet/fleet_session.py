"""The suite inside pytest for several targets, and the choice between that and a single target."""

from contextlib import suppress
from typing import Any

import pytest

from gym_conformance.baseline import Baseline
from gym_conformance.checks.entry_points import BadCheck
from gym_conformance.checks.registry import all_checks
from gym_conformance.fleet.course import Course
from gym_conformance.fleet.division import divide, ensure_several
from gym_conformance.fleet.load_on_ray import LoadOnRay
from gym_conformance.fleet.on_ray import OnRay
from gym_conformance.fleet.resuming import Ledger, Resumed
from gym_conformance.fleet.scheduling import allow_restarts, scheduler
from gym_conformance.fleet.table import write_table
from gym_conformance.grouping import grouped
from gym_conformance.option_readers import BadOption
from gym_conformance.options import Options, ensure_lock
from gym_conformance.plugin.check_items import CheckItem
from gym_conformance.plugin.command_line import choose_paths, options_of
from gym_conformance.plugin.gate import BASELINE, BEFORE, load_baseline
from gym_conformance.plugin.hooks import Checking, JudgingSession, Suite
from gym_conformance.plugin.junit_file import ask_for_junit
from gym_conformance.plugin.replays import read_replay
from gym_conformance.reports.earlier_report import BadReport, read_earlier


def start(config: pytest.Config) -> None:
    """Register the suite for this run: for one target, or for several.

    Raises:
        pytest.UsageError: an option has an unusable value.
    """
    try:
        options = options_of(config)
        ensure_several(options)
        config.stash[BEFORE] = read_earlier(options.before, several=len(options.envs) > 1)
        suite: JudgingSession = _fleet(config, options) if len(options.envs) > 1 else _suite(config, options)
    except (BadCheck, BadOption, BadReport) as bad:
        raise pytest.UsageError(str(bad)) from None
    ask_for_junit(config, options)
    config.pluginmanager.register(Checking(config), "gym-conformance-checks")
    config.pluginmanager.register(suite, "gym-conformance-suite")
    if options.ray and options.load:
        config.pluginmanager.register(LoadOnRay(config, options), "gym-conformance-ray")
    elif options.ray:
        config.pluginmanager.register(OnRay(config, options.ray, suite.take_locks), "gym-conformance-ray")


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


def _ensure_named(baseline: Baseline) -> None:
    """Check that each entry of the baseline names its server, as it must if there are several.

    Raises:
        pytest.UsageError: an entry names no server.
    """
    if unnamed := next((entry for entry in baseline.entries if not entry.server), None):
        where = f"{baseline.file}, line {unnamed.line}" if unnamed.line else f"{baseline.file}, {unnamed.check}"
        raise pytest.UsageError(f"--gym-baseline: {where}: several servers are judged; say which one: server = ...")


class Fleet(JudgingSession):
    """The pytest plugin of a run of several targets."""

    def __init__(self, config: pytest.Config, options: Options, each: tuple[Options, ...]) -> None:
        named = {one.envs[0].name: one for one in each}
        super().__init__(config, options, named)
        self.launch_from(named)
        self.ledger = Ledger(config.invocation_params.dir, options)
        self.course = Course(self.tallies)
        self.resumed: set[str] = set()

    def begin(self) -> None:
        """Start the ledger of findings, so that the run can be resumed."""
        if self.worker is None:
            with suppress(OSError):  # without a ledger, only resuming does not work
                self.ledger.begin(resume=self.options.resume)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: Any, log: Any) -> Any:
        """Assign each target to one worker, unless the user chose how to distribute tests."""
        return scheduler(config, log) if config.option.dist == "load" else None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """If the run is resumed, reuse what an earlier run found on the targets that it finished."""
        if not self.options.resume or self.config.option.collectonly:
            return
        items = (item for item in session.items if isinstance(item, CheckItem))
        for name, its in grouped(lambda item: item.target.name, items).items():
            if earlier := self.ledger.earlier(name, {item.check.id for item in its}):
                resumed = Resumed(self.targets[name], earlier)
                for item in its:
                    item.target = resumed

    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Write the lock of a target after its last check in this process, if requested."""
        after = nextitem.target if isinstance(nextitem, CheckItem) else None
        if isinstance(item, CheckItem) and item.target is not after and self.targets[item.target.name].tried:
            self.write_lock(item.target.name)

    def follow(self, found: dict[str, Any]) -> None:
        """Report progress, and record the findings in the ledger."""
        if found.get("resumed"):
            self.resumed.add(found["name"])
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        self.course.follow(terminal, found["effort"][0], found["name"])
        with suppress(OSError):
            self.ledger.write(found)

    def summarise(self, terminal: Any) -> None:
        """Write the summary table."""
        write_table(terminal, self.tallies, resumed=len(self.resumed))
