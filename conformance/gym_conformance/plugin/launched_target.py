"""A target launched from an env's files: its server, with the mocks that it uses, while it is judged."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote

from gym_conformance.dataset import BadData, Dataset, load
from gym_conformance.launch.env import BadConfig, Env
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.specification import Launch
from gym_conformance.launch.venv_recipe import left_out
from gym_conformance.options import LOCAL, Options
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.plugin.target import Interpreter, RunningServer, Target
from gym_conformance.plugin.target_run import Unreachable, ensure_reachable
from gym_conformance.reports.repo_paths import relative
from gym_conformance.trials.launched import JudgeModels, Launched

#: Lines of the log to search for the cause of a crash: nemo-gym prints a traceback twice.
_SEEN = 400


@dataclass
class launched:  # noqa: N801 - a context manager
    """Launch a server in the interpreter that `interpreter` returns; the mocks learn its config.

    Raises on entry:
        NotLaunched: it does not answer within the deadline, its YAML or its rows cannot be read, or its interpreter
            cannot be provided. Files are read first, because making an environment may take minutes.
    """

    launch: Launch
    interpreter: Interpreter
    options: Options
    mocks: MockPeers
    server: LaunchedServer = field(init=False)

    def __enter__(self) -> RunningServer:
        try:
            models, asked = self.launch.models, self.launch.asked
        except BadConfig as bad:
            raise NotLaunched(str(bad)) from None
        dataset = self._rows(self.launch.env.data)
        python = self.interpreter()
        self.server = LaunchedServer(replace(self.launch, python=python, pythons=dict(self._pythons(asked))))
        self.mocks.forget()
        self.server.start()
        try:
            self.mocks.tell_head(self.server.config)
            _ensure_answers(self.server, self.options)
        except BaseException:
            self.server.close()
            raise
        launch = self.launch
        known = Launched(
            judge_models=JudgeModels(models, self.mocks),
            workers=launch.workers,
            listen=partial(self.server.listen, _SEEN),
            relaunch=Relaunching(self.server, self.options),
            outside=None if launch.network or launch.real else self.mocks,
            made_up=self.server.made_up,
            refused=self.server.not_accepted,
            left_out=left_out(self.server.launch.interpreter) or (),
            sandboxes=None if launch.local_sandbox or launch.real else self.mocks,
        )
        return RunningServer(self.server.url, dataset, self.server.pid, known, self.server.secrets)

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def _pythons(self, asked: Sequence[Env]) -> Iterator[tuple[str, str]]:
        """The interpreters of the servers that it calls, directly or not, by name; existing ones first.

        Raises:
            NotLaunched: the requirements of one cannot be installed.
        """
        waiting, found = list(asked), set[str]()
        while waiting:
            env = waiting.pop()
            if env.server not in found:
                found.add(env.server)
                with suppress(BadConfig):  # its launch reports that
                    waiting += env.asked()
                if env.python or self.options.install:
                    yield env.server, self.interpreter.of(env)

    def _rows(self, found: tuple[Path, ...]) -> Dataset:
        """The rows that the user gave, else those found; rollouts found but unreadable are left to env-rollouts."""
        given = self.options.data
        try:
            try:
                return load(given or found) if given or found else Dataset()
            except BadData:
                if given:
                    raise
                return load(found, recorded=False)
        except BadData as bad:
            raise NotLaunched(f"readable rows: {bad}") from None


@dataclass(frozen=True)
class Relaunching:
    """Relaunches a launched server (`trials.launched.Relaunch`)."""

    server: LaunchedServer
    options: Options

    @property
    def seconds(self) -> float:
        """How long the launch took."""
        return self.server.seconds

    def restart(self) -> None:
        """Stop the process, and start it again at the same address.

        Raises:
            NotLaunched: it does not start again.
        """
        self.server.restart()
        _ensure_answers(self.server, self.options)

    @contextmanager
    def another(self) -> Iterator[str]:
        """The URL of a second process, beside the first.

        Raises:
            NotLaunched: it does not start.
        """
        with self.server.another() as fresh:
            _ensure_answers(fresh, self.options)
            yield fresh.url


def _ensure_answers(server: LaunchedServer, options: Options) -> None:
    try:
        ensure_reachable(server.url, options, server.launch.deadline)
    except Unreachable as silent:
        raise server.refused(str(silent)) from None


def launched_target(name: str, options: Options, peers: MockPeers) -> Target:
    """The one env of these options, not yet launched."""
    [env] = options.envs
    interpreter = Interpreter(env, options)

    def serve() -> launched:
        launch = Launch(
            env,
            peers.addresses,
            settings=options.settings,
            deadline=options.launch_timeout,
            real=options.real,
            workers=options.workers,
            network=options.network,
            local_sandbox=options.sandbox == LOCAL,
        )
        return launched(launch, interpreter, options, peers)

    place = relative(str(env.place), Path.cwd()) or "."
    if env.application:
        given = env.application if place == "." else f"{place}/{env.application}"
    else:
        given = f"{place}:{env.server}" if env.server else place
    known = {"url": env.name if given == "." else given} | ({"app": str(env.app)} if env.app else {})
    return Target(name, f"--gym-env {quote(given)}", options, serve, known, env, interpreter=interpreter)
