"""The options: what a user may give, its default, its help, and how it is read and validated.

`Options` is the table. pytest's options, the ini keys, `--help`, the validation and README's table are all made from
its fields, each declared as an `Option`. Every pytest run loads this module, so it imports nothing heavy.

`python -m gym_conformance.options` prints README's table.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from gym_conformance.calibration.row_plan import RowPlan
from gym_conformance.contract.endpoints import AUTO, CONTRACTS
from gym_conformance.documents import is_file
from gym_conformance.option_readers import (
    BadOption,
    ensure_installer,
    ensure_writable,
    find_envs,
    read_choice,
    read_count,
    read_counts,
    read_header,
    read_new_file,
    read_oracle,
    read_path,
    read_program,
    read_release,
    read_report,
    read_rows,
    read_seconds,
    read_setting,
    read_text,
    read_url,
)
from gym_conformance.trajectories.profiles import PROFILES, QUICK, Profile, Search

if TYPE_CHECKING:  # PyYAML is heavy
    from gym_conformance.launch.env import Env
    from gym_conformance.oracle import Oracle

#: Seconds that a request may take: the shortest time limit of a known client (Unsloth's notebook, for a verify).
TIMEOUT: Final = 30.0

#: Seconds that judging one server may take: for the fixed checks, and for the searches, as a multiple of the profile's
#: seconds. Sound servers with tools of 300 ms and sessions of 25 calls take 1,100 s; running out of time fails the run.
MAX_TIME, MAX_TIME_SEARCHES = 1800.0, 60.0

_WEEK: Final = 7 * 24 * 3600.0

#: Requests in flight at once: to a server on this machine, and to one elsewhere, which others may be using.
IN_FLIGHT_HERE, IN_FLIGHT_ELSEWHERE = 256, 4

#: Seconds within which a launched server must answer, which allows for imports, a cold disk and a busy machine.
LAUNCH_TIMEOUT: Final = 120.0

#: What replaces a sandbox that a config refers to but does not define.
SANDBOXES: Final = (SCRIPTED := "scripted", LOCAL := "local")

#: How an env is launched: we serve its app, without Ray, or it runs in its own process, as NeMo Gym starts it.
LAUNCHES: Final = (DIRECT := "direct", REAL := "real")

#: The most processes of one server.
MOST_WORKERS: Final = 64

#: How many episodes run at once: one after the other of these numbers.
LOADS: Final = (1, 8, 64, 256, 1024)

#: Requests that the checks other than properties send to a server of a few tools (counted by benchmarks/judge.py).
FIXED_REQUESTS: Final = 500

#: What `--gym-report` can write, by suffix; `.xml` is pytest's own JUnit.
REPORTS: Final = (".json", ".jsonl", ".md", ".html", ".sarif", ".svg", ".xml")

#: What `--gym-drift` can write.
DRIFT_REPORTS: Final = (".json", ".md", ".html")

_ROW: Final = "option"


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: its name on the command line, such as `--gym-url`.
        metavar: the placeholder for its value in `--help` and README; '' for a flag.
        help: what it does, for `--help` and README.
        more: what README adds, in Markdown.
        read: converts the text that was given to a value; raises `BadOption`.
        many: collects the values of an option that may be repeated; None if it may be given only once.
        ini: whether it may be set in the ini file.
        paths: whether its values are paths; in the ini file they are relative to that file.
        bare: the value to use if the option is given without one; '' if a value is required.
        chooses: whether it selects what is judged; if one such option is on the command line, those in the ini file are
            ignored.
    """

    name: str
    metavar: str
    help: str
    more: str
    read: Callable[[str, str], Any]
    many: Callable[[Iterable[Any]], Any] | None
    ini: bool
    paths: bool
    chooses: bool
    bare: str

    @property
    def ini_key(self) -> str:
        """Its name in the ini file, which is also its `dest` in pytest."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def ini_type(self) -> str:
        """The type of its ini key, as `Parser.addini` names it."""
        if not self.metavar:
            return "bool"
        if self.paths:
            return "paths"
        return "linelist" if self.many else "string"

    @property
    def ini_help(self) -> str:
        """The help of its ini key."""
        return f"the same as {self.name}{', one per line' if self.many else ''}"

    def value(self, given: Any) -> Any:
        """Convert what was given: a text, a list of texts, or True for a flag or if the value was left out.

        Raises:
            BadOption: the value is missing or invalid.
        """
        if not self.metavar:
            return bool(given)
        if given is True or (isinstance(given, list) and True in given):
            raise BadOption(f"{self.name}: its value is missing; give {self.name} {self.metavar}")
        try:
            return self.many(self.read(self.name, one) for one in given) if self.many else self.read(self.name, given)
        except OSError as error:  # the name is too long, for example
            named = f" {str(error.filename)[:100]!r}" if error.filename else ""
            raise BadOption(f"{self.name}{named}: {error.strerror}; give another file") from None


def _option(
    spec: str,
    help: str,  # noqa: A002 - as argparse calls it
    read: Callable[..., Any] = read_text,
    *,
    default: Any = None,
    more: str = "",
    many: Callable[[Iterable[Any]], Any] | None = None,
    ini: bool = True,
    paths: bool = False,
    chooses: bool = False,
    bare: str = "",
) -> Any:
    """A field of `Options`; `spec` is the option's name and, unless it is a flag, its metavar."""
    name, _, metavar = spec.partition(" ")
    row = Option(name, metavar, help, more, read, many, ini, paths, chooses, bare)
    metadata = {_ROW: row}
    if many:
        return field(default_factory=lambda: many(()), metadata=metadata, repr=many is not dict)
    return field(default=default if metavar else False, metadata=metadata)


