"""What trainers start their gym by: nemo-gym's `RunHelper`, with a mock gym behind it."""

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from gym_mocks.addresses import LOOPBACK
from gym_mocks.gym import MockGym
from gym_mocks.head import load_config, merged, to_yaml
from gym_mocks.policy import FakePolicy
from gym_mocks.resources import ResourcesServer, last_text
from gym_mocks.wire import HttpReply, HttpRequest, json_body
from gym_mocks.wire.app import Handler
from gym_mocks.wire.client import ASGIApp

HEAD_PORT = 11_000  # nemo-gym's own, where its configuration names none
PATHS = "config_paths"
KEPT_CONFIG = "_GLOBAL_CONFIG_DICT"  # of nemo_gym/global_config.py, in every version so far


class AnyTools(ResourcesServer):
    """A resources server in the place of any other: it takes any row and any call of a tool.

    A rollout that ends in some text is worth 1.0, any other 0.0.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            verify=lambda response: float(bool(last_text(response["output"]).strip())),
            reverify_mode="stateless",
        )

    def find(self, request: HttpRequest) -> Handler:
        """The handler of a request; whatever the contract does not name is a tool."""
        known = any(path == request.path for _, path in self.handlers)
        return super().find(request) if known or request.method != "POST" else self._any_tool

    async def _any_tool(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json({"called": request.path.removeprefix("/"), "arguments": json_body(request)})


class RunHelper:
    """In the place of `nemo_gym.cli.RunHelper`: `start` serves a mock gym instead of processes, Ray and models.

    The head listens at the host and port of `head_server`, the other servers at `default_host`. The `config_paths` are
    read as nemo-gym reads them: their agents are played by mock agents, their models are the policy, and their
    resources servers are `AnyTools`, unless `resources` has one of that name. A test sets these on a subclass, as the
    fixture `mock_run_helper` does.

    Reference: nemo_gym/cli/env.py and global_config.py, 0.7.0. The command line is not read.

    Attributes:
        policy: what every model server answers with.
        resources: resources servers by name.
        options: further options of the gyms, such as `head_after` and `seed`.
        gyms: the gyms that were started.
        gym: the gym of this helper; None before its start and after its end.
    """

    policy: ClassVar[FakePolicy | None] = None
    resources: ClassVar[dict[str, ASGIApp]] = {}
    options: ClassVar[dict[str, Any]] = {}
    gyms: ClassVar[list[MockGym]] = []

    def __init__(self) -> None:
        self.gym: MockGym | None = None

    def start(self, global_config_dict_parser_config: Any) -> None:
        """Serve a gym of this configuration; it answers when this returns.

        Args:
            global_config_dict_parser_config: nemo-gym's own, or the global configuration as a mapping.

        Raises:
            ValueError: a configuration that cannot be used.
            OSError: a file that cannot be read, or a port that is taken.
        """
        config = read_global_config(global_config_dict_parser_config)
        head = config.get("head_server") or {}
        host = str(config.get("default_host") or LOOPBACK)
        gym = MockGym(
            policy=self.policy or FakePolicy(token_fields=True),
            host=host,
            head_host=str(head.get("host") or host),
            head_port=int(head.get("port") or HEAD_PORT),
            **self.options,
        )
        try:
            for name, app in self.resources.items():
                gym.add_resources(name, app)
            gym.add_servers(config, stand_in=AnyTools)
        except BaseException:
            gym.close()
            raise
        self.gym = gym
        self.gyms.append(gym)
        tell_nemo_gym(gym.own_config)

    def poll(self) -> None:
        """Nothing, while all servers run.

        Raises:
            RuntimeError: one has ended.
        """
        if self.gym is None:
            raise RuntimeError("Head server finished unexpectedly!")
        for name in self.gym.dead:
            raise RuntimeError(f"Process `{name}` finished unexpectedly!")

    def shutdown(self) -> None:
        """Stop the gym; twice does nothing."""
        gym, self.gym = self.gym, None
        if gym is not None:
            tell_nemo_gym(None)
            gym.close()


def tell_nemo_gym(config: Mapping[str, Any] | None) -> None:
    """Let `get_global_config_dict` of this process return a configuration; None for none.

    nemo-gym's own `RunHelper` leaves it there, where trainers look it up (OpenRLHF's executor does), and where its clients
    find the head.
    """
    module = sys.modules.get("nemo_gym.global_config")
    if module is not None and hasattr(module, KEPT_CONFIG):
        from omegaconf import OmegaConf  # noqa: PLC0415 - nemo-gym needs it

        setattr(module, KEPT_CONFIG, None if config is None else OmegaConf.create(to_yaml(config)))


def read_global_config(given: Any) -> dict[str, Any]:
    """The global configuration that nemo-gym would make of a parser's configuration, interpolations unresolved.

    Raises:
        ValueError: a file or value that is no configuration.
        OSError: a file cannot be read.
    """
    initial = _plain(given if isinstance(given, Mapping) else getattr(given, "initial_global_config_dict", None))
    dotenv = {} if isinstance(given, Mapping) else _dotenv(given)
    paths = merged(dotenv, initial).get(PATHS) or []
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"{PATHS} must be a list of paths, not {paths!r}")
    files: dict[str, Any] = {}
    for path in paths:
        files = merged(files, _with_its_own(path, ()))
    return merged(merged(files, dotenv), initial)


def _with_its_own(path: str, outer: tuple[str, ...]) -> dict[str, Any]:
    """A file over those that it names itself."""
    config = load_config(_found(path))
    inner: dict[str, Any] = {}
    for each in config.get(PATHS) or []:
        if each not in (*outer, path):
            inner = merged(inner, _with_its_own(str(each), (*outer, path)))
    return merged(inner, {key: value for key, value in config.items() if key != PATHS})


def _found(path: str) -> Path:
    """Where a path leads: from here, or from where nemo-gym is installed."""
    spec = find_spec("nemo_gym")
    installed = [Path(spec.origin).parents[1] / path] if spec is not None and spec.origin else []
    return next((each for each in (Path(path), *installed) if each.exists()), Path(path))


def _dotenv(given: Any) -> dict[str, Any]:
    path = Path(getattr(given, "dotenv_path", None) or "env.yaml")
    skipped = getattr(given, "skip_load_from_dotenv", False)
    return {} if skipped or not path.exists() else load_config(path)


def _plain(value: Any) -> dict[str, Any]:
    """A configuration of OmegaConf's, or any mapping, as dicts and lists."""
    if value is None:
        return {}
    if type(value).__module__.startswith("omegaconf"):
        from omegaconf import OmegaConf  # noqa: PLC0415 - whoever has such a value has it

        value = OmegaConf.to_container(value, resolve=False)
    if not isinstance(value, Mapping):
        raise ValueError(f"a global configuration is a mapping, not {type(value).__name__}")  # noqa: TRY004
    plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    return plain
