"""Reading dataset rows and recorded rollouts from JSONL files: line by line, keeping only a bounded choice."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from gym_conformance.contract.rows import Rollout, Row, Source

#: How many rows, and recorded rollouts, are kept to judge with.
BOUND = 32

#: Where nemo-gym puts the recorded rollouts of `example.jsonl`.
_ROLLOUTS = "_rollouts"


T = TypeVar("T")


class BadData(Exception):
    """A file cannot be used; the message says what, where and how to mend it."""


@dataclass(frozen=True)
class Dataset:
    """The choice of rows and rollouts, distinct shapes first; `read` counts all rows that were read."""

    rows: tuple[Row, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    read: int = 0


def load(paths: Iterable[Path], bound: int = BOUND, *, recorded: bool = True) -> Dataset:
    """Read all files, and keep at most `bound` rows and `bound` rollouts of them.

    A folder stands for its `*.jsonl` files; beside `NAME.jsonl`, `NAME_rollouts.jsonl` is read too where it is, if `recorded`.

    Raises:
        BadData: a file is missing, empty, or has a line that is no row; or there is no row in any of them.
    """
    rows: _Choice[Row] = _Choice(bound)
    rollouts: _Choice[Rollout] = _Choice(bound)
    for path in _files(paths, recorded=recorded):
        before = rows.offered + rollouts.offered
        for item in read(path):
            if isinstance(item, Rollout):
                rollouts.offer(item, str(item.data["responses_create_params"].get("input")))
            else:
                rows.offer(item, item.shape)
        if before == rows.offered + rollouts.offered:
            raise BadData(f"{path}: the file is empty; give a JSONL file with one row a line")
    if rollouts.offered and not rows.offered:
        raise BadData(f"{path}: recorded rollouts only; give the dataset rows that they were recorded of too")
    return Dataset(rows.chosen, rollouts.chosen, rows.offered)


def read(path: Path) -> Iterator[Row | Rollout]:
    """The rows of one file, lazily; one that has a response and a reward is a recorded rollout.

    Raises:
        BadData: the file cannot be read, or a line is no row.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _read_line(line, Source(path, number))
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; give a JSONL file that can be read") from None


class _Choice(Generic[T]):
    """The first of each shape, then the first of all, up to a bound; in the order of the file."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.offered = 0
        self._first: dict[str, tuple[int, T]] = {}
        self._more: list[tuple[int, T]] = []

    def offer(self, item: T, shape: str) -> None:
        """Take the item, or let it go."""
        self.offered += 1
        if shape not in self._first and len(self._first) < self.bound:
            self._first[shape] = (self.offered, item)
        elif len(self._more) < self.bound:
            self._more.append((self.offered, item))

    @property
    def chosen(self) -> tuple[T, ...]:
        """What was kept."""
        first = list(self._first.values())
        numbered = first + self._more[: self.bound - len(first)]
        return tuple(item for _, item in sorted(numbered, key=lambda pair: pair[0]))


def _files(paths: Iterable[Path], *, recorded: bool) -> list[Path]:
    """The files to read, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("*.jsonl"))
            if not inside:
                raise BadData(f"{path}: the folder holds no *.jsonl file; give the folder that does, or a file")
            found |= dict.fromkeys(inside)
        else:
            found[path] = None
            beside = path.with_name(f"{path.stem}{_ROLLOUTS}{path.suffix}")
            if recorded and beside.is_file():
                found[beside] = None
    return list(found)


def _read_line(line: bytes, source: Source) -> Row | Rollout:
    where = f"{source.path}, line {source.line}"
    try:
        data = _parse(line)
    except UnicodeDecodeError as error:
        raise BadData(
            f"{where}: not UTF-8 ({error.reason} at byte {error.start + 1}); save the file as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        at = f"{error.msg} at column {error.colno}"
        raise BadData(f"{where}: not JSON ({at}); each line must be one JSON object") from None
    except RecursionError:
        raise BadData(f"{where}: nested too deep to be read; each line must be one JSON object") from None
    if not isinstance(data, dict):
        raise BadData(f"{where}: not a JSON object; each line must be one row")
    if not isinstance(data.get("responses_create_params"), dict):
        raise BadData(f"{where}: the row has no responses_create_params; give rows as `gym eval run` takes them")
    return Rollout(data, source) if isinstance(data.get("response"), dict) and "reward" in data else Row(data, source)


def _parse(line: bytes) -> Any:
    try:
        return from_json(line)
    except ValueError:
        # slower; takes what the other does not (lone surrogates), and says where the fault is
        return json.loads(line.decode().strip())
