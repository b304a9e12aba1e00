"""Reads dataset rows and recorded rollouts from JSONL files line by line, keeping only a limited selection."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic_core import from_json

from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.documents import DEEPEST, bulk, flaw, is_file, is_folder, parse_json, parsed_bytes, read_lines
from gym_conformance.drift.definitions import Definition, Definitions
from gym_conformance.drift.repeats import Repeats
from gym_conformance.printable import Refusal

#: How many rows, and how many recorded rollouts, to keep for judging.
BOUND = 32

#: Bytes that the kept rows, or rollouts, may take; a single one may take more.
KEPT = 48 << 20

#: A line may have as many values as this many replies: a recorded rollout has the id and logprob of every token.
_REPLIES = 4

#: The suffix of nemo-gym's files of recorded rollouts, as for `example.jsonl`.
_ROLLOUTS = "_rollouts"


T = TypeVar("T")


class BadData(Refusal):
    """A file cannot be used; the message says what is wrong, where, and how to fix it."""


@dataclass(frozen=True)
class Dataset:
    """The selected rows and rollouts, which prefers distinct shapes.

    `read` counts all rows that were read, `definitions` are the tools that any of them declares, and `files` are the
    files that were read.
    """

    rows: tuple[Row, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    read: int = 0
    definitions: tuple[Definition, ...] = ()
    files: tuple[Path, ...] = ()


def load(paths: Iterable[Path], bound: int = BOUND, *, recorded: bool = True) -> Dataset:
    """Read all files, and keep at most `bound` rows and `bound` rollouts.

    A folder stands for its `*.jsonl` files; if `recorded`, `NAME_rollouts.jsonl` beside `NAME.jsonl` is read too, and may
    be empty.

    Raises:
        BadData: another file is missing, empty, or has a line that is not a row; or none of the files has a row.
    """
    rows: _Choice[Row] = _Choice(bound)
    rollouts: _Choice[Rollout] = _Choice(bound)
    definitions = Definitions()
    reader = Repeats(definitions, _parse, counts=lambda data: isinstance(data, dict) and not _is_rollout(data))
    given = tuple(paths)
    files = _files(given, recorded=recorded)
    for path in files:
        before = rows.offered + rollouts.offered
        for item, weight in _read(path, reader):
            if isinstance(item, Rollout):
                rollouts.offer(item, weight, partial(_input, item))
            else:
                rows.offer(item, weight, partial(item.shape, reader.number if reader.number >= 0 else None))
        nobody_named = rows.offered and path not in given and path.stem.endswith(_ROLLOUTS)
        if before == rows.offered + rollouts.offered and not nobody_named:
            raise BadData(f"{path}: the file is empty; give a JSONL file with one row a line")
    if rollouts.offered and not rows.offered:
        raise BadData(f"{path}: it has only recorded rollouts; give the dataset rows that they were recorded from, too")
    chosen: tuple[Row | Rollout, ...] = (*rows.chosen, *rollouts.chosen)
    for kept in chosen:
        if found := flaw(kept.data):
            raise _bad_line(ValueError(found), f"{kept.source.path}, line {kept.source.line}")
    return Dataset(rows.chosen, rollouts.chosen, rows.offered, tuple(definitions), tuple(files))


def read(path: Path) -> Iterator[Row | Rollout]:
    """The rows of one file, lazily; a row with a response and a reward is a recorded rollout.

    Raises:
        BadData: the file cannot be read, or a line is not a row.
    """
    return (item for item, _ in _read(path, Repeats(Definitions(), _parse)))


def _read(path: Path, reader: Repeats) -> Iterator[tuple[Row | Rollout, int]]:
    """Each row or rollout with its approximate size in memory, in bytes."""
    try:
        for number, line in enumerate(read_lines(path), start=1):
            if not line.isspace():
                yield _read_line(line, Source(path, number), reader), len(line) + parsed_bytes(line, _REPLIES)
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}; give a JSONL file that can be read") from None


class _Choice(Generic[T]):
    """Keeps the first item of each shape, then the first of all, up to a count and a size; in the file's order."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.offered = 0
        self._first: dict[object, tuple[int, T]] = {}
        self._more: list[tuple[int, T, int]] = []
        self._taken = 0

    def offer(self, item: T, weight: int, shape: Callable[[], object]) -> None:
        """Keep or drop the item; its shape is only computed if there is room for one more."""
        self.offered += 1
        if len(self._first) < self.bound and (found := shape()) not in self._first:
            while self._more and not self._fits(weight):
                self._taken -= self._more.pop()[2]
            if self._fits(weight):
                self._first[found] = (self.offered, item)
                self._taken += weight
        elif len(self._more) < self.bound and self._fits(weight):
            self._more.append((self.offered, item, weight))
            self._taken += weight

    def _fits(self, weight: int) -> bool:
        return not self._taken or self._taken + weight <= KEPT

    @property
    def chosen(self) -> tuple[T, ...]:
        """The items that were kept."""
        first = list(self._first.values())
        numbered = first + [(number, item) for number, item, _ in self._more[: self.bound - len(first)]]
        return tuple(item for _, item in sorted(numbered, key=lambda pair: pair[0]))


