"""Readers convert the text of an option to its value; each takes the option's name and the text.

All of them raise `BadOption` with one line: the option, the text, what is wrong and how to fix it. Every pytest run
loads this module, so heavy imports are deferred to where they are needed.
"""

import importlib.util
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from gym_conformance.documents import is_folder
from gym_conformance.printable import Refusal

if TYPE_CHECKING:  # PyYAML is heavy
    from gym_conformance.launch.env import Env
    from gym_conformance.oracle import Oracle

T = TypeVar("T")

#: Headers that each request sets itself: a value from the user would replace what is tested.
_OWN_HEADERS = frozenset({"cookie", "content-length", "transfer-encoding", "connection"})

#: The most digits of a number: enough for any seed, and few enough for any machine.
_DIGITS = 18

#: The most connections at once; a client has some 28,000 ports for those to one address.
_AT_ONCE = 16_384

#: A release, such as 0.7.0 or 0.8.0rc1.
_RELEASE = re.compile(r"\d+(\.\d+)+((a|b|rc|\.?dev|\.?post)\d+)?")

#: The most characters of a URL.
_URL = 2_000


class BadOption(Refusal):
    """An option's value cannot be used; the message names the option, what is wrong and how to fix it."""


def read_text(option: str, given: str) -> str:
    """The text as it is."""
    del option
    return given


def read_path(option: str, given: str) -> Path:
    """A path, which need not exist."""
    if not given:
        raise BadOption(f"{option} '': give a path")
    return Path(given)


def read_choice(option: str, given: str, among: Mapping[str, T]) -> T:
    """The value of one of several names."""
    if given not in among:
        raise BadOption(f"{option} {given!r}: unknown; give one of {', '.join(among)}")
    return among[given]


def read_count(option: str, given: str, least: int) -> int:
    """A whole number."""
    if not given.isascii() or not given.isdigit() or len(given) > _DIGITS or int(given) < least:
        raise BadOption(f"{option} {given!r}: give a whole number, {least} or more, of at most {_DIGITS} digits")
    return int(given)


def read_rows(option: str, given: str) -> int:
    """How many rows; 0 for all."""
    return 0 if given == "all" else read_count(option, given, 1)


def read_counts(option: str, given: str) -> tuple[int, ...]:
    """Whole numbers between commas, each once, in ascending order."""
    counts = sorted({read_count(option, each.strip(), 1) for each in given.split(",")})
    if counts[-1] > _AT_ONCE:
        raise BadOption(f"{option} {given!r}: more than {_AT_ONCE:,}; a machine does not have the ports for it")
    return tuple(counts)


def read_seconds(option: str, given: str, most: float = 3600) -> float:
    """A number of seconds, at most `most`."""
    try:
        seconds = float(given)
    except ValueError:
        raise BadOption(f"{option} {given!r}: not a number; give seconds, such as 30") from None
    if not 0 < seconds <= most:
        raise BadOption(f"{option} {given!r}: out of range; give seconds above 0 and up to {most:g}")
    return seconds


def read_url(option: str, given: str) -> str:
    """A server's URL, without a trailing slash."""
    # The part before an @ may be a password, and a query may contain a key.
    named = option if {*"@?#"} & {*given} else f"{option} {given!r}"
    if len(given) > _URL:
        raise BadOption(f"{named}: it has more than {_URL:,} characters; give a URL such as http://127.0.0.1:8000")
    if "@" in given.partition("://")[2].partition("/")[0]:
        raise BadOption(
            f"{option}: it contains a user name or password; give --gym-header 'Authorization: ...' instead"
        )
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError as error:
        why = f"{error}; " if "@" not in given else ""
        raise BadOption(f"{named}: {why}give a URL such as http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(given):
        raise BadOption(f"{named}: not an http or https URL; give one such as http://127.0.0.1:8000")
    if "?" in given or "#" in given:
        raise BadOption(f"{named}: it has a query or a fragment; give the URL to which /seed_session is appended")
    if port == 0:
        raise BadOption(f"{named}: no server listens on port 0; give a URL such as http://127.0.0.1:8000")
    if not _is_host(parts.hostname):
        raise BadOption(f"{named}: its host is not a valid name; give a URL such as http://127.0.0.1:8000")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "") + parts.path.rstrip("/")