def _profiles() -> str:
    said = (f"`{each.name}` {each.examples:,}, or {each.seconds:g} s" for each in PROFILES.values())
    return f"for each property: {', '.join(said)}; longer where other work keeps the machine busy; `ci` tries the same ones in every run"


@dataclass(frozen=True)
class Options:
    """What to judge and how: the table of all options.

    `url` is None for the demo and for envs, which are launched. The repr leaves out `headers` because they are secrets.
    """

    url: str | None = _option(
        "--gym-url URL",
        "the server to judge, such as http://127.0.0.1:8000",
        read_url,
        more="a path in it is kept as a prefix, as behind a proxy",
        chooses=True,
    )
    demo: bool = _option("--gym-demo", "judge an embedded reference server instead", chooses=True)
    envs: "tuple[Env, ...]" = _option(
        "--gym-env DIR",
        "launch an env and judge it: its folder, a YAML file in it, FOLDER:SERVER if that declares several servers, a quoted glob, "
        "or [FOLDER/]module:attribute of an ASGI or WSGI app (repeatable)",
        many=find_envs,
        chooses=True,
    )
    python: str = _option(
        "--gym-python PATH",
        "the Python interpreter that runs the env (default: the one in its .venv, or else this one)",
        read_program,
        default="",
    )
    install: bool = _option(
        "--gym-install",
        "install the env's requirements into an environment of its own, created once and kept in your cache folder",
        more="[how](docs/launching.md#installing-what-it-requires); needs the extra `gym-conformance[install]`",
    )
    nemo: str = _option(
        "--gym-nemo VERSION",
        "the release of nemo-gym that --gym-install installs (default: the one that the env requires)",
        read_release,
        default="",
    )
    settings: tuple[str, ...] = _option(
        "--gym-env-set KEY=VALUE",
        "set a key in the env's config, as `gym env start ++KEY=VALUE` does (repeatable)",
        read_setting,
        many=tuple,
    )
    launch: str = _option(
        "--gym-launch HOW",
        "how to launch an env: direct (default) serves its app without Ray, real starts its own process, as NeMo Gym does",
        partial(read_choice, among=dict(zip(LAUNCHES, LAUNCHES, strict=True))),
        default=DIRECT,
    )
    workers: int = _option(
        "--gym-workers N",
        "serve the env with N processes on one port, as `num_workers` in its config does (default: 1)",
        partial(read_count, least=1),
        default=1,
        more=f"at most {MOST_WORKERS}",
    )
    sandbox: str = _option(
        "--gym-sandbox HOW",
        "what replaces a sandbox that the config refers to but does not define: scripted (default), which runs nothing, or local",
        partial(read_choice, among=dict(zip(SANDBOXES, SANDBOXES, strict=True))),
        default=SCRIPTED,
        more="local RUNS COMMANDS ON THIS MACHINE, as your user, through nemo-gym's own local provider",
    )
    network: bool = _option(
        "--gym-network",
        "let a launched server use the network while it is judged",
        more="without it, requests to other hosts fail and are recorded; [how](docs/launching.md#keys-and-the-network)",
    )
    launch_timeout: float = _option(
        "--gym-launch-timeout SECONDS",
        f"how long a launched server may take to start answering (default: {LAUNCH_TIMEOUT:g})",
        read_seconds,
        default=LAUNCH_TIMEOUT,
    )
    ray: str | None = _option(
        "--gym-ray ADDRESS",
        "judge envs as tasks on this Ray cluster, such as 10.0.0.1:6379 or auto; with --gym-load, send the load from its nodes",
        more="see [judging](docs/launching.md#on-a-cluster) and [load](docs/load.md#from-a-clusters-nodes)",
        ini=False,
    )
    resume: bool = _option(
        "--gym-resume", "with several servers, judge only those that the last run did not finish", ini=False
    )
    watch: bool = _option(
        "--gym-watch",
        "judge again whenever a file of the env changes, starting with the checks that failed, until Ctrl-C",
        ini=False,
    )
    data: tuple[Path, ...] = _option(
        "--gym-data PATH",
        # pytest does not know the option yet when it looks for the ini file, and takes its value for the path of a test
        "dataset rows: a JSONL file or a folder of them; recorded rollouts next to it are read too (repeatable; "
        "write --gym-data=PATH for a file outside your project, or pytest uses the settings that it finds there)",
        read_path,
        more="read line by line, so files may be large",
        many=tuple,
        paths=True,
    )
    oracle: "Oracle | None" = _option(
        "--gym-oracle WHAT",
        "where right answers come from if no rollouts are recorded: module:function, which takes a row and returns "
        "output items or a text, or a JSONL file of reference outputs",
        read_oracle,
        more="[how](docs/calibration.md#without-recorded-rollouts)",
    )
    rows: int | None = _option(
        "--gym-rows N",
        "check for N rows of the files, or for all, that each rewards its own answer and no other",
        read_rows,
        more="[how](docs/calibration.md#whole-datasets)",
    )
    rows_keep: Path | None = _option(
        "--gym-rows-keep FILE",
        "with --gym-rows: write the rows that pass to this file, byte for byte",
        partial(read_report, suffixes=(".jsonl",)),
        paths=True,
    )
    strict: bool = _option("--gym-strict", "let SHOULD findings fail the run, too")
    reports: tuple[Path, ...] = _option(
        "--gym-report FILE",
        f"write a report in the format that the suffix names: {', '.join(REPORTS[:-1])} or {REPORTS[-1]} (repeatable)",
        partial(read_report, suffixes=REPORTS),
        more="JSON has [a schema](conformance/gym_conformance/reports/report.schema.json), `.svg` is a badge, `.xml` JUnit, "
        "`.jsonl` has a line for each row (with `--gym-rows`)",
        many=tuple,
        paths=True,
    )
    timeout: float = _option(
        "--gym-timeout SECONDS",
        f"how long one request may take (default: {TIMEOUT:g})",
        read_seconds,
        default=TIMEOUT,
    )
    max_time: float | None = _option(
        "--gym-max-time SECONDS",
        "how long judging one server may take; checks that have not run by then are untestable "
        f"(default: {MAX_TIME:g}, plus {MAX_TIME_SEARCHES:g} times the profile's seconds)",
        partial(read_seconds, most=_WEEK),
    )
    headers: Mapping[str, str] = _option(
        "--gym-header 'NAME: VALUE'",
        "a header to send with every request; its value is redacted wherever it would be shown (repeatable)",
        read_header,
        many=dict,
    )
    contract: str = _option(
        "--gym-contract NAME",
        "how sessions are opened: cookie, typed, or auto (default: as the server's OpenAPI document or its replies say)",
        partial(read_choice, among=dict(zip(CONTRACTS, CONTRACTS, strict=True))),
        default=AUTO,
    )
    profile: Profile = _option(
        "--gym-profile NAME",
        f"how many trajectories to try: {', '.join(PROFILES)} (default: {QUICK.name})",
        partial(read_choice, among=PROFILES),
        default=QUICK,
        more=_profiles(),
    )
    seed: int | None = _option(
        "--gym-seed N", "a random seed, to try the same trajectories in every run", partial(read_count, least=0)
    )
    replay: tuple[Path, ...] = _option(
        "--gym-replay FILE",
        "try only the schedule in this file, which was written when a property failed (repeatable)",
        read_path,
        many=tuple,
        paths=True,
    )
    pid: int | None = _option(
        "--gym-pid PID",
        "the process id of a server on this machine, to measure what sessions leave behind: memory, files, child processes",
        partial(read_count, least=1),
    )
    load: tuple[int, ...] = _option(
        "--gym-load N,N,...",
        "run whole episodes, N at once, and compare their replies and rewards with those of an episode that runs alone",
        read_counts,
        default=(),
        more=f"`--gym-load` without numbers means {','.join(map(str, LOADS))}; [docs/load.md](docs/load.md)",
        bare=",".join(map(str, LOADS)),
    )
    load_anyway: bool = _option(
        "--gym-load-anyway",
        "allow --gym-load on a server that is not on this machine, although others may be using it",
        ini=False,
    )
    at_once: int | None = _option(
        "--gym-in-flight N",
        f"the most concurrent requests (default: {IN_FLIGHT_HERE}, or {IN_FLIGHT_ELSEWHERE} to a server on another machine)",
        partial(read_count, least=1),
    )
    baseline: Path | None = _option(
        "--gym-baseline FILE",
        "accepted findings, with reasons (TOML)",
        read_path,
        more="a stale entry fails the run ([docs/gate.md](docs/gate.md))",
        paths=True,
    )
    baseline_write: Path | None = _option(
        "--gym-baseline-write FILE", "write the findings that fail the run to a new baseline", read_new_file, ini=False
    )
    before: Path | None = _option(
        "--gym-before FILE",
        "an earlier JSON report: say what has been fixed since, and what is new or changed",
        read_path,
        more="in the summary and every report ([docs/gate.md](docs/gate.md#since-an-earlier-report))",
        paths=True,
    )
    drift: tuple[Path, ...] = _option(
        "--gym-drift FILE",
        "write a report on drift alone, which shows how rows and server describe each tool; .json, .md or .html (repeatable)",
        partial(read_report, suffixes=DRIFT_REPORTS),
        many=tuple,
        paths=True,
    )
    lock: Path | None = _option(
        "--gym-lock FILE",
        "compare the tools that rows and server declare with this lock file",
        read_path,
        more="[docs/gate.md](docs/gate.md#the-lock)",
        paths=True,
    )
    lock_update: bool = _option("--gym-lock-update", "rewrite the lock file", ini=False)

    @property
    def bound(self) -> float:
        """Seconds that judging one server may take."""
        usual = MAX_TIME + MAX_TIME_SEARCHES * self.profile.seconds
        return self.max_time or (usual if self.rows is None else _WEEK)

    def row_plan(self, files: tuple[Path, ...]) -> RowPlan | None:
        """Which rows of these files --gym-rows checks, and what it writes about them; None without that option."""
        if self.rows is None:
            return None
        report = next((path for path in self.reports if path.suffix == ".jsonl"), None)
        return RowPlan(files, self.rows or None, report, self.rows_keep, self.resume)

    @property
    def real(self) -> bool:
        """Whether envs are launched in their own process, as NeMo Gym starts them."""
        return self.launch == REAL

    @property
    def search(self) -> Search:
        """How trajectories are searched for."""
        return Search(self.profile, self.seed)

    @property
    def in_flight(self) -> int:
        """How many requests may be in flight at once."""
        return self.at_once or (IN_FLIGHT_HERE if is_here(self.url) else IN_FLIGHT_ELSEWHERE)


