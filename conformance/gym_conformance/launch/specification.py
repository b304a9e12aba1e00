"""What to launch, and the specification for the child that serves it: its YAML with the mocks. Only reads the YAML."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gym_conformance.launch.env import (
    CREDENTIAL,
    ENVIRONMENT,
    RESOURCES,
    ConfiguredServer,
    Env,
    chained,
    mappings,
    noted,
    references,
)

#: Replaces a credential that nobody gave, and values that only a model server needs.
MADE_UP: Final = "made-up-credential"
_NOTHING: Final = "none"

#: The YAML key of model servers, and those of the servers that an environment server may refer to.
_MODELS: Final = "responses_api_models"
_AGENTS: Final = "responses_api_agents"
_PEERS: Final = (RESOURCES, _AGENTS)

#: OmegaConf's marker for a value that must be given, and its reference to another key.
_UNSET: Final = "???"
_INTERPOLATED: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}")

#: OmegaConf's reference to an environment variable without a default.
_VARIABLE: Final = re.compile(r"\$\{oc\.env:\s*([A-Za-z_]\w*)\s*\}")


@dataclass(frozen=True)
class PeerAddresses:
    """Addresses of the mocks, as (host, port): the rest of the gym, and what replaces other hosts.

    For sandboxes, their URL and the file of their provider.
    """

    head: tuple[str, int]
    policy: tuple[str, int]
    outside: tuple[str, int] | None = None
    sandboxes: str = ""
    provider: str = ""


@dataclass(frozen=True)
class Launch:
    """How to launch an env.

    Attributes:
        env: the env.
        peers: the addresses of the mocks.
        python: the interpreter; '' for the env's own, else ours.
        settings: `key=value`, as `gym env start ++key=value` takes them.
        deadline: seconds until it must be ready to accept.
        real: whether to run it as NeMo Gym runs it, with Ray.
        workers: the number of processes that serve it.
        network: whether it may use the network while it is judged.
        local_sandbox: whether commands for a sandbox are run, by the framework's own local provider.
        variables: environment variables that get a made-up value if they have none.
        beside: addresses of other resources servers, by name.
        pythons: interpreters of those servers, by name, unless they run in this one.
    """

    env: Env
    peers: PeerAddresses
    python: str = ""
    settings: tuple[str, ...] = ()
    deadline: float = 120.0
    real: bool = False
    workers: int = 1
    network: bool = False
    local_sandbox: bool = False
    variables: tuple[str, ...] = ()
    beside: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    pythons: Mapping[str, str] = field(default_factory=dict)

    @property
    def interpreter(self) -> str:
        """The interpreter to use."""
        return self.env.interpreter(self.python)

    @property
    def asked(self) -> tuple[Env, ...]:
        """The other servers to start first, since it may call them.

        Raises:
            BadConfig: the env has no usable YAML, or one of them does not exist.
        """
        given = (setting.partition("=")[0].split(".") for setting in self.settings)
        return self.env.asked({*self.beside, *(key[0] for key in given if key[-1] == "port")})

    @property
    def models(self) -> tuple[str, ...]:
        """The model servers that its config refers to.

        Raises:
            BadConfig: the env has no usable YAML.
        """
        return () if self.env.application else self.env.configured.models

    def with_made_up(self, fields: Sequence[str], variables: Sequence[str] = ()) -> "Launch":
        """A copy with made-up values for these config fields and these environment variables."""
        instance = self.env.configured if fields else None
        place = f"{instance.name}.{instance.group}.{instance.inner}" if instance else ""
        made_up = (f"{place}.{field}={MADE_UP}" for field in fields)
        return replace(
            self,
            settings=tuple(dict.fromkeys((*self.settings, *made_up))),
            variables=tuple(dict.fromkeys((*self.variables, *variables))),
        )

    @property
    def wanted_variables(self) -> tuple[str, ...]:
        """The environment variables that get a made-up value if they have none, including those in its YAML.

        Raises:
            BadConfig: the env has no usable YAML.
        """
        if self.env.application:
            return self.variables
        instance = self.env.configured
        declared = chained(instance.path, self.env.root)
        needed = _VARIABLE.findall(str(_dict(declared.get(instance.name)).get(instance.group)))
        named = dict.fromkeys(_VARIABLE.findall(str(declared)))
        return (*self.variables, *(name for name in named if CREDENTIAL.search(name) or name not in needed))

    @property
    def _outside(self) -> tuple[str, int] | None:
        """The address that replaces other hosts; None if those are used."""
        return None if self.network or self.real else self.peers.outside

    def specification(self, port: int) -> dict[str, Any]:
        """The specification for the child.

        Raises:
            BadConfig: the env has no usable YAML.
        """
        env = self.env
        told: dict[str, Any] = {
            "application": env.application,
            "folder": str(env.folder),
            "sources": [str(path) for path in env.sources],
            "workers": self.workers,
            "outside": self._outside,
            "real": self.real,
            "environment": dict.fromkeys(self.wanted_variables, MADE_UP),
        }
        if env.application:
            return told
        instance = env.configured
        return told | {
            "root": str(env.root),
            "instance": instance.name,
            "group": instance.group,
            "entrypoint": instance.entrypoint,
            "overrides": _overrides(self, instance, port),
            "settings": list(self.settings),
            "without_datasets": dict(_without_datasets(chained(instance.path, env.root))),
            "provider": self.peers.provider,
        }


def _overrides(launch: Launch, instance: ConfiguredServer, port: int) -> dict[str, Any]:
    """The overrides of the YAML: one worker at our address, our head, and our mock as every model server.

    Values that only a model server needs, such as its key, or only an agent, are dummies.
    """
    # a name may be a number in YAML, but must be a string here
    declared = json.loads(json.dumps(chained(instance.path, launch.env.root), default=str))
    plain = noted(launch.env.root, credentials=launch.network or launch.real)
    policy = _address(launch.peers.policy)
    peers = list(_peers(declared[instance.name][ENVIRONMENT][instance.inner])) if instance.group == ENVIRONMENT else []
    server = {**_served(launch, port), **{key: {"name": name} for key, _, name in peers}}
    models = {name: _dict(_dict(declared.get(name)).get(_MODELS)) for name in _model_servers(declared)}
    given = {setting.partition("=")[0] for setting in launch.settings} | plain.keys()
    return {
        **_sandboxes(launch, declared),
        **{key: MADE_UP for key in _unknown_keys(declared, instance) if key not in given},
        **{key: _NOTHING for each in models.values() for key in _keys_in(each) if key not in declared},
        **{key: value for key, value in plain.items() if not isinstance(declared.get(key), dict)},
        "config_paths": [str(instance.path)],
        "head_server": _address(launch.peers.head),
        "policy_base_url": "http://{host}:{port}/v1".format(**policy),
        **dict.fromkeys(("policy_api_key", "policy_model_name"), _NOTHING),
        **dict(_unset_agents(declared)),
        **{name: _beside(_dict(declared.get(name)), at) for name, at in launch.beside.items()},
        instance.name: {instance.group: {instance.inner: server}},
        **{name: {kind: _peer(kind, _dict(_dict(declared.get(name)).get(kind)), policy)} for _, kind, name in peers},
        **{
            name: {_MODELS: _filled(each, policy) or {"vllm_model": {"entrypoint": "app.py", **policy}}}
            for name, each in models.items()
        },
    }


def _served(launch: Launch, port: int) -> dict[str, Any]:
    """Its address and number of workers: the child forks these itself."""
    workers = {"num_workers": launch.workers} if launch.workers > 1 else {}
    return {**_address(("127.0.0.1", port)), **(workers if launch.real else {"num_workers": 1})}


def _beside(declared: Mapping[str, Any], at: tuple[str, int]) -> dict[str, Any]:
    """The address of another resources server."""
    return {RESOURCES: {inner: _address(at) for inner in _dict(declared.get(RESOURCES))}}


def _address(peer: tuple[str, int]) -> dict[str, Any]:
    return dict(zip(("host", "port"), peer, strict=True))


def _filled(entries: Mapping[str, Any], address: Mapping[str, Any]) -> dict[str, Any]:
    """What to merge into a server's entries: another address, and dummies for values that must be given."""
    return {
        inner: {**{key: _NOTHING for key, value in _dict(entry).items() if value == _UNSET}, **address}
        for inner, entry in entries.items()
    }