def _is_plain(url: str) -> bool:
    """Whether it can be put into a request and a shell command unchanged."""
    return url.isprintable() and not any(character.isspace() or character in '"<>\\^`{|}' for character in url)


def _is_host(name: str) -> bool:
    """Whether httpx accepts it as a host name: not every Unicode name can be written in ASCII."""
    import httpx  # noqa: PLC0415 - only this option needs it

    try:
        return bool(httpx.URL(scheme="http", host=name).host)
    except (httpx.InvalidURL, UnicodeError):
        return False


def read_header(option: str, given: str) -> tuple[str, str]:
    """A header's name and value; no message shows the text, which may be a secret."""
    name, colon, value = given.partition(":")
    name, value = name.strip(), value.strip()
    legal = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    if not colon or not legal or not value.isascii() or not value.isprintable():
        raise BadOption(
            f"{option}: not of the form 'Name: value' in printable ASCII; give one such as "
            "'Authorization: Bearer ...' (what was given is not shown here)"
        )
    if name.lower() in _OWN_HEADERS:
        raise BadOption(f"{option} {name}: the suite sets this header itself; leave it out")
    return name, value


def read_setting(option: str, given: str) -> str:
    """`key=value`; no message shows the text, which may be a secret."""
    key, equals, _ = given.partition("=")
    if not equals or not key.strip("+ "):
        raise BadOption(f"{option}: not of the form key=value; give one such as search_api_key=...")
    return given.lstrip("+ ")


def read_program(option: str, given: str) -> str:
    """The absolute path of a program."""
    found = shutil.which(given)
    if found is None:
        raise BadOption(f"{option} {given!r}: no such program; give an interpreter, such as .venv/bin/python")
    return str(Path(found).absolute())


def read_oracle(option: str, given: str) -> "Oracle":
    """The oracle, which gives the right answers of rows."""
    from gym_conformance.oracle import BadOracle, load_oracle  # noqa: PLC0415 - only this option needs it

    try:
        return load_oracle(given)
    except BadOracle as bad:
        raise BadOption(f"{option} {bad}") from None


def read_release(option: str, given: str) -> str:
    """A release number."""
    if not _RELEASE.fullmatch(given):
        raise BadOption(f"{option} {given!r}: not the number of a release; give one such as 0.7.0")
    return given


def read_report(option: str, given: str, suffixes: Collection[str]) -> Path:
    """A file to write, whose suffix names its format."""
    path = Path(given)
    if path.suffix not in suffixes:
        raise BadOption(f"{option} {given!r}: unknown suffix {path.suffix!r}; give one of {', '.join(suffixes)}")
    ensure_writable(option, path)
    return path


def read_new_file(option: str, given: str) -> Path:
    """A file to write that must not exist yet."""
    path = Path(given)
    ensure_writable(option, path)
    if path.exists():
        raise BadOption(f"{option} {given!r}: it exists, and may contain reasons; remove it, or give another file")
    return path


def find_envs(given: Iterable[str]) -> "tuple[Env, ...]":
    """The envs that folders, globs and `module:attribute`s name."""
    from gym_conformance.launch import env  # noqa: PLC0415 - PyYAML is heavy

    try:
        return env.find_envs(given, Path.cwd())
    except env.NoEnv as error:
        raise BadOption(f"--gym-env {error}") from None


def ensure_installer() -> None:
    """Ensure that what `--gym-install` needs is installed."""
    if not all(importlib.util.find_spec(module) for module in ("platformdirs", "uv")):
        raise BadOption("--gym-install: uv is not installed here; python -m pip install 'gym-conformance[install]'")


def ensure_writable(option: str, path: Path) -> None:
    """Ensure, before the run, that a file can be written at its end."""
    folder = path.absolute().parent
    if not is_folder(folder):
        raise BadOption(f"{option} {str(path)!r}: its folder does not exist; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadOption(f"{option} {str(path)!r}: its folder cannot be written to; give one that can")
    try:
        there = path.is_dir()
    except OSError as error:  # a name that is too long
        raise BadOption(f"{option}: {error.strerror}; give another file") from None
    if there:
        raise BadOption(f"{option} {str(path)!r}: that is a folder; give a file")
