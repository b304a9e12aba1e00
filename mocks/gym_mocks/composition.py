"""The configuration of a gym, composed of what was registered and of environments' own files."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gym_mocks.head import Instance, merged
from gym_mocks.head.mock_head import ServerType
from gym_mocks.wire.client import ASGIApp

AGENTS: ServerType = "responses_api_agents"
ENVIRONMENTS: ServerType = "environment_servers"


@dataclass(frozen=True)
class Registered:
    """A server of a gym.

    Attributes:
        name: what clients address it by, the first level of the configuration.
        kind: the second level.
        inner: the third level; a file's own wins over it.
        url: where it is served.
        app: what is served.
        fields: what its entry holds beside `host`, `port` and `entrypoint`.
        since: seconds since the epoch.
    """

    name: str
    kind: ServerType
    inner: str
    url: str
    app: ASGIApp
    fields: Mapping[str, Any]
    since: float


@dataclass(frozen=True)
class Declared:
    """A server as a configuration declares it: `entry` is what stands at the third level."""

    name: str
    entry: Mapping[str, Any]

    @property
    def port(self) -> int:
        """Its port; 0 where the configuration leaves that open."""
        port = self.entry.get("port")
        return port if isinstance(port, int) else 0

    @property
    def max_steps(self) -> int | None:
        """After how many turns an agent stops; None: never."""
        steps = self.entry.get("max_steps")
        return steps if isinstance(steps, int) else None

    def reference(self, key: str) -> str:
        """The name of a server that it refers to; empty where it refers to none."""
        found = self.entry.get(key)
        name = found.get("name") if isinstance(found, Mapping) else None
        return name if isinstance(name, str) else ""


def declared(config: Mapping[str, Any], kind: ServerType) -> Iterator[Declared]:
    """The servers of a kind that a configuration declares.

    Raises:
        ValueError: what is given for a server is not one.
    """
    for name, kinds in config.items():
        servers = kinds.get(kind) if isinstance(kinds, Mapping) else None
        if servers is None:
            continue
        if not isinstance(servers, Mapping):
            raise ValueError(f"{name}: {kind} must be a mapping of servers, not {servers!r:.100}")  # noqa: TRY004
        for inner, entry in servers.items():
            if not isinstance(entry, Mapping):
                raise ValueError(f"{name}: {kind}.{inner} must be a mapping, not {entry!r:.100}")  # noqa: TRY004
            yield Declared(name, entry)


def compose(files: Mapping[str, Any], servers: Iterable[Registered]) -> tuple[dict[str, Any], tuple[Instance, ...]]:
    """The global configuration and the instances.

    Files are kept as they are, interpolations unresolved; `host` and `port` of what runs are set. Each agent has an
    environment server.
    """
    config: dict[str, Any] = dict(files)
    instances: list[Instance] = []
    for server in servers:
        kinds = files.get(server.name)
        declared = (kinds.get(server.kind) if isinstance(kinds, dict) else None) or {}
        inner = next(iter(declared), server.inner)
        instance = Instance(server.name, server.kind, inner, server.url, os.getpid(), server.since)
        entry = {"entrypoint": "app.py", **server.fields}
        mine = {server.name: {server.kind: {inner: entry}}}
        address = {server.name: {server.kind: {inner: instance.address}}}
        config = merged(merged(mine, config), address)
        instances.append(instance)
    agents = {each.process_name: each.address for each in instances if each.server_type == AGENTS}
    served = {each.process_name for each in instances}
    fronts = {name: kinds for name, kinds in _fronts(config, agents).items() if name not in served}
    return merged(config, fronts), tuple(instances)


def _fronts(config: Mapping[str, Any], agents: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The environment servers through which alone nemo-gym 0.7.0 reaches an agent (rollout_collection.py).

    Each has its agent's own address: nemo-gym's relay hands `/run` and `/aggregate_metrics` on as they come
    (environment_servers/legacy_agent/app.py). An agent that no file gives one gets a relay, as there
    (`_front_agents_without_environment_server` of global_config.py).

    Args:
        config: files and servers.
        agents: addresses by name.
    """
    fronts: dict[str, Any] = {}
    fronted: set[str] = set()
    for name, kinds in config.items():
        servers = (kinds.get(ENVIRONMENTS) if isinstance(kinds, Mapping) else None) or {}
        for inner, server in servers.items():
            for agent in filter(agents.__contains__, _named(server)):
                fronted.add(agent)
                fronts.setdefault(name, {ENVIRONMENTS: {inner: agents[agent]}})
    for agent in sorted(agents.keys() - fronted):
        relay = {"entrypoint": "app.py", "agent_server": {"type": AGENTS, "name": agent}, **agents[agent]}
        fronts[f"{agent}_environment_server"] = {ENVIRONMENTS: {"legacy_agent": relay}}
    return fronts


def _named(server: Mapping[str, Any]) -> list[str]:
    """The agents that an environment server's configuration refers to."""
    return [
        value["name"]
        for key, value in server.items()
        if isinstance(value, Mapping) and value.get("type", AGENTS if key == "agent_server" else "") == AGENTS
    ]
