"""Environments on disk: what to launch, and with which interpreter, config and data."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import glob
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

from gym_conformance.documents import is_file, parse_json, read_lines, read_text, read_yaml, yaml_mapping
from gym_conformance.launch.served_applications import applications, flaw_of
from gym_conformance.printable import Refusal
from gym_conformance.redaction import named_values

#: `module:attribute`, an ASGI or WSGI application, with the folder to import it from.
_APPLICATION = re.compile(r"(?P<folder>(?:.*/)?)(?P<name>[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)")

#: Characters that a node id must not contain, because pytest, a terminal or a CI runner gives them a meaning.
_UNFIT = re.compile(r"[^\w .+@()=-]")

#: The interpreter in a virtual environment made by `gym env start` (nemo_gym/cli/setup_command.py, 0.4.0).
_PYTHON = Path(".venv", "bin", "python")

#: Files that list an env's requirements, and the folder in which most build backends look for packages.
REQUIRING = ("requirements.txt", "pyproject.toml")
_SOURCES = "src"

#: A line of a `.env` file.
_SETTING = re.compile(
    r"""^[ \t]*(?:export\s+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)'|([^\s#]*))""", re.MULTILINE
)

#: The file of an env's example rows.
_ROWS = Path("data", "example.jsonl")

#: The YAML in which an `environments/NAME` or a `benchmarks/NAME` declares its server.
_HOMES: Final = "config.yaml"

#: Keys of credentials, for which a made-up value will do until they are used.
CREDENTIAL = re.compile(r"key|token|secret|passw|credential|(^|_)cx$", re.IGNORECASE)

#: Where else a YAML may be; how many files and folders to look at; and how many applications to name.
_ANYWHERE: Final = ("*.yml", "configs/*.yml", "*/*.yaml", "*/*.yml", "*/*/*.yaml", "*/*/*.yml")
_LOOKED_AT, _SEVERAL = 200, 4

#: Names of files of rows, those meant to be looked at first.
_NAMES: Final = ("example", "val", "test", "dev", "train")

#: Types of datasets, those meant to be looked at first.
_KINDS = ("example", "validation", "train")

#: The folders of servers that can be judged, whose names are also the YAML keys that declare them; environment servers
#: exist since nemo-gym 0.7.0.
RESOURCES, ENVIRONMENT = "resources_servers", "environment_servers"


#: What to do with a folder that is not in NeMo Gym's layout.
_OF_ANOTHER_KIND = (
    " (for an app.py of another framework, give --gym-env FOLDER/app:app, or whatever its application is called)"
)


class NoEnv(Refusal):
    """The argument names no environment; the message says why."""


class BadConfig(Refusal):
    """The folder has no usable YAML; the message says what is needed."""


@dataclass(frozen=True)
class Env:
    """One environment, not launched.

    Attributes:
        name: its name in node ids and reports; unique among those found together.
        folder: the working directory of its process.
        application: `module:attribute` of an ASGI or WSGI application, or of a function that makes one, in `folder`; ''
            for an env in NeMo Gym's layout.
        python: its own interpreter, if it has one.
        data: its example rows, those that its YAML names as its own first; if there are none, other rows that its YAML
            names.
        config: the YAML that was given; for an `environments/NAME`, whose server is in another `folder`, its own YAML.
        server: which of the servers in its YAML is meant; '' if none was named.
    """

    name: str
    folder: Path
    application: str = ""
    python: Path | None = None
    data: tuple[Path, ...] = ()
    config: Path | None = None
    server: str = ""

    @property
    def home(self) -> Path:
        """The folder that was given for it: `folder`, or that of an `environments/NAME`."""
        return self.config.parent if self.config and self.folder not in self.config.parents else self.folder

    @property
    def place(self) -> Path:
        """The path that was given for it: its home, or a YAML."""
        return self.home if self.config in (None, self.home / _HOMES) else self.config or self.home

    @property
    def configured(self) -> "ConfiguredServer":
        """The server that its YAML declares.

        Raises:
            BadConfig: there is none, or a file cannot be read.
        """
        return find_server(self.folder, self.config, self.server)

    @property
    def others(self) -> tuple["ConfiguredServer", ...]:
        """If no server was named, the other servers that might have been meant.

        Raises:
            BadConfig: the env has no usable YAML.
        """
        return () if self.application or self.server else _others(self.folder, self.config)

    def asked(self, elsewhere: Collection[str] = ()) -> tuple["Env", ...]:
        """The other resources servers that its config refers to, and that do not run `elsewhere`: it may call them.

        Raises:
            BadConfig: one of them does not exist.
        """
        return () if self.application else tuple(_asked(self.configured, self.folder, self.root, elsewhere))

    @property
    def root(self) -> Path:
        """Where `gym env start` is run, and paths in its YAML start; for a package, where it is imported from."""
        return _root_of(self.folder)

    @property
    def project(self) -> Path:
        """The folder whose files list its requirements: its own; for a package, the nearest parent with such files."""
        packaged = self.root != self.folder and self.folder.parent.name not in (RESOURCES, ENVIRONMENT)
        above = takewhile(lambda each: each != self.root.parent.parent, self.folder.parents) if packaged else ()
        said = (each for each in (self.folder, *above) if any((each / name).is_file() for name in REQUIRING))
        return next(said, self.folder)

    @property
    def sources(self) -> tuple[Path, ...]:
        """Folders with its own packages that an install would provide, such as `src` beside its `app.py`."""
        places = dict.fromkeys((self.folder / _SOURCES, self.project / _SOURCES))
        return tuple(place for place in places if place.is_dir() and not (place / "__init__.py").exists())

    def interpreter(self, chosen: str = "") -> str:
        """The interpreter it runs in: the user's choice, else its own, else ours."""
        return chosen or str(self.python or sys.executable)

    @property
    def app(self) -> Path | None:
        """The file to run; None if a module is run."""
        return None if self.application else _entry(self.folder, self.config, self.server) or self.folder / "app.py"


