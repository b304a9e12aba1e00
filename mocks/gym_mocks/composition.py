"""The configuration of a gym, composed of what was registered and of environments' own files."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gym_mocks.head import Instance, merged
from gym_mocks.head.server import Kind
from gym_mocks.wire.client import ASGIApp


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
    kind: Kind
    inner: str
    url: str
    app: ASGIApp
    fields: Mapping[str, Any]
    since: float


def compose(files: Mapping[str, Any], servers: Iterable[Registered]) -> tuple[dict[str, Any], tuple[Instance, ...]]:
    """The global configuration and the instances.

    Files are kept as they are, interpolations unresolved; `host` and `port` of what runs are set.
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
    return config, tuple(instances)