def _unset_agents(declared: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The overrides for agents with values that must be given; they are not started."""
    for name, kinds in declared.items():
        agents = _dict(_dict(kinds).get(_AGENTS))
        if any(_UNSET in _dict(entry).values() for entry in agents.values()):
            yield name, {_AGENTS: _filled(agents, {})}


def _peers(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Agents and resources servers that an environment server refers to: key, kind and name, ours if it has none."""
    for key, reference in entry.items():
        kind, name = (_dict(reference).get(part) for part in ("type", "name"))
        if kind in _PEERS and isinstance(name, str):
            yield key, kind, f"mock_{key}" if name == _UNSET else name


def _peer(kind: str, declared: Mapping[str, Any], address: Mapping[str, Any]) -> dict[str, Any]:
    """A server that an environment server refers to, at our address: as declared, or just of that kind."""
    domain = {"domain": "other"} if kind == RESOURCES else {}
    return _filled(declared, address) or {"mock_peer": {"entrypoint": "app.py", **domain, **address}}


def _model_servers(declared: Mapping[str, Any]) -> list[str]:
    """The names of all model servers that are declared or referred to, and of the policy's."""
    own = (name for name, each in declared.items() if _MODELS in _dict(each))
    return sorted({"policy_model", *own, *(name for kind, name in references(declared) if kind == _MODELS)})


def _unknown_keys(declared: Mapping[str, Any], instance: ConfiguredServer) -> Iterator[str]:
    """Keys that the YAML refers to but lacks, if they are credentials or only other servers need them."""
    needed = _keys_in(_dict(declared.get(instance.name)).get(instance.group))
    for key in _keys_in(declared):
        if key not in declared and key != "policy_base_url" and (CREDENTIAL.search(key) or key not in needed):
            yield key


def _keys_in(node: object) -> dict[str, None]:
    """The keys that interpolations within a YAML refer to."""
    return dict.fromkeys(_INTERPOLATED.findall(str(node)))


def _sandboxes(launch: Launch, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Missing configs of sandboxes that `sandbox_provider` refers to (nemo_gym/sandbox/config.py, from 0.5.0 on)."""
    if launch.real and not launch.local_sandbox:
        return {}  # the mocks' provider is registered only in the child's own process
    config = {"local": {}} if launch.local_sandbox else {"gym_mocks": {"url": launch.peers.sandboxes}}
    named = (each.get("sandbox_provider") for each in mappings(declared))
    return {name: config for name in named if isinstance(name, str) and name not in declared}


def _without_datasets(declared: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The overrides for the data sets of all servers."""
    for name, kinds in declared.items():
        for kind, entries in _dict(kinds).items():
            if named := [inner for inner, entry in _dict(entries).items() if "datasets" in _dict(entry)]:
                yield str(name), {kind: {inner: {"datasets": []} for inner in named}}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