@dataclass(frozen=True)
class ConfiguredServer:
    """One server declared by a YAML.

    Attributes:
        name: the outermost key, which is part of the cookie's name.
        inner: the third-level key.
        path: the YAML.
        entrypoint: the file to run, relative to the folder.
        models: names of the model servers that it refers to, such as a judge's; for an environment server, which calls
            its model through an agent, names of all servers that it refers to.
        group: the second-level key, the kind of server.
        peers: names of the other resources servers that it refers to; empty for an environment server.
    """

    name: str
    inner: str
    path: Path
    entrypoint: str
    models: tuple[str, ...]
    group: str = RESOURCES
    peers: tuple[str, ...] = ()


def find_envs(patterns: Iterable[str], cwd: Path) -> tuple[Env, ...]:
    """The environments that folders, globs, `FOLDER:SERVER`s and `module:attribute`s name, each once, in that order.

    Raises:
        NoEnv: one of the arguments names none.
    """
    found: dict[tuple[Path, str, str], Env] = {}
    for pattern in patterns:
        for env in _find(pattern, cwd):
            found.setdefault((env.place, env.application, env.server), env)
    return _named(tuple(found.values()))


def _find(pattern: str, cwd: Path) -> list[Env]:
    folder = cwd / pattern
    if not folder.exists() and (one := _of_several(pattern, cwd)):
        return [one]
    named = None if folder.exists() else _APPLICATION.fullmatch(pattern)
    if named and (application := _application(cwd, **named.groupdict())):
        return [application]
    if folder.is_dir():
        env = _read(folder)
        if env is None or _has_no_config(env):
            env = _alone(pattern, folder.resolve()) or env
        if env is None:
            raise NoEnv(
                f"{pattern!r}: the folder has no app.py, no YAML whose `entrypoint` is there, and no config.yaml that names "
                f"a server of its repo{_inside(folder)}; give an env's folder, a glob such as 'envs/*', or FOLDER/module:app "
                "for any other ASGI or WSGI application"
            )
        return [env]
    if folder.is_file() and (env := _configured(folder)) is None:
        raise NoEnv(f"{pattern!r}: that is a file; give the env's folder, or a YAML in it or in its configs/")
    found = map(Path, sorted(glob(str(folder))))  # noqa: PTH207 - patterns may be absolute
    inside = [path for path in found if path.exists()]  # a link may be broken, or lead to itself
    envs = [env for path in inside if (env := _configured(path) if path.is_file() else _read(path))]
    if not envs:
        raise NoEnv(
            f"{pattern!r}: no folder with an app.py or a server's config.yaml there; give an env's folder, a glob or module:attribute"
        )
    return envs


def _has_no_config(env: Env) -> bool:
    """Whether no YAML declares a server for it, so that it is not in NeMo Gym's layout."""
    try:
        return not env.configured
    except BadConfig:
        return not _yaml_files(env.folder)


