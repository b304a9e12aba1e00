"""The command line: what the user asked for, checked before anything is sent."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gym_conformance.contract.openapi import AUTO, CONTRACTS
from gym_conformance.launch.env import Env, NoEnv, find_envs
from gym_conformance.trajectories.explore import PROFILES, USUAL, Profile, Search

#: Seconds a request may take: what the most impatient known client (Unsloth's notebook) grants a verify.
TIMEOUT = 30.0

#: Requests in flight at once, to this machine and to any other, which may be shared.
IN_FLIGHT_HERE, IN_FLIGHT_ELSEWHERE = 256, 4

#: Seconds within which a launched server must answer: imports, a cold disk, and two cores that others use too.
LAUNCH_TIMEOUT = 120.0

#: How an env is launched: its app, served by us without Ray, or its process as NeMo Gym starts it.
DIRECT, REAL = "direct", "real"
LAUNCHES = (DIRECT, REAL)

#: What the checks that try no trajectories send to a server of a few tools (benchmarks/judge.py counts them).
FIXED_REQUESTS = 500

#: What `--gym-report` can write, by suffix; `.xml` is pytest's own JUnit.
REPORTS = (".json", ".md", ".html", ".sarif", ".svg", ".xml")

#: What `--gym-drift` can write.
DRIFT_REPORTS = (".json", ".md", ".html")

#: Headers that each request sets for itself: given by the user, they would replace what is tested.
_OWN_HEADERS = frozenset({"cookie", "content-length", "transfer-encoding", "connection"})


class BadOption(Exception):
    """An option's value cannot be used; the message says what, where and how to mend it."""


@dataclass(frozen=True)
class Options:
    """What to judge and how.

    `url` is None for the demo and for `envs`, which are launched, each with `python` if given, and `settings`,
    `real` as NeMo Gym does, on the cluster `ray` if given; it has no trailing slash. `timeout` is in seconds.
    """

    url: str | None = None
    data: tuple[Path, ...] = ()
    strict: bool = False
    reports: tuple[Path, ...] = ()
    timeout: float = TIMEOUT
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    contract: str = AUTO
    search: Search = USUAL
    replay: tuple[Path, ...] = ()
    pid: int | None = None
    in_flight: int = IN_FLIGHT_HERE
    baseline: Path | None = None
    baseline_write: Path | None = None
    drift: tuple[Path, ...] = ()
    lock: Path | None = None
    lock_update: bool = False
    envs: tuple[Env, ...] = ()
    python: str = ""
    settings: tuple[str, ...] = ()
    launch_timeout: float = LAUNCH_TIMEOUT
    real: bool = False
    resume: bool = False
    ray: str = ""

    def lock_of(self, env: Env | None) -> Path | None:
        """The lock of one server: of several, each has its own in its folder."""
        return env.folder / self.lock if env and self.lock and len(self.envs) > 1 else self.lock