def _files(paths: Iterable[Path], *, recorded: bool) -> list[Path]:
    """The files to read, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        if is_folder(path):
            try:
                inside = sorted(each for each in path.iterdir() if each.name.endswith(".jsonl"))
            except OSError as error:  # which `glob` keeps to itself
                raise BadData(f"{path}: {error.strerror}; give a folder that can be read") from None
            if not inside:
                raise BadData(f"{path}: the folder has no *.jsonl file; give a folder that has one, or a file")
            found |= dict.fromkeys(inside)
        else:
            found[path] = None
            beside = path.with_name(f"{path.stem}{_ROLLOUTS}{path.suffix}")
            if recorded and is_file(beside):
                found[beside] = None
    return list(found)


def _read_line(line: bytes, source: Source, reader: Repeats) -> Row | Rollout:
    if too_much := bulk(line, _REPLIES):
        raise BadData(f"{source.path}, line {source.line}: {too_much}; leave the line out")
    try:
        data = reader.read(line, source)
    except (ValueError, RecursionError) as error:
        raise _bad_line(error, f"{source.path}, line {source.line}") from None
    if not isinstance(data, dict):
        raise BadData(f"{source.path}, line {source.line}: not a JSON object; each line must be one row")
    if isinstance(data.get("task_id"), dict) and isinstance(data.get("task_input"), dict):
        return Row(_flat(data["task_input"]), source, data)
    if not isinstance(data.get("responses_create_params"), dict):
        what = (
            "the row has no responses_create_params; give rows as `gym eval run` reads them, or, if only an environment "
            "server understands them, that server's address (--gym-url; section run)"
        )
        raise BadData(f"{source.path}, line {source.line}: {what}")
    return Rollout(data, source) if _is_rollout(data) else Row(data, source)


def _flat(task_input: dict[str, Any]) -> dict[str, Any]:
    """The flat row of a materialized task (`accept_flat_task_input` of nemo_gym/single_agent_turn_types.py, 0.7.0)."""
    nested = task_input.get("task_data")
    fields = {key: value for key, value in task_input.items() if key != "task_data"}
    flat = fields | nested if isinstance(nested, dict) else dict(task_input)
    asked = flat.get("responses_create_params")
    return flat | {"responses_create_params": asked if isinstance(asked, dict) else {"input": []}}


def _input(rollout: Rollout) -> str:
    return str(rollout.data["responses_create_params"].get("input"))


def _is_rollout(data: dict[str, Any]) -> bool:
    return "reward" in data and isinstance(data.get("response"), dict)


def _bad_line(error: Exception, where: str) -> BadData:
    match error:
        case UnicodeDecodeError():
            said = f"not UTF-8 ({error.reason} at byte {error.start + 1}); save the file as UTF-8"
        case json.JSONDecodeError() if error.doc.startswith("\ufeff"):
            said = "it begins with a byte order mark; save the file as UTF-8 without one"
        case json.JSONDecodeError():
            said = (
                f"not JSON ({error.msg.removesuffix(' at')} at column {error.colno}); each line must be one JSON object"
            )
        case RecursionError():
            said = f"nested deeper than {DEEPEST} levels; each line must be one JSON object"
        case _:
            said = f"{str(error).partition(';')[0]}; each line must be one JSON object that any JSON parser can read"
    return BadData(f"{where}: {said}")


def _parse(line: bytes) -> Any:
    try:
        return from_json(line, allow_inf_nan=False)
    except ValueError:
        # slower, but accepts lone surrogates, and says where the error is
        return parse_json(line.decode().strip())
