"""The suite inside pytest: loaded only when an option asks for a gym to be judged."""

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.baseline import Stale
from gym_conformance.baseline_toml import write_baseline
from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import BadData, load
from gym_conformance.findings import Finding, Verdict
from gym_conformance.options import BadOption, Options, read_options
from gym_conformance.plugin.gate import BASELINE, StaleItem, collect_unknown, load_baseline
from gym_conformance.plugin.github import tell_github
from gym_conformance.plugin.items import RUN, CheckItem, collect_checks
from gym_conformance.plugin.run import Run, Unreachable, ensure_reachable
from gym_conformance.plugin.summary import Tally, write_summary
from gym_conformance.reports.report import Report
from gym_conformance.reports.writing import write_report

_PREFIX = "gym/"


def activate(config: pytest.Config) -> None:
    """Register the suite for this run.

    Raises:
        pytest.UsageError: an option's value cannot be used.
    """
    option = config.option
    try:
        options = read_options(
            url=option.gym_url or config.getini("gym_url"),
            demo=bool(option.gym_demo or (config.getini("gym_demo") and not option.gym_url)),
            data=option.gym_data or config.getini("gym_data"),
            strict=option.gym_strict or config.getini("gym_strict"),
            reports=option.gym_report or config.getini("gym_report"),
            timeout=option.gym_timeout or config.getini("gym_timeout"),
            headers=option.gym_header or config.getini("gym_header"),
            baseline=option.gym_baseline or _one_path(config, "gym_baseline"),
            baseline_write=option.gym_baseline_write,
        )
    except BadOption as bad:
        raise pytest.UsageError(str(bad)) from None
    config.stash[BASELINE] = load_baseline(options.baseline)
    _write_junit(config, options)
    _choose_paths(config)
    config.pluginmanager.register(Suite(config, options), "gym-conformance-suite")


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
    chosen = [arg for arg in config.args if arg.startswith(_PREFIX)]
    config.option.gym_chosen = getattr(config.option, "gym_chosen", []) + chosen  # travels to xdist workers
    asked = config.option.gym_url or config.option.gym_demo
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args = [arg for arg in config.args if not arg.startswith(_PREFIX)]
    elif asked:
        config.args = []


class Suite:
    """The hooks of one run; in the xdist controller it judges nothing, and gathers what the workers found."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.tally = Tally(options)
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
            dataset = load(data)
        except (BadData, Unreachable) as bad:
            raise pytest.UsageError(str(bad)) from None
        run = config.stash[RUN] = Run(self.url, self.options, dataset)
        self._started.callback(run.close)
        self.tally.target = run.target()

    def _start_demo(self) -> str:
        from gym_mocks.reference import reference_app  # noqa: PLC0415 - only the demo needs a server of ours
        from gym_mocks.serving import serve  # noqa: PLC0415

        return self._started.enter_context(serve(reference_app()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker where the server is."""
        node.workerinput["gym_url"] = self.url

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from an xdist worker what was left out: only workers collect."""
        self.tally.deselected |= set(getattr(node, "workeroutput", {}).get("gym_deselected", ()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Put the checks first; after this, pytest's own -k, -m and --lf choose among them."""
        config = self.config
        chosen = set(config.option.gym_chosen)
        checks = collect_checks(session, CHECKS)
        ours = [*checks, *collect_unknown(session, config.stash[BASELINE], {check.id for check in CHECKS})]
        items[:0] = [item for item in ours if not chosen or {item.nodeid, item.nodeid.partition("::")[0]} & chosen]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the findings travel with pytest's report, also from an xdist worker."""
        report = yield
        if isinstance(item, CheckItem) and call.when == "call":
            run = self.config.stash[RUN]
            ours = call.excinfo is not None and not item.findings
            findings = [_own_fault(item, str(call.excinfo.value))] if ours and call.excinfo else item.findings
            effort = run.effort()
            report.gym = {  # type: ignore[attr-defined]
                "findings": [finding.as_json() for finding in findings],
                "target": run.target(),
                "effort": [self.worker["workerid"] if self.worker else "", effort.requests, effort.seconds],
                "own_fault": ours,
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
        failed = [one for one in found["findings"] if one["verdict"] in (Verdict.FAIL, Verdict.UNTESTABLE)]
        if not failed:
            return None
        open_ones = [finding for finding in failed if not finding.get("accepted")]
        if not open_ones:
            return "accepted", "a", "ACCEPTED"
        level = open_ones[0]["level"]
        return ("warned", "w", "SHOULD") if level == "SHOULD" else ("informed", "i", "MAY")

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Remember what -k, -m or --lf left out, for the report."""
        self.tally.deselected |= {item.check.id for item in items if isinstance(item, CheckItem)}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what the server is and what was found."""
        if self.worker is None and not self.config.option.collectonly:
            write_summary(terminalreporter, self.tally, self._report())
            if self.config.getini("gym_github"):
                tell_github(terminalreporter, self._report())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what was started and write the reports, also when the run was interrupted."""
        self._started.close()
        if self.worker is not None:
            self.config.workeroutput["gym_deselected"] = sorted(self.tally.deselected)  # type: ignore[attr-defined]
        if self.worker is not None or self.config.option.collectonly:
            return
        report = self._report()
        for path in self.options.reports:
            if path.suffix != ".xml":
                write_report(path, report)
        if (new := self.options.baseline_write) and not self.tally.own_fault:
            found = [finding for check in CHECKS for finding in self.tally.found.get(check.id, ())]
            write_baseline(new, [finding for finding in found if finding.breaks(strict=self.options.strict)])
        if self.tally.own_fault:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def _report(self) -> Report:
        return self.tally.report(CHECKS, self.config.stash[BASELINE].file)

    def pytest_unconfigure(self) -> None:
        """Stop what was started also where the session never began."""
        self._started.close()


def _own_fault(item: CheckItem, message: str) -> Finding:
    check = item.check
    reason = f"gym-conformance itself failed: {message}"
    return Finding(check.id, check.level.value, check.title, Verdict.UNTESTABLE, "server", reason=reason)


def _demo_data() -> tuple[Any, ...]:
    from gym_mocks.reference import DATA  # noqa: PLC0415 - only the demo needs it

    return (DATA,)