def read_options(
    *,
    url: str | None,
    demo: bool,
    data: Sequence[str],
    strict: bool,
    reports: Sequence[str],
    timeout: str | float | None,
    headers: Sequence[str],
    contract: str | None = None,
    profile: str | None = None,
    seed: str | None = None,
    replay: Sequence[str] = (),
    pid: str | None = None,
    in_flight: str | None = None,
    baseline: str | Path | None = None,
    baseline_write: str | None = None,
    drift: Sequence[str] = (),
    lock: str | Path | None = None,
    lock_update: bool = False,
    envs: Sequence[str] = (),
    python: str | None = None,
    settings: Sequence[str] = (),
    launch_timeout: str | float | None = None,
    launch: str | None = None,
    resume: bool = False,
    ray: str | None = None,
) -> Options:
    """Check what was given.

    Raises:
        BadOption: a value cannot be used.
    """
    if demo and url is not None:
        raise BadOption("--gym-url and --gym-demo: give one of them")
    if demo and data:
        raise BadOption("--gym-data: --gym-demo has data of its own; leave out one of them")
    if lock_update and not lock:
        raise BadOption("--gym-lock-update: there is no lock to write; give --gym-lock FILE too")
    found = _read_envs(envs, url=url, demo=demo)
    if len(found) > 1:
        _refuse_for_many({"--gym-data": data, "--gym-replay": replay, "--gym-pid": pid})
    elif resume:
        raise BadOption("--gym-resume: it is about several servers; give several with --gym-env")
    if ray is not None and not (ray and found):
        raise BadOption("--gym-ray: give a cluster's address, such as 10.0.0.1:6379, and envs to launch with --gym-env")
    read_url = None if demo or found else _read_url(url or "")
    return Options(
        url=read_url,
        data=tuple(Path(path) for path in data),
        strict=strict,
        reports=tuple(_read_report("--gym-report", path, REPORTS) for path in reports),
        timeout=_read_timeout(timeout),
        headers=dict(_read_header(header) for header in headers),
        contract=_read_contract(contract),
        search=Search(_read_profile(profile), _read_count("--gym-seed", seed, least=0)),
        replay=tuple(Path(path) for path in replay),
        pid=_read_count("--gym-pid", pid, least=1),
        in_flight=_read_count("--gym-in-flight", in_flight, least=1) or _usual_in_flight(read_url),
        baseline=Path(baseline) if baseline else None,
        baseline_write=_read_new_baseline(baseline_write) if baseline_write else None,
        drift=tuple(_read_report("--gym-drift", path, DRIFT_REPORTS) for path in drift),
        lock=_read_lock(lock, found, update=lock_update) if lock else None,
        lock_update=lock_update,
        envs=found,
        python=_read_python(python) if python else "",
        settings=tuple(_read_setting(setting) for setting in settings),
        launch_timeout=_read_timeout(launch_timeout, "--gym-launch-timeout", LAUNCH_TIMEOUT),
        real=_read_launch(launch, found) if launch else False,
        resume=resume,
        ray=ray or "",
    )


def is_here(url: str | None) -> bool:
    """Whether the server is on this machine, and so nobody else's; None is the demo."""
    host = urlsplit(url).hostname if url else "localhost"
    return host in ("localhost", "::1") or (host or "").startswith("127.")


def _usual_in_flight(url: str | None) -> int:
    return IN_FLIGHT_HERE if is_here(url) else IN_FLIGHT_ELSEWHERE


def _read_profile(given: str | None) -> Profile:
    if not given:
        return USUAL.profile
    if given not in PROFILES:
        raise BadOption(f"--gym-profile {given!r}: unknown; give one of {', '.join(PROFILES)}")
    return PROFILES[given]


def _read_contract(given: str | None) -> str:
    if given and given not in CONTRACTS:
        raise BadOption(f"--gym-contract {given!r}: unknown; give one of {', '.join(CONTRACTS)}")
    return given or AUTO


def _read_count(option: str, given: str | None, *, least: int) -> int | None:
    if given in (None, ""):
        return None
    if not given.isascii() or not given.isdigit() or int(given) < least:
        raise BadOption(f"{option} {given!r}: give a whole number, {least} or more")
    return int(given)


