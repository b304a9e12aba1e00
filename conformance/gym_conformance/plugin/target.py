"""What is judged in one process: served when its first check runs, stopped after its last."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Protocol

from gym_conformance.checks.bench import Bench
from gym_conformance.checks.check import Check
from gym_conformance.checks.drift import drift_definition_unsound
from gym_conformance.checks.launched import FakeModel, JudgeModels, Launched
from gym_conformance.checks.registry import FILES
from gym_conformance.contract.openapi import Api, ServerKind
from gym_conformance.dataset import BadData, Dataset, load
from gym_conformance.drift.lock import Lock
from gym_conformance.findings import Finding, Verdict
from gym_conformance.gym import Gym
from gym_conformance.judge import Judge
from gym_conformance.launch.env import Env
from gym_conformance.launch.launched_server import Launch, LaunchedServer, NotLaunched, PeerAddresses
from gym_conformance.options import Options
from gym_conformance.plugin.locking import write_lock
from gym_conformance.plugin.progress import Progress
from gym_conformance.plugin.resuming import Earlier
from gym_conformance.plugin.run import Effort, Run, Unreachable, ensure_reachable, make_endpoint
from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_conformance.reports.repo_paths import relative
from gym_conformance.trajectories.trajectory import Schedule

_NOTHING = Effort(0, 0.0)
_NO_ROWS = Dataset()

#: Lines of a log in which the cause of a crash is looked for: nemo-gym prints a traceback twice.
_SEEN = 400


@dataclass(frozen=True)
class Served:
    """A target that answers, with its rows. `pid`, `judge_models`, `log` and `secrets` are known where we started it."""

    url: str
    dataset: Dataset
    pid: int | None = None
    judge_models: JudgeModels | None = None
    log: Callable[[], Sequence[str]] = tuple
    secrets: Secrets = NO_SECRETS


@dataclass
class Target:
    """One target. Where it cannot be launched, its first check says so, and the others do not apply.

    Attributes:
        name: in node ids; '' for the only one.
        option: how the command line names it.
        options: how to judge it.
        serve: serves it for as long as the block lasts; may raise `NotLaunched`.
        known: what reports say of it beforehand: `url`, or `app`.
        env: its files, where it is launched from them.
        lock: the tools that it is held to.
        lock_file: where its tools are to be written when it is stopped; None where they are not.
        locked: what was written there.
        unwritten: why nothing was.
        progress: shows what is under way.
        earlier: what an earlier run found; where it is given, nothing is judged again.
    """

    name: str
    option: str
    options: Options
    serve: Callable[[], AbstractContextManager[Served]]
    known: Mapping[str, Any]
    env: Env | None = None
    lock: Lock | None = None
    lock_file: Path | None = None
    locked: str = ""
    unwritten: str = ""
    progress: Progress | None = None
    earlier: Earlier | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _run: Run | None = None
    _refused: NotLaunched | None = None
    _found: dict[str, Any] = field(default_factory=dict)
    _spent: Effort = _NOTHING
    _tools: Lock | None = None
    _recalled: bool = False

    @property
    def server(self) -> str:
        """How a baseline names it: as node ids do where there are several; '' where it is not launched."""
        return self.name or (self.env.name if self.env else "")

    def judge(self, check: Check, schedule: Schedule | None = None) -> list[Finding]:
        """Run one check, or replay one schedule of it; the first call serves the target."""
        if check in FILES:
            return asyncio.run(self._reader().read(check))
        if check is drift_definition_unsound and self._refused and (rows := self._readable()):
            return asyncio.run(self._reader(rows).read(check))
        if self._refused is not None:
            reason = f"the server is not launched: it needs {self._refused.needs}"
            return [check.finding(Verdict.NOT_APPLICABLE, reason)]
        try:
            return self._served().judge(check, schedule)
        except NotLaunched as refused:
            self._refused = refused
            self._not_locked(f"it needs {refused.needs}")
            return [check.finding(Verdict.UNTESTABLE, refused.needs, log=refused.log)]

    def recall(self, check: Check) -> list[Finding] | None:
        """What an earlier run found, where there is one that is not to be done again."""
        return None if self.earlier is None else self.earlier.findings[check.id]

    def _served(self) -> Run:
        if self._run is None:
            try:
                served = self._stack.enter_context(self.serve())
            except NotLaunched:
                raise
            except Exception:  # it is raised once: the other checks would only launch the server again
                self._refused = NotLaunched("a launch in which gym-conformance itself does not fail")
                raise
            options = replace(self.options, pid=self.options.pid or served.pid)
            self._run = Run(
                served.url,
                options,
                served.dataset,
                self.lock,
                judge_models=served.judge_models,
                log=served.log,
                secrets=served.secrets,
            )
            self._run.progress = self.progress
        return self._run

    def tools(self) -> Lock:
        """The tools of rows and server as they are now.

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
        """Hypothesis's own account of a property's search; '' where there was none."""
        return self._run.statistics(check) if self._run else ""

    def latencies(self) -> list[list[Any]]:
        """How long good replies took since this was last asked, as `Run.latencies` has them."""
        if self.earlier and not self._recalled:
            self._recalled = True
            return self.earlier.latency
        return self._run.latencies() if self._run else []

    def _readable(self) -> Dataset | None:
        """The rows of a target that is not launched, where they declare tools."""
        try:
            data = load(self.options.data or (self.env.data if self.env else ()), recorded=False)
        except BadData:
            return None
        return data if data.definitions else None

    def _reader(self, data: Dataset = _NO_ROWS) -> Judge:
        """A judge of files, who knows no server."""
        endpoint = make_endpoint("http://127.0.0.1", self.options)
        gym = Gym(endpoint, Api(), ServerKind.OTHER, "nothing is sent", data.rows, declared=data.definitions)
        python = self.env.interpreter(self.options.python) if self.env else ""
        return Judge(Bench(gym, launched=Launched(self.env, python)))

    def target(self) -> dict[str, Any]:
        """The report's `target`, as far as it is known."""
        if self._run:
            self._found = self._run.target()
        if self.earlier:
            return dict(self.earlier.target)
        return {"url": self.option, "rows": 0, **self._found, **self.known}

    def effort(self) -> Effort:
        """What was spent so far in this process."""
        if self.earlier:
            return Effort(self.earlier.requests, self.earlier.seconds)
        now = self._run.effort() if self._run else _NOTHING
        return Effort(self._spent.requests + now.requests, self._spent.seconds + now.seconds)

    def close(self) -> None:
        """Stop what was started; a further check would start it again."""
        if self._run:
            self._found, self._spent = self._run.target(), self.effort()
            if self.options.lock_update:
                self._lock(self.lock_file)
            self._run.close()
            self._run = None
        self._stack.close()

    def _lock(self, path: Path | None) -> None:
        try:
            self._tools = self.tools()
            self.locked = write_lock(path, self._tools) if path else ""
        except (OSError, Unreachable) as error:
            self._not_locked(str(error.strerror if isinstance(error, OSError) else error))

    def _not_locked(self, why: str) -> None:
        self.unwritten = f"--gym-lock {str(self.lock_file)!r}: {why}; it was not written" if self.lock_file else ""


