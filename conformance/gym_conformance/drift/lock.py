"""The lock file: the tools of the rows and of the server as they were when it was written, for review in a diff.

JSON with one keyword per line, in a fixed order and in the spelling of `spelling.plain`, so that neither the order of
rows nor a newer FastAPI changes it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gym_conformance.documents import parse_json
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.served import ServedTool
from gym_conformance.drift.spelling import plain
from gym_conformance.drift.tool_drift import Drift, DriftKind, Weight
from gym_conformance.printable import Refusal
from gym_schemas import ABSENT, differences

#: The version of the lock file's format.
VERSION = 1

_NAMED = 4
_SIDES = {"rows": "the rows' definition", "server": "the server's schema"}

Tools = Mapping[str, list[Any]]  #: by name, the distinct definitions, or the one served tool


class BadLock(Refusal):
    """The text is not a lock file that this version can read; the message says why, and how to fix it."""


@dataclass(frozen=True)
class Lock:
    """The tools of the rows, and those of the server; None for an unknown side."""

    rows: Tools | None = None
    server: Tools | None = field(default=None)

    def render(self) -> str:
        """The text of the lock file."""
        sides = {"rows": self.rows, "server": self.server}
        content = {"version": VERSION, **{side: tools for side, tools in sides.items() if tools is not None}}
        return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=True) + "\n"

    def outdated(self, now: "Lock") -> tuple[Drift, ...]:
        """Where today's tools differ from the lock's, side by side; a side unknown to either is skipped."""
        found: list[Drift] = []
        for side, locked, current in (("rows", self.rows, now.rows), ("server", self.server, now.server)):
            if locked is not None and current is not None:
                found += _side(side, locked, current)
        return tuple(found)


def lock_of(definitions: Iterable[Definition] | None, served: Mapping[str, ServedTool] | None) -> Lock:
    """The lock of the current tools."""
    return Lock(
        None if definitions is None else _rows(definitions),
        None if served is None else {name: [_served(served[name])] for name in sorted(served)},
    )


def parse_lock(text: str) -> Lock:
    """The inverse of `Lock.render`.

    Raises:
        BadLock: the text is not a lock file.
    """
    again = "rewrite it with --gym-lock-update"
    try:
        content = parse_json(text)
    except ValueError as error:
        raise BadLock(f"not JSON ({error}); fix the merge, or {again}") from None
    if not isinstance(content, dict) or "version" not in content:
        raise BadLock(f"not a lock file: it has no version; {again}")
    if content["version"] != VERSION:
        raise BadLock(f"its version is {content['version']!r}, and this gym-conformance reads {VERSION}; {again}")
    for side in _SIDES:
        if side in content and not _is_tools(content[side]):
            raise BadLock(f"{side} is not a list of tools by name; {again}")
    return Lock(content.get("rows"), content.get("server"))


def _rows(definitions: Iterable[Definition]) -> Tools:
    found: dict[str, dict[str, Any]] = {}
    for one in definitions:
        entry = {
            "description": one.description,
            "strict": one.strict,
            "parameters": plain(one.parameters) if isinstance(one.parameters, dict) else one.parameters,
        }
        found.setdefault(one.name, {})[json.dumps(entry, sort_keys=True)] = entry
    return {name: [entries[text] for text in sorted(entries)] for name, entries in sorted(found.items())}


def _served(one: ServedTool) -> dict[str, Any]:
    entry: dict[str, Any] = {"request": None if one.request is None else plain(one.request)}
    if one.response is not None:
        entry["response"] = plain(one.response)
    if one.elsewhere:
        entry["elsewhere"] = [list(pair) for pair in one.elsewhere]
    if one.other_body:
        entry["other_body"] = one.other_body
    return entry


def _side(side: str, locked: Tools, current: Tools) -> Iterator[Drift]:
    what = _SIDES[side]
    for name in sorted({*locked, *current}):
        found = list(differences(locked.get(name, ABSENT), current.get(name, ABSENT)))
        if not found:
            continue
        if name not in current:
            message = f"{what} is gone since the lock was written"
        elif name not in locked:
            message = f"{what} is new since the lock was written"
        else:
            more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            message = f"{what} has changed since the lock was written: {', '.join(map(str, found[:_NAMED]))}{more}"
        yield Drift(
            DriftKind.LOCK_OUTDATED,
            name,
            f"{name}: {message}",
            path=found[0].path,
            weight=Weight.BREAKING,
            definition=locked.get(name),
            served=current.get(name),
        )


def _is_tools(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(entries, list) for entries in value.values())