#: The option that each field of `Options` is read from.
TABLE: Final[Mapping[str, Option]] = {each.name: each.metadata[_ROW] for each in fields(Options)}


def _only_launched(name: str) -> tuple[Callable[[Options], object], str]:
    """The conflict of an option that has no effect on a server that was started elsewhere."""
    message = f"{TABLE[name].name}: it applies only to a server that is launched; give --gym-env DIR too"
    return lambda it: getattr(it, name) != getattr(Options(), name) and not it.envs, message


#: What cannot be given together, and how to fix it.
_CONFLICTS: Final[tuple[tuple[Callable[[Options], object], str], ...]] = (
    (lambda it: it.demo and it.url, "--gym-url and --gym-demo: give one of them"),
    (lambda it: it.envs and (it.demo or it.url), "--gym-env, --gym-url and --gym-demo: give one of them"),
    *map(
        _only_launched, ("python", "install", "settings", "launch", "workers", "sandbox", "network", "launch_timeout")
    ),
    (
        lambda it: it.workers > MOST_WORKERS,
        f"--gym-workers: more than {MOST_WORKERS}; give fewer, since a few show what several processes do",
    ),
    (
        lambda it: it.rows is None and (it.rows_keep or any(path.suffix == ".jsonl" for path in it.reports)),
        "--gym-rows-keep and --gym-report FILE.jsonl: no rows are checked; give --gym-rows N, or --gym-rows all, too",
    ),
    (
        lambda it: it.rows is not None and len(it.envs) > 1,
        "--gym-rows: several servers would write to the same files; judge one at a time",
    ),
    (
        lambda it: it.rows is not None and it.url and not it.data,
        "--gym-rows: there are no rows to check; give --gym-data PATH too",
    ),
    (
        lambda it: it.oracle and it.url and not it.data,
        "--gym-oracle: there are no rows to answer; give --gym-data PATH too",
    ),
    (lambda it: it.nemo and not it.install, "--gym-nemo: nothing is installed; give --gym-install too"),
    (
        lambda it: it.load and not it.load_anyway and not is_here(it.url),
        "--gym-load: the server is not on this machine, and others may be using it; give --gym-load-anyway too",
    ),
    (
        lambda it: it.load and it.ray and it.envs,
        "--gym-load, --gym-ray and --gym-env: other nodes cannot reach an env that is launched; start it, and give --gym-url",
    ),
    (lambda it: it.load_anyway and not it.load, "--gym-load-anyway: there is no load; give --gym-load too"),
    (lambda it: it.watch and not it.envs, "--gym-watch: there are no files to watch; give --gym-env DIR too"),
    (lambda it: it.demo and it.data, "--gym-data: --gym-demo has data of its own; leave out one of them"),
    (
        lambda it: it.lock_update and not it.lock,
        "--gym-lock-update: there is no lock to write; give --gym-lock FILE too",
    ),
)


