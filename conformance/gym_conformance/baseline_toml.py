"""The baseline file. It is TOML because reasons are for people, and because it has dates."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from glob import escape
from json import dumps
from pathlib import Path
from typing import Any

from gym_conformance.baseline import Baseline, Entry
from gym_conformance.documents import read_text, write_whole
from gym_conformance.findings import Finding
from gym_conformance.printable import Refusal, printable

_HEADER = """\
# Findings that this repo accepts for now; `pytest --gym-baseline` reads it. An entry whose finding no longer
# occurs fails the run. Fill in each reason; add `until = 2031-01-31` to be reminded of it.
"""

#: A check's id, in the form of node ids and reports.
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")

_KEYS = {"check", "subject", "reason", "until", "server"}


class BadBaseline(Refusal):
    """A baseline cannot be used; the message says what is wrong, where, and how to fix it, in one line."""


def read_baseline(path: Path) -> Baseline:
    """Read the file.

    Raises:
        BadBaseline: it cannot be read, is not TOML, or has an incomplete entry.
    """
    try:
        text = read_text(path)
        data = tomllib.loads(text)
    except FileNotFoundError as error:
        raise BadBaseline(f"{path}: {error.strerror}; --gym-baseline-write FILE creates one") from None
    except OSError as error:
        raise BadBaseline(f"{path}: {error.strerror}; give a file that can be read") from None
    except (ValueError, RecursionError) as error:
        raise BadBaseline(f"{path}: not TOML: {error}") from None
    tables = data.get("accepted", [])
    if set(data) - {"accepted"} or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BadBaseline(f"{path}: give [[accepted]] tables, and nothing else")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[accepted]]"]
    if len(lines) != len(tables):
        lines = [0] * len(tables)  # written in another style: then only the entry's number is known
    entries = (_entry(path, number, *pair) for number, pair in enumerate(zip(lines, tables, strict=True), 1))
    return Baseline(str(path), tuple(entries))


def write_baseline(path: Path, findings: Mapping[str, Iterable[Finding]]) -> None:
    """Write an entry for each finding, by server ('' for the only one), with the reason left to be filled in."""
    tables = [_table(server, finding) for server, found in findings.items() for finding in found]
    write_whole(path, "\n".join([_HEADER, *tables]))


def _entry(path: Path, number: int, line: int, table: dict[str, Any]) -> Entry:
    where = f"{path}, line {line}" if line else f"{path}, [[accepted]] number {number}"
    if unknown := sorted(set(table) - _KEYS):
        raise BadBaseline(f"{where}: unknown key {unknown[0]!r}; give check, subject, reason, until and server")
    for key, default in {"check": "", "subject": "*", "reason": "", "server": "*"}.items():
        value = table.get(key, default)
        if not isinstance(value, str) or not (value if key == "subject" else value.strip()):
            raise BadBaseline(f"{where}: {_MISSING[key]}")
    if not _ID.fullmatch(table["check"].strip()):
        raise BadBaseline(f"{where}: {table['check']!r} is not the id of a check; {_MISSING['check']}")
    until = table.get("until")
    if until is not None and (not isinstance(until, date) or isinstance(until, datetime)):
        raise BadBaseline(f"{where}: until is not a date; give one without quotes, such as until = 2031-01-31")
    subject, server = table.get("subject", "*"), table.get("server", "").strip()
    return Entry(table["check"].strip(), table["reason"].strip(), subject, until, line, server)


_MISSING = {
    "check": 'it names no check; give its id, such as check = "verify-degenerate"',
    "subject": "its subject is empty; give a subject, a glob, or leave it out for all",
    "server": "its server is empty; give its name in node ids, as in gym/NAME/verify",
    "reason": "its reason is empty; say why this is accepted",
}


def _table(server: str, finding: Finding) -> str:
    said = printable(f"# {finding.title}: {finding.actual or f'needs {finding.reason}'}", 200)
    named = {"server": server} if server else {}
    pairs = named | {"check": finding.check, "subject": escape(finding.subject), "reason": ""}
    return "\n".join(["[[accepted]]", said, *(f"{key} = {_string(value)}" for key, value in pairs.items()), ""])


def _string(value: str) -> str:
    """A TOML basic string: like JSON's, but with DEL escaped, and without surrogate pairs."""
    return dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