def _alone(pattern: str, folder: Path) -> Env | None:
    """The only application in a folder that is not in NeMo Gym's layout; None if there is none.

    Raises:
        NoEnv: there are several.
    """
    found = applications(folder)
    if len(found) > 1:
        named = ", ".join(f"--gym-env {pattern.rstrip('/')}/{each}" for each in found[:_SEVERAL])
        raise NoEnv(f"{pattern!r}: its Python files make several applications; give the one that is meant: {named}")
    env = _application(folder, "", found[0]) if found else None
    return env and replace(env, name=_UNFIT.sub("-", folder.name))


def _inside(folder: Path) -> str:
    """A glob for the folders below it that are envs; '' if there are none."""
    below = [each for pattern in ("*", "*/*") for each in islice(folder.glob(pattern), _LOOKED_AT) if each.is_dir()]
    parents = dict.fromkeys(each.parent.relative_to(folder) / "*" for each in sorted(below) if _read(each))
    return f" (its envs are {', '.join(map(str, parents))})" if parents else ""


def _application(cwd: Path, folder: str, name: str) -> Env | None:
    """An application in an installed module or in a folder; None if that has no such module."""
    home = (cwd / folder).resolve() if folder else cwd
    module = Path(*name.partition(":")[0].split("."))
    places = (home / inside / file for inside in ("", _SOURCES) for file in (f"{module}.py", module / "__init__.py"))
    if folder and not any(map(is_file, places)):
        return None
    env = _at(home, home, _rows_below(home))
    return replace(env, name=(f"{env.name}." if folder else "") + name.replace(":", "."), application=name)


def _of_several(pattern: str, cwd: Path) -> Env | None:
    """The env of `FOLDER:SERVER` or `YAML:SERVER`; None if it names something else, such as a module's attribute.

    Raises:
        NoEnv: no YAML there declares this server.
    """
    given, _, server = pattern.rpartition(":")
    place = cwd / given
    env = (_read(place, server) if place.is_dir() else _configured(place, server)) if given else None
    try:
        return env and replace(env, name=_UNFIT.sub("-", env.configured.name))
    except BadConfig as bad:
        if (place / "__init__.py").is_file() or place.with_suffix(".py").is_file():
            return None
        raise NoEnv(f"{pattern!r}: it needs {bad}") from None


def _read(home: Path, server: str = "") -> Env | None:
    """A folder's env: its own, or a server of the same repo that its config.yaml names; None if there is none."""
    home = home.resolve()
    if _entry(home, server=server):
        return _at(home, home, _rows_of(home, server=server), server=server)
    rows = home / _ROWS
    data = (rows,) if rows.is_file() else ()
    config = home / _HOMES
    root = home.parent.parent
    try:
        declared = _configured_servers(config, root) if config.is_file() else []
    except BadConfig:
        return None
    named = [each for each in declared if each.name == server] or declared
    named.sort(key=lambda each: each.group != RESOURCES)  # an environment server in the same file only relays to it
    places = (root / each.group / each.inner for each in named)
    folder = next((place for place in places if _entry(place)), None)
    return _at(home, folder, data, config, server) if folder else None


def _configured(file: Path, server: str = "") -> Env | None:
    """The env of a YAML in its folder or its `configs`; None for any other file."""
    file = file.resolve()
    if file.suffix not in (".yaml", ".yml") or not is_file(file):
        return None
    folder = next((each for each in file.parents[:2] if _entry(each, file, server)), None)
    if folder is None:
        return None
    env = _at(folder, folder, _rows_of(folder, file, server), file, server)
    return replace(env, name=_UNFIT.sub("-", file.stem))


def _entry(folder: Path, config: Path | None = None, server: str = "") -> Path | None:
    """The file to run: the one that the folder's YAML names, or `app.py`; None if there is neither."""
    entries = [folder / "app.py"]
    with suppress(BadConfig):
        entries.insert(0, folder / find_server(folder, config, server).entrypoint)
    return next((entry for entry in entries if is_file(entry)), None)


def _rows_of(folder: Path, config: Path | None = None, server: str = "") -> tuple[Path, ...]:
    """The files of an env's rows.

    The server's own examples come first if there are several servers, or if the YAML does not have the folder's name;
    then the folder's example rows, then any other rows that are named.
    """
    own = folder / _ROWS
    files = [config] if config else _yaml_files(folder)
    with suppress(BadConfig):
        judged, *others = _candidates(folder, config, server)
        there = _named_rows(_agents_of(judged) if others or server else (), folder)
        if examples := [place for kind, place in there if kind == _KINDS[0]]:
            return (own if own in examples else examples[0],)
    if own.is_file() and files and files[0].stem == folder.name:
        return (own,)
    with suppress(BadConfig):
        files = [find_server(folder, config, server).path]
    there = _named_rows(map(yaml_mapping, files), folder)
    examples = [place for kind, place in there if kind == _KINDS[0]]
    if own.is_file() and (own in examples or not examples):
        return (own,)
    return tuple(place for _, place in there[:1]) or _rows_below(folder)