def read_options(given: Mapping[str, Any]) -> Options:
    """Read and validate what was given, by the names of the fields; defaults fill in the rest.

    Raises:
        BadOption: a value is invalid, or two options conflict.
    """
    options = Options(**{name: TABLE[name].value(value) for name, value in given.items()})
    for contradict, message in _CONFLICTS:
        if contradict(options):
            raise BadOption(message)
    if options.launch == REAL and (without := next((env for env in options.envs if env.application), None)):
        raise BadOption(
            f"--gym-launch {REAL}: {without.application} is not an env in NeMo Gym's layout; give its folder"
        )
    if options.install:
        ensure_installer()
    _refuse_same_file(options)
    return options


def _refuse_same_file(options: Options) -> None:
    """Refuse to write two reports to one file, or any to a file that rows are read from.

    Raises:
        BadOption: two options name the same file.
    """
    data = (*options.data, *(file for env in options.envs for file in env.data))
    rows = {Path(os.path.realpath(path)) for path in data}
    seen: dict[Path, str] = {}
    for option, path in _written(options):
        whole = Path(os.path.realpath(path))  # unlike Path.resolve, it accepts links that lead to themselves
        if whole in rows or (path.suffix == ".jsonl" and is_file(path) and whole.parent in rows):
            raise BadOption(f"{option} {str(path)!r}: rows are read from it, and would be lost; give another file")
        if before := seen.get(place := path.parent.resolve() / path.name):  # a link is replaced, not followed
            raise BadOption(f"{option} {str(path)!r}: {before} names the same file; give each a file of its own")
        seen[place] = option


