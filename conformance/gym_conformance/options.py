"""The options, once: what a user may give, its default, its help, and what becomes of it.

`Options` is the table. pytest's options, the ini keys, `--help`, the validation and README's table are all made from its
fields, each declared as an `Option`. Every pytest run loads this module, so it imports nothing heavy.

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

#: Seconds a request may take: what the most impatient known client (Unsloth's notebook) grants a verify.
TIMEOUT: Final = 30.0

#: Seconds that judging one server may take: the fixed checks, and so many times the seconds of the profile for searches.
#: Sound servers with tools of 300 ms and sessions of 25 calls take 1,100 s; running out of time is red.
MAX_TIME, MAX_TIME_SEARCHES = 1800.0, 60.0

_WEEK: Final = 7 * 24 * 3600.0

#: Requests in flight at once, to this machine and to any other, which may be shared.
IN_FLIGHT_HERE, IN_FLIGHT_ELSEWHERE = 256, 4

#: Seconds within which a launched server must answer: imports, a cold disk, and two cores that others use too.
LAUNCH_TIMEOUT: Final = 120.0

#: How an env is launched: its app, served by us without Ray, or its process as NeMo Gym starts it.
SANDBOXES: Final = (SCRIPTED := "scripted", LOCAL := "local")
LAUNCHES: Final = (DIRECT := "direct", REAL := "real")

#: Processes of one server.
MOST_WORKERS: Final = 64

#: Episodes at once, one number after the other.
LOADS: Final = (1, 8, 64, 256, 1024)

#: What the checks that try no trajectories send to a server of a few tools (benchmarks/judge.py counts them).
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
        name: on the command line; `ini_key` in the ini file.
        metavar: its value in `--help` and README; '' for a flag.
        help: what it does, for `--help` and README.
        more: what README adds, in Markdown.
        read: makes the value of a text; raises `BadOption`.
        many: gathers the values of an option that may be given several times; None where it may be given once.
        ini: whether the ini file may have it.
        paths: whether a relative path in the ini file starts at the ini file.
        bare: its value where it is given without one; '' where it must have one.
        chooses: whether it says what is judged; one such on the command line replaces all of them in the ini file.
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
        """Its name in the ini file, and pytest's own for it."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def ini_type(self) -> str:
        """What pytest calls the type of its ini key."""
        if not self.metavar:
            return "bool"
        if self.paths:
            return "paths"
        return "linelist" if self.many else "string"

    @property
    def ini_help(self) -> str:
        """What `--help` says of the ini key."""
        return f"the same as {self.name}{', one a line' if self.many else ''}"

    def value(self, given: Any) -> Any:
        """The value of what was given: a text, several, or True for a flag, and where its value was left out.

        Raises:
            BadOption: it cannot be used.
        """
        if not self.metavar:
            return bool(given)
        if given is True or (isinstance(given, list) and True in given):
            raise BadOption(f"{self.name}: its value is missing; give {self.name} {self.metavar}")
        try:
            return self.many(self.read(self.name, one) for one in given) if self.many else self.read(self.name, given)
        except OSError as error:  # pathlib's answer to a name that is too long
            raise BadOption(f"{self.name}: {error.strerror}; give another file") from None


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
    """A field of `Options`; `spec` is the option's name and its metavar."""
    name, _, metavar = spec.partition(" ")
    row = Option(name, metavar, help, more, read, many, ini, paths, chooses, bare)
    metadata = {_ROW: row}
    if many:
        return field(default_factory=lambda: many(()), metadata=metadata, repr=many is not dict)
    return field(default=default if metavar else False, metadata=metadata)


def _profiles() -> str:
    said = (f"`{each.name}` {each.examples:,}, or {each.seconds:g} s" for each in PROFILES.values())
    return f"for each property: {', '.join(said)}; `ci` tries the same ones each time"


