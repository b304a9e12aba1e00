"""Reads and writes files in folders that others can write to: reads are limited; writes are atomic and follow no links.

Only regular files up to a limit are read, and only values that all later steps can walk and send. Anything else raises
an `OSError` or a `ValueError` with a one-line message, like a file that cannot be read at all.
"""

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Final

#: The largest file to read, the longest line of a file read by lines, and the largest YAML file, in bytes.
LARGEST: Final = 64 << 20
_LARGEST_YAML: Final = 1 << 20

#: The longest YAML text, in characters, whose value is remembered.
_REMEMBERED: Final = 64 << 10

#: The most levels of nesting: more than any dataset, schema or config has, and few enough for recursive functions.
DEEPEST: Final = 100

#: The most values of a YAML file with its aliases expanded.
MOST: Final = 200_000

#: What PyYAML raises, besides its own errors, if a value does not match its tag: `!!timestamp x`, `!!bool x`, `!!int
#: ""`.
UNLIKE_ITS_TAG: Final = (AttributeError, LookupError, TypeError)

#: The most values and containers of a reply: far more than a sound one has.
_VALUES, _CONTAINERS = 500_000, 50_000

#: A row or a file may have as many values as this many replies.
_REPLIES: Final = 10

#: A string in a JSON text, terminated or not. Strings may contain JSON's punctuation: a server with a judge returns
#: several times what a policy wrote.
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BYTE_STRING: Final = re.compile(_STRING.pattern.encode(), re.DOTALL)

#: Approximate memory of a value with its place in a container, and the additional memory of an object with one key.
_VALUE_BYTES, _CONTAINER_BYTES = 56, 200

#: The first bytes of files in other formats, to name these: decoding errors would say nothing.
_NO_TEXT: Final = {
    b"\x1f\x8b": "compressed with gzip",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "a Parquet file",
}

#: The most bits of an integer: larger ones are no double, and Python itself refuses to print 4,301 digits.
_BITS: Final = 1024


def is_file(path: Path) -> bool:
    """Whether a file is there; unlike `Path.is_file`, no name is too long for it."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """The same of a folder."""
    return os.path.isdir(path)  # noqa: PTH112


def read_text(path: Path, most: int = LARGEST) -> str:
    """The text of a file.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than `most` bytes.
        UnicodeDecodeError: it is not UTF-8.
    """
    with open(path, "rb", opener=_open_regular) as file:
        large = os.fstat(file.fileno()).st_size > most
        text = b"" if large else file.read(most + 1)
    if large or len(text) > most:  # files in /proc have no size
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MB")
    return text.decode("utf-8-sig")  # editors on Windows write a byte order mark


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, lazily.

    Raises:
        OSError: it cannot be read, is not a regular file, or has a line of more than `LARGEST` bytes.
    """
    with open(path, "rb", opener=_open_regular) as file:
        for number in count(1):
            line = file.readline(LARGEST + 1)
            if len(line) > LARGEST:
                raise OSError(errno.EFBIG, f"line {number} is longer than {LARGEST >> 20} MB")
            if not line:
                return
            yield line


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically; a link at that path is replaced, not followed.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    with writing_whole(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode())


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Write a file atomically, piece by piece.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    half = path.with_name(f".{path.name[:100]}.{token_hex(8)}.part")
    try:
        with half.open("xb") as file:  # never an existing file or link
            yield file
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def own_folder(path: Path) -> Path:
    """The folder, which is created if it does not exist.

    Raises:
        OSError: it cannot be created, or is a link, which may lead anywhere.
    """
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"{path.name} is a symbolic link")
    return path


def append_line(path: Path, line: str) -> None:
    """Append a line, or several, to a file.

    Raises:
        OSError: it cannot be written, is a link, or is not a regular file.
    """
    with open(path, "a", encoding="utf-8", opener=_open_here) as file:
        file.write(line + "\n")


def bulk(text: str | bytes, times: int = 1) -> str:
    """Why a JSON text has too many values for one reply of a server, or for `times` of them; '' if it has not.

    Each value takes many times its bytes.
    """
    values, containers = _signs(text, times)
    if values <= times * _VALUES and containers <= times * _CONTAINERS:
        return ""
    return f"more than {times * _VALUES:,} values, or {times * _CONTAINERS:,} objects and arrays"


def parsed_bytes(text: str | bytes, times: int = 1) -> int:
    """Approximate memory in bytes of a JSON text's value, without its strings; 0 if `bulk` refuses it."""
    values, containers = _signs(text, times)
    if values > times * _VALUES or containers > times * _CONTAINERS:
        return 0
    return values * _VALUE_BYTES + containers * _CONTAINER_BYTES


