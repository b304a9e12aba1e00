"""The suite inside pytest: loaded only when an option asks for a gym to be judged."""

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.baseline import Stale
from gym_conformance.baseline_toml import write_baseline
from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import BadData, load
from gym_conformance.findings import Finding, Verdict
from gym_conformance.options import FIXED_REQUESTS, BadOption, Options, is_here, read_options
from gym_conformance.plugin.gate import BASELINE, StaleItem, collect_unknown, load_baseline
from gym_conformance.plugin.github import tell_github
from gym_conformance.plugin.items import RUN, CheckItem, collect_checks, node_id, section_id
from gym_conformance.plugin.locking import load_lock, write_lock
from gym_conformance.plugin.progress import progress_of
from gym_conformance.plugin.replays import Replay, collect_replays, read_replay
from gym_conformance.plugin.run import Run, Unreachable, ensure_reachable
from gym_conformance.plugin.summary import Tally, write_summary
from gym_conformance.reports.report import Report
from gym_conformance.reports.writing import write_drift, write_report
from gym_conformance.session.printable import printable

#: What can be chosen by node id: a section, or a check in it.
_NODES = frozenset(node for check in CHECKS for node in (section_id(check), node_id(check)))


def activate(config: pytest.Config) -> None:
    """Register the suite for this run.

    Raises:
        pytest.UsageError: an option's value cannot be used.
    """
    try:
        options = _read_options(config)
        replays = tuple(read_replay(path, CHECKS) for path in options.replay)
    except BadOption as bad:
        raise pytest.UsageError(str(bad)) from None
    config.stash[BASELINE] = load_baseline(options.baseline)
    _write_junit(config, options)
    _choose_paths(config)
    config.pluginmanager.register(Suite(config, options, replays), "gym-conformance-suite")


def _read_options(config: pytest.Config) -> Options:
    """The command line's options, and the ini file's where it is silent."""
    option = config.option
    url, demo = option.gym_url, option.gym_demo
    if url is None and not demo:
        url, demo = config.getini("gym_url") or None, config.getini("gym_demo")
    return read_options(
        url=url,
        demo=demo,
        data=option.gym_data or ([] if option.gym_demo else config.getini("gym_data")),
        strict=option.gym_strict or config.getini("gym_strict"),
        reports=option.gym_report or config.getini("gym_report"),
        timeout=option.gym_timeout or config.getini("gym_timeout"),
        headers=option.gym_header or config.getini("gym_header"),
        profile=option.gym_profile or config.getini("gym_profile"),
        seed=option.gym_seed or config.getini("gym_seed"),
        replay=option.gym_replay or config.getini("gym_replay"),
        pid=option.gym_pid or config.getini("gym_pid"),
        in_flight=option.gym_in_flight or config.getini("gym_in_flight"),
        baseline=option.gym_baseline or _one_path(config, "gym_baseline"),
        baseline_write=option.gym_baseline_write,
        drift=option.gym_drift or config.getini("gym_drift"),
        lock=option.gym_lock or _one_path(config, "gym_lock"),
        lock_update=option.gym_lock_update,
    )


def _one_path(config: pytest.Config, name: str) -> Path | None:
    paths: list[Path] = config.getini(name)
    if len(paths) > 1:
        raise BadOption(f"{name}: {len(paths)} paths; give one")
    return paths[0] if paths else None


def _write_junit(config: pytest.Config, options: Options) -> None:
    """`--gym-report FILE.xml` is `--junitxml FILE.xml`, whose plugin is configured after ours."""
    for path in options.reports:
        if path.suffix == ".xml":
            if getattr(config.option, "xmlpath", None) not in (None, str(path)):
                raise pytest.UsageError(f"--gym-report '{path}': pytest writes one JUnit file; give one .xml")
            config.option.xmlpath = str(path)


