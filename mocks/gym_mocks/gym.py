"""A whole NeMo Gym in one process: head, resources servers, agents and policies on one event loop."""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import time
from typing import Any, Self
from urllib.parse import urlsplit

from gym_mocks.addresses import LOOPBACK
from gym_mocks.agent import MockAgent
from gym_mocks.agent.peers import Peers
from gym_mocks.composition import Declared, Registered, compose, declared
from gym_mocks.head import Head, load_config, merged, to_yaml
from gym_mocks.head.mock_head import ServerType
from gym_mocks.policy import FakePolicy
from gym_mocks.policy.fake_policy import ROLLOUT_PREFIX
from gym_mocks.policy.tokens import TokensBy
from gym_mocks.resources import ResourcesServer
from gym_mocks.rollout_faults import RUN, FaultyServer, RolloutFault, RolloutFaults
from gym_mocks.serving import Host
from gym_mocks.wire import App, HttpRefusal, HttpRequest
from gym_mocks.wire.app import Receive, Scope, Send
from gym_mocks.wire.client import ASGIApp, LocalClient

POLICY = "policy_model"  # the name that nemo-gym's own agent configurations call the policy by

RunnableRow = dict[str, Any]


class MockGym:
    """A gym on loopback, which runs from its creation until `close`, or to the end of a `with` block.

    Servers may be added while it runs; the head then lists them too. Two gyms share nothing.

    Attributes:
        policy: the policy that agents ask by default.
        rows: the rows of its environments, each with the `agent_ref` that clients need.
        head_url: the head's base URL, without a trailing slash.
        host: where its servers listen.
        faults: faults of rollouts; see `fail`.
        dead: the names of the agents that have died.

    Args:
        token_fields: whether the policy's replies have the token fields that trainers read.
        tokens: what makes the policy's tokens; see `FakePolicy`.
        policy: the policy itself, instead of `token_fields` and `tokens`.
        host: the address that its servers listen on; loopback by default.
        head_host: the address that its head listens on, if another.
        head_port: the head's port; 0 for any free one.
        head_after: seconds for which the head refuses connections.
        seed: for the random choices of rollouts' faults.

    Raises:
        ValueError: `tokens` that cannot be used.
        OSError: it cannot listen there.
    """

    def __init__(
        self,
        *,
        token_fields: bool = False,
        tokens: TokensBy | None = None,
        policy: FakePolicy | None = None,
        host: str = LOOPBACK,
        head_host: str = "",
        head_port: int = 0,
        head_after: float = 0,
        seed: int = 0,
    ) -> None:
        self.policy = policy or FakePolicy(token_fields=token_fields, tokens=tokens)
        self.host = host
        self.rows: list[RunnableRow] = []
        self.faults = RolloutFaults(seed)
        self.dead: list[str] = []
        self._client = LocalClient()
        self._files: dict[str, Any] = {}
        self._registered: dict[str, Registered] = {}
        self._temporary: list[Path] = []
        self._head = Head({})
        self._host = Host()
        try:
            self.head_url = self._host.serve(self._head, port=head_port, host=head_host or host, after=head_after)
            self.add_policy(POLICY, self.policy)
        except BaseException:
            self.close()
            raise

    @property
    def config(self) -> dict[str, Any]:
        """The global configuration as the head sends it, without the secrets of the files that it was made from."""
        return self._head.shown

    @property
    def own_config(self) -> Mapping[str, Any]:
        """The global configuration with its secrets, as the process that starts a gym has it."""
        return self._head.config

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its servers, in the order in which they were added."""
        return tuple(self._registered)

    def url(self, name: str) -> str:
        """The base URL of a server.

        Raises:
            ValueError: the gym has no server of that name.
        """
        return self._server(name).url

    def app(self, name: str) -> ASGIApp:
        """The application of a server.

        Raises:
            ValueError: the gym has no server of that name.
        """
        return self._server(name).app

    def add_env(self, server: ResourcesServer, rows: Iterable[Mapping[str, Any]]) -> list[RunnableRow]:
        """Serve a resources server and its agent, `{name}_simple_agent`; returns the rows, ready to run.

        Raises:
            TypeError: it is another application, which `add_resources` takes.
        """
        if not isinstance(server, ResourcesServer):
            raise TypeError(f"a ResourcesServer and its rows are expected: not {server!r:.80}")
        self.add_resources(server.name, server)
        agent = f"{server.name}_simple_agent"
        self.add_agent(agent, resources=server.name)
        added = [{**row, "agent_ref": {"type": "responses_api_agents", "name": agent}} for row in rows]
        self.rows += added
        return added

    def add_resources(self, name: str, app: ASGIApp) -> str:
        """Serve a resources server, ours or any ASGI application; returns its base URL."""
        return self._add(name, "resources_servers", name, app)

    def add_policy(self, name: str, policy: FakePolicy) -> FakePolicy:
        """Serve a policy under a name that agents can be given."""
        self.add_model(name, policy)
        return policy

    def add_model(self, name: str, app: ASGIApp) -> str:
        """Serve a model server, ours or any ASGI application; returns its base URL."""
        return self._add(name, "responses_api_models", "mock_model", app)

    def add_agent(
        self,
        name: str,
        *,
        resources: str,
        model: str = POLICY,
        max_steps: int | None = None,
        app: ASGIApp | None = None,
        port: int = 0,
    ) -> str:
        """Serve an agent between a resources server and a policy; returns its base URL.

        Args:
            name: the agent's name.
            resources: the resources server's.
            model: the policy's.
            max_steps: see `MockAgent`.
            app: another agent instead of the mock agent, such as nemo-gym's own (`gym_mocks.nemo`).
            port: 0 for any that is free.
        """
        peers = Peers(self._client, self.url(resources), self.url(model))
        refs = {
            "resources_server": {"type": "resources_servers", "name": resources},
            "model_server": {"type": "responses_api_models", "name": model},
        }
        agent = app or MockAgent(name, peers, max_steps=max_steps)
        return self._add(name, "responses_api_agents", "simple_agent", agent, refs, port=port)

    def add_environment_server(self, name: str, app: ASGIApp, *, agent: str, resources: str) -> str:
        """Serve an environment server of nemo-gym 0.7.0 in front of an agent; returns its base URL.

        Without one, the head names the agent's own address instead, so clients call the agent's `/run`.
        """
        refs = {
            "agent_server": {"type": "responses_api_agents", "name": agent},
            "resources_server": {"type": "resources_servers", "name": resources},
        }
        return self._add(name, "environment_servers", "single_agent_turn", app, refs)

    def add_config(self, path: Path | str, *, stand_in: Callable[[str], ASGIApp] | None = None) -> None:
        """Add the servers of an env's own `configs/*.yaml`, as `add_servers` does.

        Raises:
            ValueError: the file is no configuration, or an agent needs a server that is not there.
            OSError: the file cannot be read.
        """
        config = load_config(Path(path))
        try:
            self.add_servers(config, stand_in=stand_in)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def add_servers(self, config: Mapping[str, Any], *, stand_in: Callable[[str], ASGIApp] | None = None) -> None:
        """Add the servers of a global configuration.

        Its agents are served by mock agents and its models by this gym's policy, unless servers of their
        names are there already. Its resources servers must have been added.

        Args:
            config: by server name, as nemo-gym's.
            stand_in: makes what is served instead of a resources server that has not been added.

        Raises:
            ValueError: an agent is of no known form, or needs a server that is not there.
            OSError: a port that it names is taken.
        """
        for server in declared(config, "responses_api_models"):
            if server.name not in self._registered:
                self._add(server.name, "responses_api_models", "mock_model", self.policy, port=server.port)
        for server in declared(config, "resources_servers") if stand_in else ():
            if stand_in and server.name not in self._registered:
                self._add(server.name, "resources_servers", "mock", stand_in(server.name), port=server.port)
        for server in declared(config, "responses_api_agents"):
            if server.name not in self._registered:
                self._take_up_agent(server, stand_in)
        self._files = merged(self._files, config)
        self._tell_head()

    def _take_up_agent(self, server: Declared, stand_in: Callable[[str], ASGIApp] | None) -> None:
        resources, model = server.reference("resources_server"), server.reference("model_server")
        if stand_in is not None:
            model = model if model in self._registered else POLICY
            resources = resources or f"{server.name}_resources"
            if resources not in self._registered:
                self.add_resources(resources, stand_in(resources))
        if not (resources and model):
            missing = "model_server" if resources else "resources_server"
            raise ValueError(f"agent {server.name}: {missing} must be a mapping with the name of a server")
        if resources not in self._registered:
            raise ValueError(f"no server is named {resources!r}; add it first: add_resources({resources!r}, app)")
        self.add_agent(server.name, resources=resources, model=model, max_steps=server.max_steps, port=server.port)

    def fail(self, fault: RolloutFault) -> None:
        """Let a fault happen to rollouts, or to requests to resources servers, from now on.

        Raises:
            ValueError: its server is none of this gym's, or its path none of the resources servers', so that it could never happen.
            TypeError: it is a policy's, which `gym.policy.fail` takes.
        """
        if not isinstance(fault, RolloutFault):
            raise TypeError(f"a RolloutFault is expected; a PolicyFault is for policy.fail: not {fault!r:.80}")
        self._ensure_named(fault)
        if fault.path != RUN:
            self._ensure_served(fault)
        self.faults.add(fault)
        if fault.path != RUN:
            for server in self._registered.values():
                self._call_directly(server.name, server.kind, server.app, server.url)

    def _ensure_named(self, fault: RolloutFault) -> None:
        kind, called = (
            ("responses_api_agents", "agent") if fault.path == RUN else ("resources_servers", "resources server")
        )
        names = sorted(server.name for server in self._registered.values() if server.kind == kind)
        if fault.agent not in {None, *names}:
            there = f"; there are {', '.join(names)}" if names else ", since there is none yet"
            raise ValueError(f"RolloutFault: agent={fault.agent!r} is no {called} of this gym{there}")

    def _ensure_served(self, fault: RolloutFault) -> None:
        apps = [
            server.app
            for server in self._registered.values()
            if server.kind == "resources_servers" and fault.agent in {None, server.name}
        ]
        ours = [app for app in apps if isinstance(app, App)]  # of another application nobody knows its routes
        if ours and len(ours) == len(apps) and not any(_serves(app, fault.path) for app in ours):
            served = sorted({path for app in ours for method, path in app.handlers if method == "POST"})
            raise ValueError(
                f"RolloutFault: path={fault.path!r} is served by no resources server; {', '.join(served)} are"
            )

    def write_config(self, path: Path | None = None) -> Path:
        """Write the configuration as YAML, secrets included; without a path, to a temporary file that `close` removes."""
        if path is None:
            number, name = tempfile.mkstemp(prefix="gym-mocks-", suffix=".yaml")
            os.close(number)
            path = Path(name)
            self._temporary.append(path)
        path.write_text(to_yaml(self.own_config), encoding="utf-8")
        return path

    def close(self) -> None:
        """Stop all servers and remove temporary files; closing twice does nothing."""
        for path in self._temporary:
            path.unlink(missing_ok=True)
        self._temporary.clear()
        self._host.close(last=self._client.close)

    def __enter__(self) -> Self:
        self._host.ensure_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _server(self, name: str) -> Registered:
        if name not in self._registered:
            raise ValueError(f"no server is named {name!r}; there are {', '.join(sorted(self._registered))}")
        return self._registered[name]

    def _add(
        self,
        name: str,
        kind: ServerType,
        inner: str,
        app: ASGIApp,
        fields: Mapping[str, Any] | None = None,
        *,
        port: int = 0,
    ) -> str:
        if name in self._registered:
            raise ValueError(f"a server is named {name!r} already")
        same = (there.url for there in self._registered.values() if there.app is app)
        url = next(same, None) or self._serve(name, kind, app, port)
        self._call_directly(name, kind, app, url)
        self._registered[name] = Registered(name, kind, inner, url, app, fields or {}, time())
        self._tell_head()
        return url

    def _call_directly(self, name: str, kind: ServerType, app: ASGIApp, url: str) -> None:
        """Let servers of this gym call one without a socket, and through its faults only if it has any, since they cost time."""
        if kind == "resources_servers" and self.faults.of_resources:
            app = FaultyServer(name, app, self.faults, _broken, self._end, agents=False)
        if name not in self.dead:
            self._client.apps[url] = app

    def _serve(self, name: str, kind: ServerType, app: ASGIApp, port: int) -> str:
        served: ASGIApp = app
        if kind in {"responses_api_agents", "resources_servers"}:
            agents = kind == "responses_api_agents"
            inner = app if agents or not isinstance(app, App) else _below_rollouts(app)
            served = FaultyServer(
                name, inner, self.faults, lambda scope: self._drop(name, scope), self._end, agents=agents
            )
        url = self._host.serve(served, host=self.host, port=port)
        if isinstance(app, App):
            app.url = url
        return url

    def _drop(self, name: str, scope: Mapping[str, Any]) -> None:
        self._host.drop(self.url(name), scope["client"])

    async def _end(self, name: str) -> None:
        if name not in self.dead:
            self.dead.append(name)
            self._client.apps.pop(self.url(name), None)
            await self._host.end(self.url(name))

    def _tell_head(self) -> None:
        parts = urlsplit(self.head_url)
        head = {"head_server": {"host": parts.hostname, "port": parts.port}}
        model = self._registered.get(POLICY)
        policy = {
            "policy_base_url": f"{model.url}/v1" if model else "",
            "policy_api_key": "mock",
            "policy_model_name": "mock",
        }
        config, self._head.instances = compose(self._files, self._registered.values())
        self._head.config = policy | config | head  # a file's own address of a head is another's


def _below_rollouts(app: App) -> ASGIApp:
    """An application whose paths may begin with the rollout's name: nemo-gym's agents (0.5.1 on) ask so if `observability_enabled`."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        path = {"path": ROLLOUT_PREFIX.sub("", scope["path"])} if "path" in scope else {}
        await app({**scope, **path}, receive, send)

    return served


def _broken(_: Mapping[str, Any]) -> None:
    raise ConnectionResetError("the connection broke, a fault on purpose")


def _serves(app: App, path: str) -> bool:
    try:
        app.find(HttpRequest("POST", path, {}, b""))
    except HttpRefusal:
        return False
    return True