@dataclass
class launched:  # noqa: N801 - a context manager
    """Serve what is launched: `server` is not started yet; the mocks are told its config.

    Raises on entry:
        NotLaunched: it does not answer within the deadline, or its rows cannot be read.
    """

    server: LaunchedServer
    options: Options
    mocks: "Mocks"

    def __enter__(self) -> Served:
        launch = self.server.launch
        dataset = self._rows(launch.env.data)
        self.server.start()
        try:
            self.mocks.tell_head(self.server.config)
            try:
                ensure_reachable(self.server.url, self.options, launch.deadline)
            except Unreachable as silent:
                raise self.server.refused(str(silent)) from None
        except BaseException:
            self.server.close()
            raise
        judge_models = JudgeModels(launch.models, self.mocks)
        return Served(
            self.server.url,
            dataset,
            self.server.pid,
            judge_models,
            partial(self.server.log, _SEEN),
            self.server.secrets,
        )

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def _rows(self, found: tuple[Path, ...]) -> Dataset:
        """What the user gave, else what was found; of that, rollouts that cannot be read are env-rollouts' finding."""
        given = self.options.data
        try:
            try:
                return load(given or found) if given or found else Dataset()
            except BadData:
                if given:
                    raise
                return load(found, recorded=False)
        except BadData as bad:
            raise NotLaunched(f"rows that can be read: {bad}") from None


def travelling(target: Target, findings: Sequence[Finding], process: str, *, own_fault: bool = False) -> dict[str, Any]:
    """What one check found and cost in a process, as it travels with pytest's report: JSON."""
    effort = target.effort()
    return {
        "findings": [finding.as_json() for finding in findings],
        "name": target.name,
        "target": target.target(),
        "effort": [process, effort.requests, effort.seconds],
        "latency": target.latencies(),
        "earlier": target.earlier is not None,
        "own_fault": own_fault,
    }


def names_of(options: Options) -> tuple[str, ...]:
    """The targets' names, as node ids have them; one target alone needs none."""
    return tuple(env.name for env in options.envs) if len(options.envs) > 1 else ("",)


def running_target(url: str, dataset: Dataset, options: Options) -> Target:
    """A server that runs already; `options.url` is None for the demo."""
    option = f"--gym-url {quote(url)}" if options.url else "--gym-demo"
    served = Served(url, dataset)
    return Target("", option, options, lambda: nullcontext(served), {"url": url, "rows": dataset.read})


def launched_targets(each: Sequence[Options], peers: "Mocks") -> list[Target]:
    """A target for each env, not launched yet."""
    return [_launched(one.envs[0].name if len(each) > 1 else "", one.envs[0], one, peers) for one in each]


def _launched(name: str, env: Env, options: Options, peers: "Mocks") -> Target:
    def serve() -> launched:
        launch = Launch(env, peers.addresses, options.python, options.settings, options.launch_timeout, options.real)
        return launched(LaunchedServer(launch), options, peers)

    shown = relative(str(env.folder), Path.cwd()) or "."
    given = env.application or shown
    known = {"url": given} | ({"app": str(env.app)} if env.app else {})
    return Target(name, f"--gym-env {quote(given)}", options, serve, known, env)


class Mocks(FakeModel, Protocol):
    """What stands beside launched servers: a model, where it is, and whom to tell of a server's config."""

    @property
    def addresses(self) -> PeerAddresses:
        """Head and policy."""

    def tell_head(self, config: Mapping[str, Any]) -> None:
        """Let the head tell of this config."""