def _signs(text: str | bytes, times: int) -> tuple[int, int]:
    """Upper bounds for the values of a JSON text, and for its objects and arrays.

    If these are too many, punctuation inside strings is not counted.
    """
    values, containers = _counted(text)
    if values <= times * _VALUES and containers <= times * _CONTAINERS:
        return values, containers
    return _counted(_STRING.sub("", text, _VALUES) if isinstance(text, str) else _BYTE_STRING.sub(b"", text, _VALUES))


def _counted(text: str | bytes) -> tuple[int, int]:
    signs = (",", "{", "[") if isinstance(text, str) else (b",", b"{", b"[")
    values, objects, arrays = (text.count(sign) for sign in signs)  # type: ignore[arg-type]
    return values, objects + arrays


def parse_json(text: str | bytes, times: int = _REPLIES) -> Any:
    """The value of a JSON text, which may be as large as this many replies of a server.

    Raises:
        ValueError: it is not JSON, has far too many values, or `flaw` finds a fault.
    """
    if too_much := bulk(text, times):
        raise ValueError(too_much)
    try:
        value = json.loads(text)
    except RecursionError:
        value, found = None, f"nested deeper than {DEEPEST} levels"
    else:
        found = flaw(value)
    if found:
        raise ValueError(found)
    return value


def read_yaml(path: Path) -> Any:
    """The value of a YAML file. Files with the same text share it, so it must not be changed.

    Raises:
        OSError: as `read_text`.
        ValueError: it is not YAML, or `flaw` finds a fault.
    """
    text = read_text(path, _LARGEST_YAML)
    value, fault = (_remembered_yaml if len(text) <= _REMEMBERED else _parsed_yaml)(text)
    if fault:
        raise ValueError(fault)
    return value


def _parsed_yaml(text: str) -> tuple[Any, str]:
    """The value of a YAML text, or None and why it has none."""
    import yaml  # noqa: PLC0415 - heavy, and few need it

    try:
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return None, where + ", ".join(filter(None, (error.problem, error.context)))
    except yaml.YAMLError as error:
        return None, " ".join(str(error).split())
    except RecursionError:
        return None, f"nested deeper than {DEEPEST} levels"
    except UNLIKE_ITS_TAG:
        return None, "a value is not what its tag says, such as !!timestamp or !!bool"
    fault = flaw(value, MOST)
    return None if fault else value, fault


#: A launch reads each of an env's files tens of times.
_remembered_yaml = lru_cache(32)(_parsed_yaml)


def yaml_mapping(path: Path) -> Mapping[str, Any]:
    """The content of a YAML file; {} if it cannot be read, or is not a mapping."""
    try:
        content = read_yaml(path)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def too_deep(value: Any) -> bool:
    """Whether a JSON value has more than `DEEPEST` levels."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def flaw(value: Any, most: int | None = None) -> str:
    """Why a value cannot be walked or sent: too deep, circular, a number that is not JSON, or too large; '' if it can."""
    inside: list[tuple[int, Any]] = [(0, value)]
    seen = 0
    while inside:
        depth, one = inside.pop()
        seen += 1
        if depth > DEEPEST:  # which a value that contains itself is, too
            return f"nested deeper than {DEEPEST} levels"
        if most is not None and seen > most:
            return f"more than {most:,} values, aliases written out"
        if one is None or isinstance(one, str):  # most are, and asking whether one is a mapping takes long
            continue
        if isinstance(one, Mapping):
            inside += [(depth + 1, inner) for inner in one.values()]
        elif isinstance(one, list | tuple | set):
            inside += [(depth + 1, inner) for inner in one]
        elif isinstance(one, float) and not math.isfinite(one):
            return f"a number that JSON does not have, or that is out of range ({one})"
        elif isinstance(one, int) and one.bit_length() > _BITS:
            return "an integer of more than 308 digits"
    return ""


def _open_here(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)  # a FIFO would block
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def _open_regular(path: str, flags: int) -> int:
    """Open a text file without blocking on a FIFO that has no writer."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if why := _unreadable(descriptor):
        os.close(descriptor)
        raise OSError(errno.EINVAL, why)
    return descriptor


def _unreadable(descriptor: int) -> str:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        return "a folder" if stat.S_ISDIR(mode) else "not a regular file"
    begins = os.pread(descriptor, 8, 0)
    return next((what for sign, what in _NO_TEXT.items() if begins.startswith(sign)), "")
