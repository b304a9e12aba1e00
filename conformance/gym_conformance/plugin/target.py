"""The target that is judged in one process: started for its first check, stopped after its last."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, Protocol

from gym_conformance.checks.registry import FILES
from gym_conformance.checks.tools.drift import drift_definition_unsound
from gym_conformance.contract.openapi import Api, ServerKind
from gym_conformance.dataset import BadData, Dataset, load
from gym_conformance.drift.lock import Lock
from gym_conformance.findings import Finding, Verdict
from gym_conformance.gym_under_test import Gym
from gym_conformance.judge import Judge
from gym_conformance.launch.env import Env
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.options import Options
from gym_conformance.plugin.keeping import Keeper
from gym_conformance.plugin.progress import Progress
from gym_conformance.plugin.target_run import Effort, Run, Unreachable, make_endpoint
from gym_conformance.printable import printable
from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_conformance.session.process import allow_open_files
from gym_conformance.trajectories.in_flight import HERE, Drivers
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.check import Check
from gym_conformance.trials.launched import NOT_LAUNCHED, Launched

_NOTHING = Effort(0, 0.0)
_NO_ROWS = Dataset()


@dataclass(frozen=True)
class RunningServer:
    """A target that answers, with its rows. `pid` and later fields are known if we started it."""

    url: str
    dataset: Dataset
    pid: int | None = None
    launched: Launched = NOT_LAUNCHED
    secrets: Secrets = NO_SECRETS


class JudgedTarget(Protocol):
    """What the item of a check needs from its target."""

    @property
    def name(self) -> str:
        """Its name in node ids; '' if it needs none."""

    @property
    def server(self) -> str:
        """Its name in a baseline."""

    @property
    def options(self) -> Options:
        """How to judge it."""

    def judge(self, check: Check, schedule: Schedule | None = None) -> list[Finding]:
        """Run one check, or replay one schedule of it."""

    def statistics(self, check: Check) -> str:
        """Hypothesis's statistics of a property's search; '' if there was none."""

    def travelling(self, findings: Sequence[Finding], process: str, *, own_fault: bool = False) -> dict[str, Any]:
        """The findings and the cost of one check in a process, as JSON, to be carried by pytest's report."""

    def close(self) -> None:
        """Stop what was started."""


