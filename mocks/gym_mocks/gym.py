"""A whole NeMo Gym in one process: head, resources servers, agents and policies on one event loop."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from gym_mocks.addresses import LOOPBACK
from gym_mocks.agent import MockAgent
from gym_mocks.agent.loop import Peers
from gym_mocks.composition import Registered, compose
from gym_mocks.head import Head, load_config, merged, to_yaml
from gym_mocks.head.server import ServerType
from gym_mocks.policy import FakePolicy
from gym_mocks.policy.tokens import TokensBy
from gym_mocks.resources import ResourcesServer
from gym_mocks.serving import Host
from gym_mocks.wire.client import ASGIApp, LocalClient

POLICY = "policy_model"  # the name that nemo-gym's own agent configurations call the policy by

RunnableRow = dict[str, Any]


class MockGym:
    """A gym on loopback, running from its making until `close`; a `with` block closes it.

    Servers may be added while it runs; the head then tells of them too. Nothing is shared between two gyms.

    Attributes:
        policy: the policy that agents ask unless told otherwise.
        rows: the rows of its environments, each with the `agent_ref` that clients need.
        head_url: the head's base URL, without a last slash.
        host: where its servers listen.

    Args:
        token_fields: whether the policy's replies carry the trainer's fields.
        tokens: what the policy's tokens are made by; see `FakePolicy`.
        policy: the policy itself, with options of its own, in the place of `token_fields` and `tokens`.
        host: where its servers listen: loopback unless another address is given.
        head_port: a port for the head; 0 for any that is free.

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
        head_port: int = 0,
    ) -> None:
        self.policy = policy or FakePolicy(token_fields=token_fields, tokens=tokens)
        self.host = host
        self.rows: list[RunnableRow] = []
        self._client = LocalClient()
        self._files: dict[str, Any] = {}
        self._registered: dict[str, Registered] = {}
        self._temporary: list[Path] = []
        self._head = Head({})
        self._host = Host()
        try:
            self.head_url = self._host.serve(self._head, port=head_port, host=host)
            self.add_policy(POLICY, self.policy)
        except BaseException:
            self.close()
            raise

    @property
    def config(self) -> dict[str, Any]:
        """The global configuration, as the head sends it."""
        return dict(self._head.config)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its servers, in the order of their adding."""
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
        """Serve a resources server and its agent, `{name}_simple_agent`; the rows, ready to run."""
        self.add_resources(server.name, server)
        agent = f"{server.name}_simple_agent"
        self.add_agent(agent, resources=server.name)
        added = [{**row, "agent_ref": {"type": "responses_api_agents", "name": agent}} for row in rows]
        self.rows += added
        return added

    def add_resources(self, name: str, app: ASGIApp) -> str:
        """Serve a resources server, ours or any ASGI application; its base URL."""
        return self._add(name, "resources_servers", name, app)

    def add_policy(self, name: str, policy: FakePolicy) -> FakePolicy:
        """Serve a policy under a name that agents can be given."""
        self.add_model(name, policy)
        return policy

    def add_model(self, name: str, app: ASGIApp) -> str:
        """Serve any model server, ours or any ASGI application; its base URL."""
        return self._add(name, "responses_api_models", "mock_model", app)

    def add_agent(
        self,
        name: str,
        *,
        resources: str,
        model: str = POLICY,
        max_steps: int | None = None,
        app: ASGIApp | None = None,
    ) -> str:
        """Serve an agent between a resources server and a policy, both by name; its base URL.

        Args:
            name: the agent's name.
            resources: the resources server's.
            model: the policy's.
            max_steps: see `MockAgent`.
            app: another agent in the mock agent's place, such as nemo-gym's own (`gym_mocks.nemo`).
        """
        peers = Peers(self._client, self.url(resources), self.url(model))
        refs = {
            "resources_server": {"type": "resources_servers", "name": resources},
            "model_server": {"type": "responses_api_models", "name": model},
        }
        agent = app or MockAgent(name, peers, max_steps=max_steps)
        return self._add(name, "responses_api_agents", "simple_agent", agent, refs)

    def add_environment_server(self, name: str, app: ASGIApp, *, agent: str, resources: str) -> str:
        """Serve an environment server of nemo-gym 0.7.0 before an agent; its base URL.

        Without one, the head names the agent's own address for it, and `/run` of the agent is what clients get.
        """
        refs = {
            "agent_server": {"type": "responses_api_agents", "name": agent},
            "resources_server": {"type": "resources_servers", "name": resources},
        }
        return self._add(name, "environment_servers", "single_agent_turn", app, refs)

    def add_config(self, path: Path) -> None:
        """Take up an env's own `configs/*.yaml`.

        Its agents are served by mock agents and its models by this gym's policy, unless servers of their
        names are there already. Its resources servers must have been added.

        Raises:
            ValueError: the file is no configuration, or an agent needs a server that is not there.
            OSError: the file cannot be read.
        """
        config = load_config(path)
        servers = {name: kinds for name, kinds in config.items() if isinstance(kinds, dict)}
        for name, kinds in servers.items():
            if name not in self._registered and "responses_api_models" in kinds:
                self.add_policy(name, self.policy)
        for name, kinds in servers.items():
            for entry in (kinds.get("responses_api_agents") or {}).values():
                if name not in self._registered:
                    resources, model = (entry[key]["name"] for key in ("resources_server", "model_server"))
                    self.add_agent(name, resources=resources, model=model, max_steps=entry.get("max_steps"))
        self._files = merged(self._files, config)
        self._tell_head()

    def write_config(self, path: Path | None = None) -> Path:
        """Write the configuration as YAML; without a path, to a temporary file that goes with the gym."""
        if path is None:
            number, name = tempfile.mkstemp(prefix="gym-mocks-", suffix=".yaml")
            os.close(number)
            path = Path(name)
            self._temporary.append(path)
        path.write_text(to_yaml(self.config), encoding="utf-8")
        return path

    def close(self) -> None:
        """Stop all servers and remove what is temporary; closing twice does nothing."""
        for path in self._temporary:
            path.unlink(missing_ok=True)
        self._temporary.clear()
        self._host.close(last=self._client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _server(self, name: str) -> Registered:
        if name not in self._registered:
            raise ValueError(f"no server is named {name!r}; there are {', '.join(sorted(self._registered))}")
        return self._registered[name]

    def _add(
        self, name: str, kind: ServerType, inner: str, app: ASGIApp, fields: Mapping[str, Any] | None = None
    ) -> str:
        if name in self._registered:
            raise ValueError(f"a server is named {name!r} already")
        same = (there.url for there in self._registered.values() if there.app is app)
        url = next(same, None) or self._host.serve(app, host=self.host)
        self._client.apps[url] = app
        self._registered[name] = Registered(name, kind, inner, url, app, fields or {}, time())
        self._tell_head()
        return url

    def _tell_head(self) -> None:
        parts = urlsplit(self.head_url)
        head = {"head_server": {"host": parts.hostname, "port": parts.port}}
        config, self._head.instances = compose(self._files, self._registered.values())
        self._head.config = head | config
