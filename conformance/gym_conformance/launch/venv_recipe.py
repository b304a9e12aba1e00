"""The recipe of an env's virtual environment: the requirements in its folder, and the Python for them.

This follows `gym env start` (`setup_env_command` in nemo_gym/cli/setup_command.py, 0.4.0 to 0.7.0): it reads
`requirements.txt` or `pyproject.toml`, and replaces a requirement of a NeMo Gym two folders up by the installed
release. Unlike `gym env start`, it builds no package in the env's folder, because that would write there. The launched
server has its folder on its path, and requirements that only a build knows are read from a build in a copy.
"""

import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from gym_conformance.documents import read_text
from gym_conformance.launch.env import ENVIRONMENT, RESOURCES, Env
from gym_conformance.launch.other_requirements import listed_elsewhere, pep440, pythons_of_a_build
from gym_conformance.printable import Refusal

#: Releases of nemo-gym by the Python that they need: 0.4.0 pins packages that lack support for 3.13; 0.5.0 requires 3.13.
_RELEASES: Final = {
    "3.13": ("0.7.0", "0.6.0", "0.5.1", "0.5.0"),
    "3.12": ("0.4.0", "0.3.0", "0.2.1", "0.2.0"),
}

#: Files that determine what is installed.
FILES: Final = ("requirements.txt", "pyproject.toml", "overrides.txt", "uv.toml")

#: The most levels of requirement files that include others, and of extras that name others.
_DEEPEST: Final = 10

#: Folders that no build reads.
UNBUILT: Final = (".git", ".venv", ".tox", "node_modules", "__pycache__")

#: In requirements, the placeholder for the folder of all copies.
COPIES: Final = "$GYM_CONFORMANCE_COPIES"

#: The file, in an environment that we made, of the requirements that were left out of it, one per line.
LEFT_OUT: Final = "gym-conformance-left-out.txt"

_NEMO: Final = "nemo-gym"
_GYM_ROOT: Final = re.compile(r"\.\./\.\./?\s*(?:\[|;|$)")
_EXTRAS: Final = re.compile(r"nemo-gym\s*\[([^\]]*)\]")
_OPTION: Final = re.compile(r"(--?[A-Za-z-]+)(?:\s*=\s*|\s+|)(.*)")
_FOREIGN: Final = re.compile(r"(?:[a-z+]+)://(?!$)|git\+", re.IGNORECASE)
_URL: Final = re.compile(r"[a-z]+://[^\s'`;#)\]]+")
_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
_PLACE: Final = re.compile(r"\.|\S*/|file:|\S+\.(?:whl|zip|tar\.\w+)", re.IGNORECASE)

#: What may follow a requirement on its line, such as the hashes that `uv export` and pip-tools write.
PINS: Final = re.compile(r"\s+--[a-z].*")

_MINOR: Final = re.compile(r"3\.\d+")

#: Extras of nemo-gym that only its own tests need.
_UNNEEDED: Final = frozenset({"dev"})


class BadRequirements(Refusal):
    """The folder's requirements cannot be used; the message says why."""