@dataclass
class Target:
    """One target. If it cannot be launched, its first check reports that, and the others do not apply.

    Attributes:
        name: in node ids; '' if it needs none.
        option: the command-line option that names it.
        options: how to judge it.
        serve: serves it within the block; may raise `NotLaunched`.
        known: what is known for reports before it runs: `url`, or `app`.
        env: its files, if it is launched from them.
        lock: the tools to compare with.
        progress: shows what is running.
        keeper: saves files that accompany findings.
        interpreter: provides the interpreter that the env runs in.
        first_look: whether a selected check needs the answers of the untouched server.
        upcoming: the checks that will be judged in this process, as far as they are known.
        drivers: run the episodes of a load.
    """

    name: str
    option: str
    options: Options
    serve: Callable[[], AbstractContextManager[RunningServer]]
    known: Mapping[str, Any]
    env: Env | None = None
    lock: Lock | None = None
    progress: Progress | None = None
    keeper: Keeper | None = None
    interpreter: "Interpreter | None" = None
    first_look: bool = True
    upcoming: Sequence[Check] = ()
    drivers: Drivers = HERE
    _stack: ExitStack = field(default_factory=ExitStack)
    _run: Run | None = None
    _refused: NotLaunched | None = None
    _found: dict[str, Any] = field(default_factory=dict)
    _spent: Effort = _NOTHING
    _tools: Lock | None = None

    @property
    def server(self) -> str:
        """Its name in a baseline; '' if it is not launched."""
        return self.name or (self.env.name if self.env else "")

    @property
    def tried(self) -> bool:
        """Whether this process has sent the server anything."""
        return self._run is not None or self._refused is not None or bool(self._found)

    def judge(self, check: Check, schedule: Schedule | None = None) -> list[Finding]:
        """Run one check, or replay one schedule of it; the first call starts the target."""
        found = self._judge(check, schedule)
        return self.keeper.keep(found, again=schedule is not None) if self.keeper else found

    def _judge(self, check: Check, schedule: Schedule | None) -> list[Finding]:
        if check in FILES:
            return asyncio.run(self._reader().read(check))
        if check is drift_definition_unsound and self._refused and (rows := self._readable()):
            return asyncio.run(self._reader(rows).read(check))
        if self._refused is not None:
            reason = f"the server was not launched: it needs {self._refused.needs}"
            return [check.finding(Verdict.NOT_APPLICABLE, reason)]
        try:
            return self._served().judge(check, schedule)
        except NotLaunched as refused:
            self._refused = refused
            return [check.finding(Verdict.UNTESTABLE, refused.needs, log=refused.log)]

    def _served(self) -> Run:
        if self._run is None:
            allow_open_files(max((self.options.in_flight, *self.options.load)))  # a launched server inherits the limit
            try:
                served = self._stack.enter_context(self.serve())
            except NotLaunched:
                raise
            except Exception:  # raised only once: the other checks would just launch the server again
                self._refused = NotLaunched("a launch in which gym-conformance itself does not fail")
                raise
            options = replace(self.options, pid=self.options.pid or served.pid)
            known = self.lock, served.launched, served.secrets
            self._run = Run(
                served.url,
                options,
                served.dataset,
                *known,
                first_look=self.first_look,
                upcoming=self.upcoming,
                drivers=self.drivers,
                progress=self.progress,
            )
        return self._run

    def tools(self) -> Lock:
        """The current tools of rows and server.

        Raises:
            Unreachable: no resources server answers, or none can be launched.
        """
        try:
            if self._refused:
                raise self._refused
            return self._tools or self._served().tools()
        except NotLaunched as refused:
            raise Unreachable(f"it needs {refused.needs}") from None

    def statistics(self, check: Check) -> str:
        """Hypothesis's statistics of a property's search; '' if there was none."""
        return self._run.statistics(check) if self._run else ""

    def travelling(self, findings: Sequence[Finding], process: str, *, own_fault: bool = False) -> dict[str, Any]:
        """The findings and the cost of one check in a process, as JSON, to be carried by pytest's report."""
        effort = self.effort()
        return {
            "findings": [finding.as_json() for finding in findings],
            "name": self.name,
            "target": self.target(),
            "effort": [process, effort.requests, effort.seconds],
            "latency": self._run.latencies() if self._run else [],
            "own_fault": own_fault,
        }

    def _readable(self) -> Dataset | None:
        """The rows of a target that is not launched, if they declare tools."""
        try:
            data = load(self.options.data or (self.env.data if self.env else ()), recorded=False)
        except BadData:
            return None
        return data if data.definitions else None

    def _reader(self, data: Dataset = _NO_ROWS) -> Judge:
        """A judge that only reads files, without a server."""
        endpoint = make_endpoint("http://127.0.0.1", self.options)
        gym = Gym(endpoint, Api(), ServerKind.OTHER, "nothing is sent", data.rows, declared=data.definitions)
        own = Interpreter(self.env, self.options) if self.env else str
        return Judge(Bench(gym, launched=Launched(self.env, self.interpreter or own)))

    def target(self) -> dict[str, Any]:
        """The report's `target`, as far as it is known."""
        if self._run:
            self._found = self._run.target()
        facts = {"url": self.option, "rows": 0, **self._found, **self.known}
        return {name: printable(fact, 1_000) if isinstance(fact, str) else fact for name, fact in facts.items()}

    def effort(self) -> Effort:
        """What this process has spent so far."""
        now = self._run.effort() if self._run else _NOTHING
        return Effort(self._spent.requests + now.requests, self._spent.seconds + now.seconds)

    def close(self) -> None:
        """Stop what was started; another check would start it again."""
        if self._run:
            self._found, self._spent = self._run.target(), self.effort()
            if self.options.lock_update:
                with suppress(Unreachable):  # `tools` raises it again
                    self._tools = self._run.tools()
            self._run.close()
            self._run = None
        self._stack.close()


@dataclass
class Interpreter:
    """The interpreter that an env runs in, installed on first use if it is to be installed.

    Attributes:
        env: the env.
        options: whether and how to install.
        say: prints messages about what takes time.
    """

    env: Env
    options: Options
    say: Callable[[str], None] = lambda _: None
    _found: str = ""
    _refused: NotLaunched | None = None

    def __call__(self) -> str:
        """The interpreter.

        Raises:
            NotLaunched: the env's requirements cannot be installed.
        """
        if self._refused:
            raise self._refused
        if not self._found:
            try:
                self._found = self._find()
            except NotLaunched as refused:
                self._refused = refused
                raise
        return self._found

    def of(self, env: Env) -> str:
        """The interpreter of another env, found in the same way.

        Raises:
            NotLaunched: its requirements cannot be installed.
        """
        return Interpreter(env, self.options, self.say)()

    def _find(self) -> str:
        options = self.options
        if not options.install:
            return self.env.interpreter(options.python)
        from gym_conformance.launch.venv_cache import interpreter  # noqa: PLC0415 - it imports an extra

        return interpreter(self.env, options.python, options.nemo, self.say)


def running_target(url: str, dataset: Dataset, options: Options) -> Target:
    """A server that is already running; `options.url` is None for the demo."""
    option = f"--gym-url {quote(url)}" if options.url else "--gym-demo"
    served = RunningServer(url, dataset)
    return Target("", option, options, lambda: nullcontext(served), {"url": url, "rows": dataset.read})