def _rows_below(folder: Path) -> tuple[Path, ...]:
    """The file of rows in its `data` or a subfolder: its examples, else the one that by its name is best to look at."""
    if (own := folder / _ROWS).is_file():
        return (own,)
    files = [each for pattern in ("*.jsonl", "*/*.jsonl") for each in (folder / _ROWS.parent).glob(pattern)]
    rows = sorted(each for each in files[:_LOOKED_AT] if _holds_rows(each))

    def rank(file: Path) -> int:
        name = str(file.relative_to(folder))
        return next((at for at, kind in enumerate(_NAMES) if kind in name), len(_NAMES))

    return (min(rows, key=rank),) if rows else ()


def _holds_rows(file: Path) -> bool:
    """Whether its first line is a row, and not a recorded rollout."""
    try:
        first = parse_json(next(read_lines(file), b""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "responses_create_params" in first and "response" not in first


def _agents_of(server: "ConfiguredServer") -> Iterator[Any]:
    """The agents that its YAML declares for a server."""
    for kinds in yaml_mapping(server.path).values():
        agents = kinds.get("responses_api_agents") if isinstance(kinds, dict) else None
        for agent in agents.values() if isinstance(agents, dict) else ():
            called = agent.get("resources_server") if isinstance(agent, dict) else None
            if isinstance(called, dict) and called.get("name") == server.name:
                yield agent


def _named_rows(nodes: Iterable[object], folder: Path) -> list[tuple[str, Path]]:
    """Existing files of rows that are named, each with its type, those best suited to look at first."""
    named = [each for node in nodes for each in datasets(node)]
    named.sort(key=lambda each: _KINDS.index(each[0]))
    root = _root_of(folder)
    return [(kind, place) for kind, path in named for place in places(path, folder, root) if is_file(place)]


def noted(root: Path, *, credentials: bool) -> dict[str, Any]:
    """The settings, without servers, in an `env.yaml` for all configs beside it, as `gym env start` reads it.

    Its credentials belong to somebody: a server whose other hosts are our mocks gets made-up ones instead.
    """
    said = yaml_mapping(root / "env.yaml")
    plain = {key: value for key, value in said.items() if not isinstance(value, dict | list) and value is not None}
    return {key: value for key, value in plain.items() if credentials or not CREDENTIAL.search(str(key))}


def written(env: "Env") -> Iterator[tuple[str, str]]:
    """The settings in its files, by name: in its YAML, in `env.yaml`, and in each `.env` that it may load."""
    with suppress(BadConfig):
        declared = named_values({} if env.application else chained(env.configured.path, env.root))
        yield from ((name, value) for name, value in declared if "${" not in value)  # a reference has another name
    yield from named_values(yaml_mapping(env.root / "env.yaml"))
    for folder in dict.fromkeys((env.folder, env.project, env.root, env.home)):
        with suppress(OSError, ValueError):
            for name, *values in _SETTING.findall(read_text(folder / ".env")):
                yield name, "".join(values)


def datasets(node: object) -> Iterator[tuple[str, str]]:
    """The type and path of each dataset that a YAML names (`DatasetConfig`, nemo_gym/config_types.py, 0.4.0)."""
    for entry in mappings(node):
        if entry.get("type") in _KINDS and isinstance(entry.get("jsonl_fpath"), str):
            yield entry["type"], entry["jsonl_fpath"]


def places(path: str, folder: Path, root: Path) -> tuple[Path, ...]:
    """Where a dataset may be: relative to the root or, for an env outside NeMo Gym's layout, to its folder."""
    return root / path, folder / path, folder / path.removeprefix(f"{RESOURCES}/{folder.name}/")


def _root_of(folder: Path) -> Path:
    if folder.parent.name in (RESOURCES, ENVIRONMENT):
        return folder.parent.parent
    return next(each for each in (folder, *folder.parents) if not (each / "__init__.py").is_file())


def _at(home: Path, folder: Path, data: tuple[Path, ...], config: Path | None = None, server: str = "") -> Env:
    python = folder / _PYTHON
    name = _UNFIT.sub("-", home.name)
    return Env(name, folder, python=python if python.exists() else None, data=data, config=config, server=server)


def _named(envs: tuple[Env, ...]) -> tuple[Env, ...]:
    """The envs with unique names: equal ones get that of the parent folder, then a number."""
    names = [env.name for env in envs]
    longer = [
        env if names.count(env.name) == 1 else replace(env, name=f"{env.home.parent.name}-{env.name}") for env in envs
    ]
    seen: dict[str, int] = {}
    unique = []
    for env in longer:
        seen[env.name] = seen.get(env.name, 0) + 1
        unique.append(env if seen[env.name] == 1 else replace(env, name=f"{env.name}-{seen[env.name]}"))
    return tuple(unique)


def find_server(folder: Path, config: Path | None = None, server: str = "") -> ConfiguredServer:
    """The server that a folder's YAML files declare: the named one, else that with the folder's name, else the first.

    The file with the folder's name comes first, then the others by name; if `config` is given, only that file counts,
    with those that it includes.

    Raises:
        BadConfig: there is none, or a file cannot be read.
    """
    return _candidates(folder, config, server)[0]


def _candidates(folder: Path, config: Path | None, server: str = "") -> list[ConfiguredServer]:
    """The server that is meant, and others that may be meant instead."""
    files = [config] if config else _yaml_files(folder)
    root = _root_of(folder) if config else None
    group = ENVIRONMENT if folder.parent.name == ENVIRONMENT else RESOURCES
    declared = _declared(files, root)
    if not declared:
        if not files and (flaw := flaw_of(folder / "app.py")):
            raise BadConfig(f"an app.py that Python can read; {flaw}")
        none = f"none of {len(files)} files does" if files else "there is no file" + _OF_ANOTHER_KIND
        raise BadConfig(f"a YAML in configs/ that declares {group}.{folder.name}; {none}")
    if server and server not in (names := [each.name for each in declared]):
        raise BadConfig(
            f"a YAML that declares the server {server}; what it declares is {', '.join(dict.fromkeys(names))}"
        )

    def rank(instance: ConfiguredServer) -> tuple[bool, ...]:
        return bool(server) and instance.name != server, instance.inner != folder.name, instance.group != group

    best = min(map(rank, declared))
    return [each for each in declared if rank(each) == best]


def _declared(files: Iterable[Path], root: Path | None) -> list[ConfiguredServer]:
    """The servers that the files declare; an unreadable file only matters if none is found."""
    found: list[ConfiguredServer] = []
    for file in files:
        try:
            found += _configured_servers(file, root)
        except BadConfig:
            if not found:
                raise
    return found


def _asked(server: ConfiguredServer, folder: Path, root: Path, elsewhere: Collection[str]) -> Iterator[Env]:
    """The resources servers that a server refers to, if the same config declares them.

    Raises:
        BadConfig: the folder of one does not exist.
    """
    declared = chained(server.path, root)
    for name in (each for each in server.peers if each not in elsewhere):
        kinds = declared.get(name)
        servers = kinds.get(RESOURCES) if isinstance(kinds, dict) else None
        for inner, entry in servers.items() if isinstance(servers, dict) else ():
            started = str(entry.get("entrypoint") or "app.py") if isinstance(entry, dict) else "app.py"
            own = [folder] if inner == server.inner or started != server.entrypoint else []
            places = (root / RESOURCES / str(inner), *own)
            place = next((place for place in places if is_file(place / started)), None)
            if place is None:
                raise BadConfig(
                    f"the server {name}, which it asks, and whose folder {RESOURCES}/{inner} is not here; start it "
                    f"yourself, and say where: --gym-env-set {name}.{RESOURCES}.{inner}.port=PORT, and .host=HOST"
                )
            yield _at(place, place, (), server.path, name)


def _others(folder: Path, config: Path | None) -> tuple[ConfiguredServer, ...]:
    """Other servers that may be meant: those in the same file, or in any if no file has the folder's name."""
    judged, *rest = _candidates(folder, config)
    if config is None:
        return tuple(each for each in rest if judged.path.stem != folder.name or each.path == judged.path)
    if folder not in config.parents:  # each server is in its own folder
        declared = _configured_servers(config, _root_of(folder))
        rest = [each for each in declared if each.name != judged.name]
    own = yaml_mapping(config)  # without the files that it includes
    return tuple(each for each in rest if each.name in own and each.group == judged.group)


def _yaml_files(folder: Path) -> list[Path]:
    """An env's own YAML files, that of its name first.

    They are in `configs`, else beside its app.py, else anywhere in it if they declare a server.
    """
    own = [*folder.glob("configs/*.yaml")] or [*folder.glob("*.yaml")]
    if not any(map(_declares, own)):
        below = [each for pattern in _ANYWHERE for each in islice(folder.glob(pattern), _LOOKED_AT)]
        own = [
            each for each in below if not each.relative_to(folder).parts[0].startswith(".") and _declares(each)
        ] or own
    return sorted(own, key=lambda file: (file.stem != folder.name, file.name))


def _declares(file: Path) -> bool:
    """Whether a YAML declares a server."""
    with suppress(BadConfig):
        return bool(_configured_servers(file))
    return False


def chained(file: Path, root: Path) -> dict[str, Any]:
    """The content of a YAML, merged with the files in its `config_paths`, and instances with what they inherit.

    This follows nemo-gym (`load_extra_config_paths`, `_inherit_from` and `_copy` in nemo_gym/global_config.py, 0.4.0
    and 0.7.0), which drops instances that others inherit from. The file's own content has precedence; files that cannot
    be read are skipped.
    """
    own = dict(yaml_mapping(file))
    merged: Mapping[str, Any] = own
    for path in _files_below(own, root, file):
        merged = _over(merged, yaml_mapping(path))
    return {
        name: _over(each, merged.get(_source(each), {})) if isinstance(each, dict) else each
        for name, each in _kept(merged)
    }


def _source(instance: object, keys: Sequence[str] = ("_inherit_from", "_copy")) -> str:
    """The instance that another one inherits or copies; '' if it does neither."""
    return next((str(instance[key]) for key in keys if key in instance), "") if isinstance(instance, dict) else ""


def _kept(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a config declares, without the instances that nemo-gym drops, because others inherit from them."""
    dropped = {_source(each, ("_inherit_from",)) for each in config.values()}
    return ((name, each) for name, each in config.items() if name not in dropped)


def _files_below(config: Mapping[str, Any], root: Path, file: Path) -> Iterator[Path]:
    """The files that a YAML includes, last one first, which has precedence; each once, as its content would be again."""
    seen, waiting = {file}, _included(config)
    while waiting:
        path = root / waiting.pop()
        if path not in seen:
            seen.add(path)
            yield path
            waiting += _included(yaml_mapping(path))


def _included(config: Mapping[str, Any]) -> list[str]:
    """The files that a YAML includes itself."""
    named = config.get("config_paths")
    return [*map(str, named)] if isinstance(named, list) else []


def _over(upper: Any, lower: Any) -> Any:
    """One mapping merged over another, recursively."""
    if not isinstance(upper, dict) or not isinstance(lower, dict):
        return upper
    return {key: _over(upper.get(key, value), value) for key, value in {**upper, **lower}.items()}


def _configured_servers(file: Path, root: Path | None = None) -> list[ConfiguredServer]:
    """The servers that a file declares; with a `root`, also those in files that it includes, after its own."""
    try:
        config = read_yaml(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadConfig(f"a YAML that can be read; {file.name} cannot: {why}") from None
    if root:
        config = chained(file, root)
    found = []
    for name, kinds in _kept(config) if isinstance(config, dict) else ():
        for group in (RESOURCES, ENVIRONMENT) if isinstance(kinds, dict) else ():
            servers = kinds.get(group)
            for inner, entry in servers.items() if isinstance(servers, dict) else ():
                if isinstance(entry, dict):
                    entrypoint = str(entry.get("entrypoint") or "app.py")
                    played = None if group == ENVIRONMENT else "responses_api_models"  # our mock replaces it
                    models = tuple(name for kind, name in references(entry) if played in (None, kind))
                    peers = [one for kind, one in references(entry) if kind == RESOURCES == group and one != name]
                    found.append(
                        ConfiguredServer(
                            str(name), str(inner), file, entrypoint, models, group, tuple(dict.fromkeys(peers))
                        )
                    )
    return found


def references(node: object) -> Iterator[tuple[str, str]]:
    """The type and the name of each server that is referred to (`ServerRef`, nemo_gym/config_types.py, 0.4.0)."""
    for entry in mappings(node):
        if isinstance(entry.get("type"), str) and isinstance(entry.get("name"), str):
            yield entry["type"], entry["name"]


def mappings(node: object) -> Iterator[dict[str, Any]]:
    """Each mapping in a YAML, outer ones first."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for value in node if isinstance(node, list) else ():
        yield from mappings(value)