def _written(options: Options) -> Iterator[tuple[str, Path]]:
    """The files that will be written, each with the option that names it."""
    single = {
        "--gym-rows-keep": options.rows_keep,
        "--gym-baseline-write": options.baseline_write,
        "--gym-lock": options.lock if options.lock_update else None,
    }
    yield from (("--gym-report", path) for path in options.reports)
    yield from (("--gym-drift", path) for path in options.drift)
    yield from ((option, path) for option, path in single.items() if path)


def ensure_lock(options: Options) -> None:
    """Ensure that the lock file exists or, if it is to be updated, can be written.

    Raises:
        BadOption: it does not exist, or cannot be written.
    """
    if options.lock is None:
        return
    if options.lock_update:
        ensure_writable("--gym-lock", options.lock)
    elif not os.path.exists(options.lock):  # noqa: PTH110 - `Path.exists` raises for a name that is too long
        raise BadOption(f"--gym-lock {str(options.lock)!r}: there is no such file; write it with --gym-lock-update")


def is_here(url: str | None) -> bool:
    """Whether the server is on this machine, so that nobody else is using it; None stands for the demo."""
    host = urlsplit(url).hostname if url else "localhost"
    return host in ("localhost", "::1") or (host or "").startswith("127.")


def readme_table() -> str:
    """The options as a table in Markdown."""
    rows = (f"| `{row.name}{' ' if row.metavar else ''}{row.metavar}` | {_meaning(row)} |" for row in TABLE.values())
    return "\n".join(["| option | meaning |", "|---|---|", *rows]) + "\n"


def _meaning(row: Option) -> str:
    return row.help + (f"; {row.more}" if row.more else "") + ("" if row.ini else " (no ini key)")


if __name__ == "__main__":
    print(readme_table(), end="")  # noqa: T201 - the table on standard output is what it is for