def _choose_paths(config: pytest.Config) -> None:
    """Asked for a gym and given no path, collect no tests but ours; node ids of ours are no paths."""
    chosen = {arg: node for arg in config.args if (node := _own_node(config, arg))}
    # travels to xdist workers
    config.option.gym_chosen = [*getattr(config.option, "gym_chosen", []), *chosen.values()]
    asked = config.option.gym_url or config.option.gym_demo
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args = [arg for arg in config.args if arg not in chosen]
    elif asked:
        config.args = []


def _own_node(config: pytest.Config, arg: str) -> str | None:
    """The node id that an argument names, if it is one of ours; below the root pytest shows them with `../`."""
    path, colons, check = arg.partition("::")
    for node in (path, os.path.relpath(config.invocation_params.dir / path, config.rootpath)):
        if node + colons + check in _NODES:
            return node + colons + check
    return None


class Suite:
    """The hooks of one run; in the xdist controller it judges nothing, and gathers what the workers found."""

    def __init__(self, config: pytest.Config, options: Options, replays: tuple[Replay, ...] = ()) -> None:
        self.config = config
        self.options = options
        self.replays = replays
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.tally = Tally(options, CHECKS)
        self.url = options.url or ""
        self._started = ExitStack()

    def pytest_sessionstart(self) -> None:
        """Read the data and see whether the server is there, before anything is judged."""
        config = self.config
        if config.option.collectonly:
            return
        data = self.options.data
        try:
            if self.worker is not None:
                self.url = self.worker["gym_url"]
            elif self.options.url is None:
                self.url = self._start_demo()
            else:
                ensure_reachable(self.url, self.options)
            if self.options.url is None:
                data = _demo_data()
            dataset, lock = load(data), load_lock(self.options)
        except (BadData, BadOption, Unreachable) as bad:
            raise pytest.UsageError(str(bad)) from None
        run = config.stash[RUN] = Run(self.url, self.options, dataset, lock)
        run.progress = None if self.worker else progress_of(config)
        self._started.callback(run.close)
        self.tally.target = run.target()

    def pytest_report_header(self) -> str | None:
        """Say what a server that may be others' too is in for."""
        options = self.options
        if is_here(options.url):
            return None
        profile, properties = options.search.profile, sum(check.attempt is not None for check in CHECKS)
        return (
            f"{self.url}: not on this machine; about {FIXED_REQUESTS} requests, and trajectories for {properties} times "
            f"{profile.seconds:g} s, at most {options.in_flight} under way at once (--gym-in-flight)"
        )

    def _start_demo(self) -> str:
        from gym_mocks.reference import reference_app  # noqa: PLC0415 - only the demo needs a server of ours
        from gym_mocks.serving import serve  # noqa: PLC0415

        return self._started.enter_context(serve(reference_app()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker where the server is."""
        node.workerinput["gym_url"] = self.url

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the checks first; after this, pytest's own -k, -m and --lf choose among them."""
        chosen = set(self.config.option.gym_chosen)
        if self.replays:
            self.tally.deselected |= {check.id for check in CHECKS} - {replay.check.id for replay in self.replays}
            items[:0] = collect_replays(session, self.replays)
            return
        checks = collect_checks(session, CHECKS)
        wanted = [item for item in checks if not chosen or {node_id(item.check), section_id(item.check)} & chosen]
        self.tally.deselected |= {item.check.id for item in checks} - {item.check.id for item in wanted}
        unknown = collect_unknown(session, self.config.stash[BASELINE], {check.id for check in CHECKS})
        items[:0] = [*wanted, *([] if chosen else unknown)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the findings travel with pytest's report, also from an xdist worker."""
        report = yield
        if isinstance(item, CheckItem) and call.when == "call":
            run = self.config.stash[RUN]
            findings = item.findings or [_cut_off(item, call.excinfo)]
            effort = run.effort()
            report.gym = {  # type: ignore[attr-defined]
                "findings": [finding.as_json() for finding in findings],
                "target": run.target(),
                "effort": [self.worker["workerid"] if self.worker else "", effort.requests, effort.seconds],
                "latency": run.latencies(),
                "own_fault": not item.findings and not _stopped(call.excinfo),
            }
        if isinstance(item, CheckItem | StaleItem) and call.when == "call":
            report.gym_stale = [asdict(stale) for stale in item.stale]  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what was found; runs in the controller for every worker's report."""
        if (found := getattr(report, "gym", None)) is not None:
            self.tally.add(found)
        self.tally.stale += [Stale(**stale) for stale in getattr(report, "gym_stale", ())]

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """A check that passes with a finding below MUST shows as one."""
        found = getattr(report, "gym", None)
        if not found or not report.passed:
            return None
        red = [one for one in found["findings"] if one["verdict"] in (Verdict.FAIL, Verdict.UNTESTABLE)]
        if not red:
            return None
        unaccepted = [finding for finding in red if not finding.get("accepted")]
        if not unaccepted:
            return "accepted", "a", "ACCEPTED"
        level = unaccepted[0]["level"]
        return ("warned", "w", "SHOULD") if level == "SHOULD" else ("informed", "i", "MAY")

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember what -k, -m or --lf left out, for the report."""
        self.tally.deselected |= {item.check.id for item in items if isinstance(item, CheckItem)}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what the server is and what was found."""
        if self.worker is None and not self.config.option.collectonly:
            write_summary(terminalreporter, self.tally)
            if self.config.getini("gym_github"):
                tell_github(terminalreporter, self._report())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what an xdist worker left out; one that crashed says nothing."""
        self.tally.deselected |= set(getattr(node, "workeroutput", {}).get("gym_deselected", ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what was started and write the reports, also when the run was interrupted."""
        if self.worker is None and self.options.lock_update and not self.config.option.collectonly:
            self._write(session, f"--gym-lock {str(self.options.lock)!r}", self._write_lock)
        self._started.close()
        if self.worker is not None:
            self.config.workeroutput["gym_deselected"] = sorted(self.tally.deselected)  # type: ignore[attr-defined]
            return
        if self.config.option.collectonly:
            return
        if self.tally.own_fault:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        report = self._report()
        for path in self.options.reports:
            if path.suffix != ".xml":
                self._write(session, f"--gym-report {str(path)!r}", partial(write_report, path, report))
        for path in self.options.drift:
            self._write(session, f"--gym-drift {str(path)!r}", partial(write_drift, path, report))
        if (new := self.options.baseline_write) and not self.tally.own_fault:
            breaking = [finding for finding in self.tally.findings if finding.breaks(strict=self.options.strict)]
            self._write(session, f"--gym-baseline-write {str(new)!r}", partial(write_baseline, new, breaking))

    def _write(self, session: pytest.Session, option: str, write: Callable[[], None]) -> None:
        try:
            write()
        except (OSError, Unreachable) as error:
            said = error.strerror if isinstance(error, OSError) else error
            self.tally.unwritten.append(f"{option}: {said}; it was not written")
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _write_lock(self) -> None:
        if self.options.lock is not None and (run := self.config.stash.get(RUN, None)) is not None:
            self.tally.locked = write_lock(self.options.lock, run.tools())

    def _report(self) -> Report:
        return self.tally.report(self.config.stash[BASELINE].file)

    def pytest_unconfigure(self) -> None:
        """Stop what was started also where the session never began."""
        self._started.close()


def _stopped(excinfo: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """Whether pytest or a plugin of the user's, such as a time limit, ended the item: that is no fault of ours."""
    return excinfo is not None and isinstance(excinfo.value, pytest.fail.Exception | pytest.skip.Exception)


def _cut_off(item: CheckItem, excinfo: pytest.ExceptionInfo[BaseException] | None) -> Finding:
    check = item.check
    who = "it was stopped" if _stopped(excinfo) else "gym-conformance itself failed"
    reason = printable(item.redacted(f"{who}: {excinfo.exconly(tryshort=True) if excinfo else 'it found nothing'}"))
    return Finding(check.id, check.level.value, check.title, Verdict.UNTESTABLE, "server", reason=reason)


def _demo_data() -> tuple[Any, ...]:
    from gym_mocks.reference import DATA  # noqa: PLC0415 - only the demo needs it

    return (DATA,)