@dataclass(frozen=True)
class VenvRecipe:
    """The recipe of a virtual environment.

    Attributes:
        python: a path, or versions such as `3.13`, as uv takes them.
        requirements: lines of a requirements file.
        constraints: lines of a constraints file.
        overrides: lines of an overrides file.
        settings: the folder's files that uv reads, by name.
        folders: the paths, relative to the env, of required folders on this machine, such as members of a workspace,
            each with a hash of its content; such a requirement is written `COPIES/copied(FOLDER)`, since it is built in
            a copy.
        built: the file in the env's folder whose build, in a copy, determines further requirements; '' for none.
        ignores_patch: whether a nemo-gym is required that declares a later 3.13 than it needs (from 0.5.0 on).
        left_out: requirements on a host that does not exist.
    """

    python: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    folders: tuple[tuple[str, str], ...] = ()
    built: str = ""
    ignores_patch: bool = False
    left_out: tuple[str, ...] = ()

    def without_unfetched(self, said: str) -> "VenvRecipe":
        """A copy without the requirements at URLs in uv's output `said`; a NeMo Gym there becomes the newest release.

        Their packages are not looked up in an index, where others may have taken their names.
        """
        named = tuple(_USER.sub("", url).rstrip("/") for url in _URL.findall(said))
        missed = {
            line for line in self.requirements if (url := _place(line)) and any(_is_at(url, each) for each in named)
        }
        kept = (_of_index(line) if line in missed else line for line in self.requirements)
        return replace(
            self,
            requirements=tuple(line for line in kept if line),
            left_out=(*self.left_out, *(_told(line) for line in self.requirements if line in missed)),
        )

    @property
    def key(self) -> str:
        """A name for it: a hash of all that goes into it."""
        return sha256(repr((1, self)).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def left_out(python: str) -> tuple[str, ...] | None:
    """The requirements left out of an interpreter's environment; None if we did not make that environment."""
    try:
        return tuple((Path(python).parents[1] / LEFT_OUT).read_text().splitlines())
    except (OSError, ValueError, IndexError):
        return None


@dataclass(frozen=True)
class _Line:
    text: str
    constrains: bool = False


def read_recipe(env: Env, python: str, nemo: str) -> VenvRecipe:
    """The recipe for what an env's folder requires.

    Args:
        env: the env.
        python: the interpreter that the user chose; '' for the one that the env needs.
        nemo: the release of nemo-gym that the user chose; '' for the one that the env requires.

    Raises:
        BadRequirements: the folder's requirements cannot be used.
    """
    settings = tuple((name, text) for name in FILES if (text := _text(env.project / name)))
    texts = dict(settings)
    both = texts.keys() >= {"requirements.txt", "pyproject.toml"}
    listed = "requirements.txt" in texts
    if both and not env.application and env.project.parent.name in (RESOURCES, ENVIRONMENT):
        raise BadRequirements("requirements.txt and pyproject.toml are both there, and NeMo Gym takes only one of them")
    project = _project(texts.get("pyproject.toml", ""))
    built = "" if both else _known_to_a_build(env.project, project, texts.get("pyproject.toml", ""), listed=listed)
    others, python_of_others = ([], "") if listed or project or built else listed_elsewhere(env.project)
    sources = _sources(texts.get("pyproject.toml", ""))
    own = [*_strings(project.get("dependencies")), *_of_the_server(project, texts.get("pyproject.toml", ""), env)]
    depended = (_Line(_from_source(each, sources, env.project)) for each in own)
    lines = [*_lines_of(env, "requirements.txt"), *depended, *_lines_in("\n".join(others), env.project)]
    wanted = _Wanted(env, nemo)
    requirements = wanted.all(line.text for line in lines if not line.constrains)
    if wanted.building and not built:
        built = "setup.py"
    if built:
        wanted.folders["."] = _hash_of_build(env.project)
    admitted = _specifiers(
        str(project.get("requires-python") or "") or python_of_others or _python_of_build(env.project, built)
    )
    chosen, ignores_patch = _python(wanted.nemo, admitted)
    return VenvRecipe(
        python or _pinned(env) or chosen,
        tuple(requirements),
        tuple(line.text for line in lines if line.constrains),
        tuple(line.text for line in _lines_of(env, "overrides.txt")),
        settings,
        tuple(wanted.folders.items()),
        built,
        ignores_patch,
    )


class _Wanted:
    """Reads requirements one by one.

    Afterwards, `nemo` has the releases of nemo-gym that they admit, None if they name none; `folders` is that of a recipe;
    `building` says whether they name the env's own folder, whose requirements only its setup.py determines.
    """

    def __init__(self, env: Env, release: str) -> None:
        self._env = env
        self._release = release
        self.nemo: SpecifierSet | None = None
        self.folders: dict[str, str] = {}
        self.building = False

    def all(self, lines: Iterable[str]) -> list[str]:
        """The lines to install, with the packages that serve the env."""
        requirements = [one for line in lines for one in self._read(line)]
        if self._env.application:
            return [*requirements, "uvicorn"]
        return [*self._gym(()), *requirements] if self.nemo is None else requirements

    def _read(self, line: str) -> Iterator[str]:
        """The lines to install for one line of requirements."""
        option = _OPTION.fullmatch(line)
        if option and option[1] not in ("-e", "--editable"):
            yield line
            return
        whole = option[2] if option else line
        wanted = PINS.sub("", whole)
        try:
            requirement = Requirement(wanted)
        except InvalidRequirement as invalid:
            if not (_FOREIGN.match(wanted) or _PLACE.match(wanted)):
                raise BadRequirements(f"{wanted!r}: {str(invalid).splitlines()[0]}") from None
            requirement = None
        named = canonicalize_name(requirement.name) if requirement else ""
        if _GYM_ROOT.search(wanted.partition("://")[0]) and named in ("", _NEMO):  # as NeMo Gym recognises it
            extras = _EXTRAS.search(wanted)
            yield from self._gym(extras[1].replace(" ", "").split(",") if extras else ())
        elif requirement and named == _NEMO:
            yield from self._named(requirement, whole)
        elif _is_local(requirement, wanted):
            yield from self._folder(wanted, self._env.project)
        else:
            yield whole

    def _folder(self, wanted: str, start: Path) -> Iterator[str]:
        """A required folder, to be built in a copy, and the requirements that it gets from elsewhere than an index."""
        place, bracket, extras = wanted.partition("[")
        folder, project = (start / place).resolve(), self._env.project.resolve()
        if folder == project and (project / "pyproject.toml").is_file():
            yield from self._own(extras.strip(" ]").replace(" ", "").split(","))
            return
        if folder == project and (project / "setup.py").is_file():
            self.building = True
            return
        if not place.startswith((".", "/")) or not folder.is_dir() or folder == project:
            raise BadRequirements(
                f"{wanted!r} is a file, the env's own folder, or not there; make the environment yourself, "
                "and give it with --gym-python"
            )
        where = os.path.relpath(folder, project)
        if where not in self.folders:
            self.folders[where] = _hash(folder)
            yield f"{COPIES}/{copied(where)}{bracket}{extras}"
            text = _text(folder / "pyproject.toml") or ""
            for each in _strings(_table(text, "project").get("dependencies")):
                taken = _from_source(each, _sources(text), folder)
                if taken.startswith((".", "/")):
                    yield from self._folder(taken, folder)
                elif taken != each:
                    yield taken

    def _own(self, extras: Sequence[str]) -> Iterator[str]:
        """The requirements of the env's own extras; the server has its folder on its path, and the rest is read anyway."""
        text = _text(self._env.project / "pyproject.toml") or ""
        optional = _table(text, "project", "optional-dependencies")
        for each in (each for extra in extras for each in _strings(optional.get(extra))):
            yield from self._read(_from_source(each, _sources(text), self._env.project))

    def _named(self, requirement: Requirement, wanted: str) -> Iterator[str]:

        if self._release or (not requirement.specifier and not requirement.url):
            yield from self._gym(requirement.extras)
        else:
            self.nemo = requirement.specifier if not requirement.url else SpecifierSet()
            yield wanted

    def _gym(self, extras: Sequence[str] | set[str]) -> Iterator[str]:
        """NeMo Gym if no release is named: the user's, the one whose wheel has this env, or what a clone requires."""
        release = self._release or _installed(self._env.root)
        self.nemo = SpecifierSet(f"=={release}" if release else "")
        needed = sorted(set(extras) - _UNNEEDED)
        clone = {} if release else _project(_text(self._env.root / "pyproject.toml"))
        if clone.get("name") == _NEMO and self._env.root != self._env.folder:
            optional = clone.get("optional-dependencies") or {}
            parts = [clone.get("dependencies"), *(optional.get(extra) for extra in needed)]
            yield from (each for part in parts for each in _strings(part))
        else:
            bracketed = f"[{','.join(needed)}]" if needed else ""
            yield f"{_NEMO}{bracketed}{self.nemo}"


def copied(where: str) -> str:
    """Where a folder is copied to, relative to all copies."""
    return "own" if where == "." else where.replace("..", "__")


def _hash(folder: Path) -> str:
    """A hash of a folder's files that go into a build."""
    found = []
    for at, inner, files_there in os.walk(folder):
        inner[:] = [each for each in inner if each not in UNBUILT]
        found += [Path(at, each) for each in files_there]
    return _hash_of(found, folder)


def _hash_of(found: Iterable[Path], folder: Path) -> str:
    """A hash of those of the paths below a folder that are files: of their names and contents."""
    files = sorted(path for path in found if path.is_file())
    return sha256(
        repr([(str(path.relative_to(folder)), sha256(path.read_bytes()).digest()) for path in files]).encode()
    ).hexdigest()


def _known_to_a_build(folder: Path, project: Mapping[str, Any], text: str, *, listed: bool) -> str:
    """The file whose build determines the requirements, if they are not listed; '' if there is none.

    That is so for dynamic dependencies, for Poetry's own table, and for a setup.py.
    """
    if "dependencies" in (project.get("dynamic") or ()):
        return "pyproject.toml"
    if not project and (_table(text, "tool", "poetry", "dependencies") or "build-system" in tomllib.loads(text)):
        return "pyproject.toml"
    return "setup.py" if not project and not listed and (folder / "setup.py").is_file() else ""


def _of_the_server(project: Mapping[str, Any], text: str, env: Env) -> Iterator[str]:
    """What the extras and groups require that name what serves an env, which its package need not require: NeMo Gym, or uvicorn."""
    serving = re.compile(r"(?:uvicorn|fastapi|flask)\b" if env.application else r"nemo[-_.]gym\b", re.IGNORECASE)
    if any(map(serving.match, _strings(project.get("dependencies")))):
        return
    for table in (project.get("optional-dependencies"), _table(text, "dependency-groups")):
        for named in table.values() if isinstance(table, dict) else ():
            if any(map(serving.match, lines := _strings(named))):
                yield from lines


def _hash_of_build(folder: Path) -> str:
    """A hash of the files that determine what a build requires."""
    names = ("setup.py", "setup.cfg", "pyproject.toml", "poetry.lock", "*.txt", "requirements/*")
    return _hash_of({each for name in names for each in folder.glob(name)}, folder)


def _python_of_build(folder: Path, built: str) -> str:
    """The Python versions in Poetry's table, a setup.cfg or a setup.py."""
    if not built:
        return ""
    poetry = _table(_text(folder / "pyproject.toml") or "", "tool", "poetry", "dependencies")
    said = (pythons_of_a_build(_text(folder / name) or "") for name in ("setup.cfg", "setup.py"))
    return pep440(poetry.get("python", "")) or next(filter(None, said), "")


def _specifiers(said: str) -> SpecifierSet:

    try:
        return SpecifierSet(said)
    except InvalidSpecifier:
        raise BadRequirements(f"{said!r} names no versions of Python") from None


def _installed(root: Path) -> str:
    """The release whose wheel contains the env; '' if none does."""
    found = next(iter(sorted(root.glob("nemo_gym-*.dist-info"))), None)
    return found.name.removeprefix("nemo_gym-").removesuffix(".dist-info") if found else ""


def _pinned(env: Env) -> str:
    """The Python version in a `.python-version`, without the patch release."""
    for folder in (env.folder, env.project, env.root):
        if found := _MINOR.match(_text(folder / ".python-version") or ""):
            return _interpreter(found[0])
    return ""


def _interpreter(minor: str) -> str:
    """The Python to ask uv for: our own interpreter if it has this version."""
    return sys.executable if minor == f"{sys.version_info.major}.{sys.version_info.minor}" else minor


def _python(nemo: SpecifierSet | None, admitted: SpecifierSet) -> tuple[str, bool]:
    """The required Python, and whether its patch release does not matter."""
    if nemo is None:
        return (sys.executable, False) if admitted.contains(sys.version.split()[0]) else (str(admitted), False)
    for minor, releases in _RELEASES.items():
        if admitted.contains(f"{minor}.99") and any(nemo.contains(release) for release in releases):
            return _interpreter(minor), minor != "3.12"
    return str(admitted) or next(iter(_RELEASES)), True


def _place(line: str) -> str:
    """The URL of a requirement that no index has; '' for any other line."""
    found = None if line.startswith("-") else _URL.search(line)
    return _USER.sub("", found[0]) if found else ""


def _is_at(url: str, place: str) -> bool:
    """Whether a URL is that of a place, or of a revision or a file there."""
    return url == place or (url.startswith(place) and url[len(place)] in "@/?" and not place.endswith(":"))


def _told(line: str) -> str:
    """A requirement that is left out, as messages show it."""
    return _USER.sub("", line) + (" (a release stands for it)" if _of_index(line) else "")


def _of_index(line: str) -> str:
    """The replacement of a requirement that is left out: a release for NeMo Gym, nothing for others."""
    named = re.match(r"nemo[-_.]gym\s*(\[[^\]]*\])?\s*@", line, re.IGNORECASE)
    return f"{_NEMO}{named[1] or ''}" if named else ""


def _is_local(requirement: Requirement | None, wanted: str) -> bool:
    """Whether the requirement is a path on this machine."""
    if requirement and not requirement.url:
        return False
    place = (requirement.url or "") if requirement else wanted
    return place.lower().startswith("file:") or not _FOREIGN.match(place)


def _lines_of(env: Env, name: str) -> Iterator[_Line]:
    """The lines of one of the env's requirements files; none if it has no such file."""
    path = env.project / name
    return _lines(path) if _text(path) else iter(())


def _lines(path: Path, depth: int = 0) -> Iterator[_Line]:
    """The lines of a requirements file and of those that it includes, without comments."""
    if depth > _DEEPEST:
        raise BadRequirements(f"{path.name}: more than {_DEEPEST} files that name each other")
    text = _text(path)
    if text is None:
        raise BadRequirements(f"{path.name} is not there")
    yield from _lines_in(text, path.parent, depth)


def _lines_in(text: str, folder: Path, depth: int = 0) -> Iterator[_Line]:
    """The lines of a text in the format of a requirements file, as if it were in a folder."""
    for raw in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = " ".join(re.sub(r"(^|\s)#.*", "", raw).split())
        option = _OPTION.fullmatch(line)
        match option and option[1]:
            case "-r" | "--requirement":
                yield from _lines(folder / _value(option), depth + 1)
            case "-c" | "--constraint":
                constraints = _lines(folder / _value(option), depth + 1)
                yield from (_Line(each.text, constrains=True) for each in constraints)
            case _ if line:
                yield _Line(line)


def _value(option: re.Match[str] | None) -> str:
    return option[2].strip("'\"") if option else ""


def _text(path: Path) -> str | None:
    """A file's text; None if it does not exist."""
    try:
        return read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BadRequirements(f"{path.name}: {getattr(error, 'strerror', None) or error}") from None


def _project(text: str | None) -> Mapping[str, Any]:
    """The table `project` of a pyproject.toml."""
    try:
        content = tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise BadRequirements(f"pyproject.toml: {error}") from None
    project = content.get("project", {})
    if not isinstance(project, dict):
        raise BadRequirements("pyproject.toml: its `project` is not a table")
    return project


def _table(text: str, *keys: str) -> Mapping[str, Any]:
    """A table of a TOML file; empty if it is missing, or the file cannot be read."""
    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
    for key in keys:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def _sources(text: str) -> Mapping[str, Any]:
    """The table `tool.uv.sources` of a pyproject.toml, by canonical names."""
    return {canonicalize_name(name): source for name, source in _table(text, "tool", "uv", "sources").items()}


def _member(name: str, project: Path) -> str:
    """The folder of a workspace's package (https://docs.astral.sh/uv/concepts/projects/workspaces/).

    Raises:
        BadRequirements: there is none. It must not be looked up in an index, where others may have taken its name.
    """
    for root in (project, *project.resolve().parents):
        workspace = _table(_text(root / "pyproject.toml") or "", "tool", "uv", "workspace")
        members = [folder for pattern in _strings(workspace.get("members")) for folder in sorted(root.glob(pattern))]
        for folder in [root, *members] if workspace else ():
            named = _table(_text(folder / "pyproject.toml") or "", "project").get("name")
            if isinstance(named, str) and canonicalize_name(named) == name:
                return str(folder)
    raise BadRequirements(f"{name} is to come from the uv workspace, and no member of one above has that name")


def _from_source(wanted: str, sources: Mapping[str, Any], project: Path) -> str:
    """A dependency with its source from `tool.uv.sources`, which uv only reads for projects, as a plain requirement."""
    try:
        requirement = Requirement(wanted)
    except InvalidRequirement:
        return wanted
    name = canonicalize_name(requirement.name)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    match sources.get(name) if name != _NEMO else None:
        case {"git": str(url), **more}:
            revision = next((f"@{more[key]}" for key in ("rev", "tag", "branch") if key in more), "")
            inside = f"#subdirectory={more['subdirectory']}" if "subdirectory" in more else ""
            return f"{name}{extras} @ git+{url}{revision}{inside}{marker}"
        case {"url": str(url)}:
            return f"{name}{extras} @ {url}{marker}"
        case {"path": str(path)}:
            return f"{path if path.startswith('/') else './' + path.removeprefix('./')}{extras}"
        case {"workspace": True}:
            return f"{_member(name, project)}{extras}"
    return wanted


def _strings(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