def _read_url(url: str) -> str:
    if "@" in url.partition("://")[2].partition("/")[0]:  # first, so that no other message shows the password
        raise BadOption("--gym-url: it holds a user name or password; give --gym-header 'Authorization: ...' instead")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadOption(f"--gym-url {url!r}: {error}; give a URL such as http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(url):
        raise BadOption(f"--gym-url {url!r}: not an http or https URL; give one such as http://127.0.0.1:8000")
    if "?" in url or "#" in url:
        raise BadOption(
            f"--gym-url {url!r}: it has a query or a fragment; give the URL that /seed_session is appended to"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "") + parts.path.rstrip("/")


def _read_report(option: str, given: str, suffixes: Sequence[str]) -> Path:
    path = Path(given)
    if path.suffix not in suffixes:
        raise BadOption(f"{option} {given!r}: unknown suffix {path.suffix!r}; give one of {', '.join(suffixes)}")
    _ensure_writable(option, path, given)
    return path


def _ensure_writable(option: str, path: Path, given: str) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise BadOption(f"{option} {given!r}: its folder does not exist; make it first")
    if path.is_dir():
        raise BadOption(f"{option} {given!r}: that is a folder; give a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadOption(f"{option} {given!r}: its folder cannot be written to; give one that can")


def _read_lock(given: str | Path, envs: tuple[Env, ...], *, update: bool) -> Path:
    """The lock's place: it must be there, unless it is to be written.

    Of several servers it is a name, of a file in each one's folder; an ini file's path, then, is known by its name.
    """
    if len(envs) > 1:
        path = Path(given.name) if isinstance(given, Path) else Path(given)
        if path.name != str(path):
            raise BadOption(
                f"--gym-lock {str(path)!r}: of several servers, give a name, of a file in each one's folder"
            )
        if without := next((env for env in envs if env.application), None):
            raise BadOption(f"--gym-lock: {without.application} has no folder of its own, beside other servers")
    else:
        path = Path(given)
    for place in [env.folder / path for env in envs] if len(envs) > 1 else [path]:
        if update:
            _ensure_writable("--gym-lock", place, str(place))
        elif not place.is_file():
            raise BadOption(f"--gym-lock {str(place)!r}: there is no such file; write it with --gym-lock-update")
    return path


def _read_new_baseline(given: str) -> Path:
    path = Path(given)
    if path.exists():
        raise BadOption(f"--gym-baseline-write {given!r}: it exists, with reasons perhaps; remove it, or give another")
    if not path.absolute().parent.is_dir():
        raise BadOption(f"--gym-baseline-write {given!r}: its folder does not exist; make it first")
    return path


def _read_envs(given: Sequence[str], *, url: str | None, demo: bool) -> tuple[Env, ...]:
    if given and (demo or url is not None):
        raise BadOption("--gym-env, --gym-url and --gym-demo: give one of them")
    try:
        return find_envs(given, Path.cwd())
    except NoEnv as error:
        raise BadOption(f"--gym-env {error}") from None


def _refuse_for_many(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise BadOption(f"{option}: it is about one server, and --gym-env names several; give one of those")


def _read_python(given: str) -> str:
    found = shutil.which(given)
    if found is None:
        raise BadOption(f"--gym-python {given!r}: no such program; give an interpreter, such as .venv/bin/python")
    return str(Path(found).absolute())


def _read_launch(given: str, envs: Sequence[Env]) -> bool:
    if given not in LAUNCHES:
        raise BadOption(f"--gym-launch {given!r}: unknown; give one of {', '.join(LAUNCHES)}")
    if given == REAL and (without := next((env for env in envs if env.application), None)):
        raise BadOption(
            f"--gym-launch {REAL}: {without.application} is no env as NeMo Gym lays it out; give its folder"
        )
    return given == REAL


def _read_setting(given: str) -> str:
    key, equals, _ = given.partition("=")
    if not equals or not key.strip("+ "):
        raise BadOption("--gym-env-set: not of the form key=value; give one such as search_api_key=...")
    return given.lstrip("+ ")


def _read_timeout(given: str | float | None, option: str = "--gym-timeout", usual: float = TIMEOUT) -> float:
    try:
        seconds = usual if given is None or given == "" else float(given)
    except ValueError:
        raise BadOption(f"{option} {given!r}: not a number; give seconds, such as 30") from None
    if not 0 < seconds <= 3600:  # noqa: PLR2004 - an hour
        raise BadOption(f"{option} {given!r}: out of range; give seconds above 0 and up to 3600")
    return seconds


def _read_header(given: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    name, value = name.strip(), value.strip()
    legal = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not colon or not legal or not value.isascii() or not value.isprintable():
        raise BadOption(
            "--gym-header: not of the form 'Name: value', in printable ASCII; give one such as "
            "'Authorization: Bearer ...' (what was given is not shown here)"
        )
    if name.lower() in _OWN_HEADERS:
        raise BadOption(f"--gym-header {name}: every request sets that itself; leave it out")
    return name, value


def _is_plain(url: str) -> bool:
    """Whether it can stand in a request and in a shell command as it is."""
    return url.isprintable() and not any(character.isspace() or character in '"<>\\^`{|}' for character in url)
