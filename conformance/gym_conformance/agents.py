"""Which agent runs a row, according to the env's YAML: only an agent that executes calls can miss a tool.

The data is in `ENV/data/`, the YAML in `ENV/configs/` beside it (nemo-gym's own layout, in every version).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.documents import yaml_mapping

#: Agents that post calls to `/<tool>` of their `resources_server`. `tool_simulation_agent` and
#: `non_executing_simple_agent` do not; about others nothing is assumed. Source:
#: `url_path=f"/{output_function_call.name}"` in their app.py (nemo-gym 0.4.0).
EXECUTING: Final = frozenset({"simple_agent", "finance_agent", "cvdp_agent", "browsecomp_agent"})


@dataclass(frozen=True)
class Agent:
    """An agent declared in a YAML file.

    Attributes:
        name: the outermost key, which a row's `agent_ref` names.
        kind: the agent's type, such as `simple_agent`.
        file: the YAML file.
        server: the name of the resources server that it calls.
        own: whether that is the env's own server.
        data: the names of the data files that it gets.
    """

    name: str
    kind: str
    file: Path
    server: str
    own: bool
    data: frozenset[str] = frozenset()

    @property
    def executes(self) -> bool:
        """Whether the policy's calls reach the env's own server."""
        return self.own and self.kind in EXECUTING

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, {self.file.name})"


def executing_agents(rows: Iterable[Row]) -> Mapping[Row, Agent]:
    """The rows whose calls are certainly executed, each with the agent that executes them.

    That is the agent named by the row's `agent_ref`, else the one that gets the row's file. If neither is known, all
    agents declared in the YAML files must execute calls.
    """
    found = {}
    for row in rows:
        agents = [
            agent for agent in _declared(row.source.path.absolute().parent) if _reference(row) in ("", agent.name)
        ]
        named = [agent for agent in agents if agent.name == _reference(row)]
        given = [agent for agent in agents if row.source.path.name in agent.data]
        chosen = named or given or agents
        if chosen and all(agent.executes for agent in chosen):
            found[row] = chosen[0]
    return found


def _reference(row: Row) -> str:
    reference = row.data.get("agent_ref")
    name = reference.get("name") if isinstance(reference, dict) else None
    return name if isinstance(name, str) else ""


@cache
def _declared(folder: Path) -> tuple[Agent, ...]:
    """The agents of the env whose data is in this folder."""
    env = next((each for each in (folder.parent, folder) if (each / "configs").is_dir()), None)
    if env is None:
        return ()
    files = sorted(file for file in (env / "configs").iterdir() if file.suffix in (".yaml", ".yml"))
    return tuple(agent for file in files for agent in _agents(yaml_mapping(file), file, env.name))


def _agents(config: Mapping[str, Any], file: Path, env: str) -> Iterator[Agent]:
    servers = {name: set(inner) for name, inner in _entries(config, "resources_servers")}
    own = {name for name, kinds in servers.items() if env in kinds} or set(servers)
    if len(own) != 1:  # it is unknown which of them is judged
        own = set()
    for name, inner in _entries(config, "responses_api_agents"):
        for kind, agent in inner.items():
            reference = agent.get("resources_server") if isinstance(agent, dict) else None
            if isinstance(reference, dict):
                server = str(reference.get("name"))
                yield Agent(name, str(kind), file, server, server in own, _data(agent))


def _data(agent: Mapping[str, Any]) -> frozenset[str]:
    given = agent.get("datasets")
    paths = [one.get("jsonl_fpath") for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    return frozenset(Path(path).name for path in paths if isinstance(path, str))


def _entries(config: Mapping[str, Any], what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, entry in config.items():
        inner = entry.get(what) if isinstance(entry, dict) else None
        if isinstance(inner, dict):
            yield str(name), inner
