"""Reads a JSON report of an earlier run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gym_conformance.documents import parse_json, read_text
from gym_conformance.findings import Finding
from gym_conformance.printable import Refusal
from gym_conformance.reports.json_report import FLEET_SCHEMA, SCHEMA

#: The largest file in bytes, and the number of values as a multiple of a reply's: enough for more than a thousand
#: servers.
_LARGEST, _REPLIES = 384 << 20, 30


class BadReport(Refusal):
    """The file is no report to compare with; the message says why."""


@dataclass(frozen=True)
class EarlierReport:
    """An earlier run's findings by server; '' names the only one. `file` is '' if no report was given."""

    file: str = ""
    servers: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)

    def of(self, server: str) -> tuple[Finding, ...] | None:
        """The findings on a server, none if it was not in the report; None if no report was given."""
        if not self.file:
            return None
        return self.servers.get("", ()) if "" in self.servers else self.servers.get(server, ())


def read_earlier(path: Path | None, *, several: bool) -> EarlierReport:
    """Read a report; an empty one for None. `several`: whether this run judges several servers.

    Raises:
        BadReport: it cannot be read, or is not of the same form.
    """
    if path is None:
        return EarlierReport()
    try:
        report = parse_json(read_text(path, _LARGEST), _REPLIES)
    except OSError as error:
        raise BadReport(f"--gym-before {str(path)!r}: {error.strerror}; give a .json that --gym-report wrote") from None
    except ValueError as error:
        raise BadReport(f"--gym-before {str(path)!r}: {error}; give a .json that --gym-report wrote") from None
    schema = report.get("schema") if isinstance(report, dict) else None
    if schema == SCHEMA and several:
        raise BadReport(f"--gym-before {str(path)!r}: that is of one server, and several are judged; judge it alone")
    try:
        if schema == SCHEMA:
            return EarlierReport(str(path), {"": _findings(report)})
        if schema == FLEET_SCHEMA:
            servers = {str(each["name"]): _findings(each["report"]) for each in report["servers"]}
            return EarlierReport(str(path), servers)
    except (KeyError, TypeError, ValueError) as error:
        raise BadReport(f"--gym-before {str(path)!r}: it is not a complete report ({error!r})") from None
    raise BadReport(f"--gym-before {str(path)!r}: its schema is not {SCHEMA} or {FLEET_SCHEMA}; write it anew")


def _findings(report: Mapping[str, Any]) -> tuple[Finding, ...]:
    return tuple(Finding.from_json(finding) for finding in report["findings"])