@dataclass(frozen=True)
class Options:
    """What to judge and how: the table of all options.

    `url` is None for the demo and for envs, which are launched. Headers are secrets, and not shown in the repr.
    """

    url: str | None = _option(
        "--gym-url URL",
        "the server to judge, such as http://127.0.0.1:8000",
        read_url,
        more="a path is a prefix, as behind a proxy",
        chooses=True,
    )
    demo: bool = _option("--gym-demo", "judge an embedded reference server instead", chooses=True)
    envs: "tuple[Env, ...]" = _option(
        "--gym-env DIR",
        "launch an env and judge it: its folder, a YAML in it, FOLDER:SERVER where that declares several, a quoted glob, or [FOLDER/]module:attribute of an ASGI or WSGI app (repeatable)",
        many=find_envs,
        chooses=True,
    )
    python: str = _option(
        "--gym-python PATH",
        "the interpreter to launch with (default: the env's .venv, else this one)",
        read_program,
        default="",
    )
    install: bool = _option(
        "--gym-install",
        "install what the env requires into an environment of its own, made once and kept in your cache folder",
        more="[how](docs/launching.md#installing-what-it-requires); needs the extra `gym-conformance[install]`",
    )
    nemo: str = _option(
        "--gym-nemo VERSION",
        "the release of nemo-gym that --gym-install installs (default: the one that the env asks for)",
        read_release,
        default="",
    )
    settings: tuple[str, ...] = _option(
        "--gym-env-set KEY=VALUE",
        "set a key of its config, as `gym env start ++KEY=VALUE` does (repeatable)",
        read_setting,
        many=tuple,
    )
    launch: str = _option(
        "--gym-launch HOW",
        "direct (default: serve its app without Ray) or real (its own process, as NeMo Gym starts it)",
        partial(read_choice, among=dict(zip(LAUNCHES, LAUNCHES, strict=True))),
        default=DIRECT,
    )
    workers: int = _option(
        "--gym-workers N",
        "serve it with this many processes on one port, as `num_workers` of its config does (default: 1)",
        partial(read_count, least=1),
        default=1,
        more=f"at most {MOST_WORKERS}",
    )
    sandbox: str = _option(
        "--gym-sandbox HOW",
        "what stands for a sandbox that the config refers to and does not have: scripted (default: it runs nothing) or local",
        partial(read_choice, among=dict(zip(SANDBOXES, SANDBOXES, strict=True))),
        default=SCRIPTED,
        more="local RUNS COMMANDS ON THIS MACHINE, as you, by nemo-gym's own local provider",
    )
    network: bool = _option(
        "--gym-network",
        "let a launched server use the network while it is judged",
        more="without it, what it asks of other hosts fails, and is recorded; [how](docs/launching.md#keys-and-the-network)",
    )
    launch_timeout: float = _option(
        "--gym-launch-timeout SECONDS",
        f"how long a launched server may take to answer (default: {LAUNCH_TIMEOUT:g})",
        read_seconds,
        default=LAUNCH_TIMEOUT,
    )
    ray: str | None = _option(
        "--gym-ray ADDRESS",
        "judge envs as tasks of this Ray cluster, such as 10.0.0.1:6379 or auto; with --gym-load, drive from its nodes",
        more="how to [judge](docs/launching.md#on-a-cluster) and to [drive](docs/load.md#from-a-clusters-nodes)",
        ini=False,
    )
    resume: bool = _option(
        "--gym-resume", "with several servers, judge only those that the last run did not finish", ini=False
    )
    watch: bool = _option(
        "--gym-watch",
        "judge again whenever a file of the env changes, the checks that failed first, until Ctrl-C",
        ini=False,
    )
    data: tuple[Path, ...] = _option(
        "--gym-data PATH",
        # pytest takes the value for a test path where it looks for the ini file: it does not know the option by then
        "dataset rows: a JSONL file or a folder of them; recorded rollouts beside it are read too (repeatable; "
        "write --gym-data=PATH for a file of another project, or pytest takes that project's settings)",
        read_path,
        more="read line by line, so files may be large",
        many=tuple,
        paths=True,
    )
    oracle: "Oracle | None" = _option(
        "--gym-oracle WHAT",
        "what gives the right answers of rows where nothing is recorded: module:function, which takes a row and returns "
        "output items or a text, or a JSONL file of reference outputs",
        read_oracle,
        more="[how](docs/calibration.md#without-recorded-rollouts)",
    )
    rows: int | None = _option(
        "--gym-rows N",
        "ask this many rows of the files, or all, whether they pay their own answers and no others",
        read_rows,
        more="[how](docs/calibration.md#whole-datasets)",
    )
    rows_keep: Path | None = _option(
        "--gym-rows-keep FILE",
        "with --gym-rows: write the rows that do, byte for byte",
        partial(read_report, suffixes=(".jsonl",)),
        paths=True,
    )
    strict: bool = _option("--gym-strict", "SHOULD findings fail the run too")
    reports: tuple[Path, ...] = _option(
        "--gym-report FILE",
        f"write a report; the suffix decides its form: {', '.join(REPORTS[:-1])} or {REPORTS[-1]} (repeatable)",
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
        f"(default: {MAX_TIME:g}, and {MAX_TIME_SEARCHES:g} times the profile's seconds)",
        partial(read_seconds, most=_WEEK),
    )
    headers: Mapping[str, str] = _option(
        "--gym-header 'NAME: VALUE'",
        "a header for every request; its value is redacted wherever it is shown (repeatable)",
        read_header,
        many=dict,
    )
    contract: str = _option(
        "--gym-contract NAME",
        "how sessions are made: cookie, typed, or auto (default: as the server's OpenAPI document says)",
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
        "--gym-seed N", "a seed, to try the same trajectories each time", partial(read_count, least=0)
    )
    replay: tuple[Path, ...] = _option(
        "--gym-replay FILE",
        "try only the schedule in this file, written by a failing property (repeatable)",
        read_path,
        many=tuple,
        paths=True,
    )
    pid: int | None = _option(
        "--gym-pid PID",
        "the server's process on this machine, to see what sessions leave behind: memory, files, child processes",
        partial(read_count, least=1),
    )
    load: tuple[int, ...] = _option(
        "--gym-load N,N,...",
        "run whole episodes, this many at once, and compare replies and rewards with those of an episode alone",
        read_counts,
        default=(),
        more=f"`--gym-load` alone is {','.join(map(str, LOADS))}; [docs/load.md](docs/load.md)",
        bare=",".join(map(str, LOADS)),
    )
    load_anyway: bool = _option(
        "--gym-load-anyway", "load a server that is not on this machine, too: others may be using it", ini=False
    )
    at_once: int | None = _option(
        "--gym-in-flight N",
        f"concurrent requests (default: {IN_FLIGHT_HERE}, {IN_FLIGHT_ELSEWHERE} for another machine)",
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
        "--gym-baseline-write FILE", "write what fails the run to a new baseline", read_new_file, ini=False
    )
    before: Path | None = _option(
        "--gym-before FILE",
        "an earlier JSON report: say what is new, mended and changed since",
        read_path,
        more="in the summary and every report ([docs/gate.md](docs/gate.md#since-an-earlier-report))",
        paths=True,
    )
    drift: tuple[Path, ...] = _option(
        "--gym-drift FILE",
        "write a report of the drift alone: how rows and server describe each tool; .json, .md or .html (repeatable)",
        partial(read_report, suffixes=DRIFT_REPORTS),
        many=tuple,
        paths=True,
    )
    lock: Path | None = _option(
        "--gym-lock FILE",
        "compare the tools of rows and server with this lock file",
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
        """Which rows of these files are asked, and what is written of them; None where it is a few."""
        if self.rows is None:
            return None
        report = next((path for path in self.reports if path.suffix == ".jsonl"), None)
        return RowPlan(files, self.rows or None, report, self.rows_keep, self.resume)

    @property
    def real(self) -> bool:
        """Whether envs are launched as NeMo Gym starts them."""
        return self.launch == REAL

    @property
    def search(self) -> Search:
        """How trajectories are looked for."""
        return Search(self.profile, self.seed)

    @property
    def in_flight(self) -> int:
        """How many requests may be under way at once."""
        return self.at_once or (IN_FLIGHT_HERE if is_here(self.url) else IN_FLIGHT_ELSEWHERE)


#: The fields of `Options`, and the option that each is read from.
TABLE: Final[Mapping[str, Option]] = {each.name: each.metadata[_ROW] for each in fields(Options)}


#: What cannot be given together, and how to fix it.
_CONFLICTS: Final[tuple[tuple[Callable[[Options], object], str], ...]] = (
    (lambda it: it.demo and it.url, "--gym-url and --gym-demo: give one of them"),
    (lambda it: it.envs and (it.demo or it.url), "--gym-env, --gym-url and --gym-demo: give one of them"),
    (
        lambda it: it.install and not it.envs,
        "--gym-install: there is no folder to install from; give --gym-env DIR too",
    ),
    (
        lambda it: it.workers > 1 and not it.envs,
        "--gym-workers: how many processes a server has is decided where it is started; give --gym-env DIR too",
    ),
    (
        lambda it: it.sandbox != SCRIPTED and not it.envs,
        "--gym-sandbox: only a server that is launched has its sandbox chosen; give --gym-env DIR too",
    ),
    (
        lambda it: it.network and not it.envs,
        "--gym-network: only a server that is launched has its network closed; give --gym-env DIR too",
    ),
    (
        lambda it: it.workers > MOST_WORKERS,
        f"--gym-workers: more than {MOST_WORKERS}; a few show what several processes do",
    ),
    (
        lambda it: it.rows is None and (it.rows_keep or any(path.suffix == ".jsonl" for path in it.reports)),
        "--gym-rows-keep and --gym-report FILE.jsonl: no rows are asked; give --gym-rows N, or --gym-rows all, too",
    ),
    (
        lambda it: it.rows is not None and len(it.envs) > 1,
        "--gym-rows: several servers would write the same files; judge one at a time",
    ),
    (
        lambda it: it.rows is not None and it.url and not it.data,
        "--gym-rows: there are no rows to ask; give --gym-data PATH too",
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
        "--gym-load, --gym-ray and --gym-env: no other node reaches an env that is launched; start it, and give --gym-url",
    ),
    (lambda it: it.load_anyway and not it.load, "--gym-load-anyway: there is no load; give --gym-load too"),
    (lambda it: it.watch and not it.envs, "--gym-watch: there are no files to watch; give --gym-env DIR"),
    (lambda it: it.demo and it.data, "--gym-data: --gym-demo has data of its own; leave out one of them"),
    (
        lambda it: it.lock_update and not it.lock,
        "--gym-lock-update: there is no lock to write; give --gym-lock FILE too",
    ),
)


def read_options(given: Mapping[str, Any]) -> Options:
    """Check what was given, by the names of the fields; what is missing has its default.

    Raises:
        BadOption: a value cannot be used.
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
    """One file holds one form of what was found, and none that rows are read from.

    Raises:
        BadOption: two options name the same.
    """
    data = (*options.data, *(file for env in options.envs for file in env.data))
    rows = {Path(os.path.realpath(path)) for path in data}
    seen: dict[Path, str] = {}
    for option, path in _written(options):
        whole = Path(os.path.realpath(path))  # unlike pathlib's, it takes links that lead to themselves
        if whole in rows or (path.suffix == ".jsonl" and path.is_file() and whole.parent in rows):
            raise BadOption(f"{option} {str(path)!r}: rows are read from it, and would be lost; give another file")
        if before := seen.get(place := path.parent.resolve() / path.name):  # a link is replaced, not followed
            raise BadOption(f"{option} {str(path)!r}: {before} names the same file; give each a file of its own")
        seen[place] = option


def _written(options: Options) -> Iterator[tuple[str, Path]]:
    """The files that are to be written, each with the option that names it."""
    single = {
        "--gym-rows-keep": options.rows_keep,
        "--gym-baseline-write": options.baseline_write,
        "--gym-lock": options.lock if options.lock_update else None,
    }
    yield from (("--gym-report", path) for path in options.reports)
    yield from (("--gym-drift", path) for path in options.drift)
    yield from ((option, path) for option, path in single.items() if path)


def ensure_lock(options: Options) -> None:
    """Ensure that the lock exists, or can be written if it is to be updated.

    Raises:
        BadOption: it does not exist, or cannot be written.
    """
    if options.lock is None:
        return
    if options.lock_update:
        ensure_writable("--gym-lock", options.lock)
    elif not options.lock.exists():
        raise BadOption(f"--gym-lock {str(options.lock)!r}: there is no such file; write it with --gym-lock-update")


def is_here(url: str | None) -> bool:
    """Whether the server is on this machine, so that no one else uses it; None is the demo."""
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
