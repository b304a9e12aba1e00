"""Reports as files: the suffix decides the form."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gym_conformance.reports.drift_alone import html_drift, json_drift, markdown_drift
from gym_conformance.reports.html import html_report
from gym_conformance.reports.json_report import json_report
from gym_conformance.reports.markdown import markdown_report
from gym_conformance.reports.report import Report
from gym_conformance.reports.sarif import sarif_report

#: By suffix; `.xml` is not among them: it is pytest's own JUnit.
FORMS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".json": json_report,
    ".md": markdown_report,
    ".html": html_report,
    ".sarif": sarif_report,
}


#: The drift report alone, by suffix.
DRIFT_FORMS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".json": json_drift,
    ".md": markdown_drift,
    ".html": html_drift,
}


def write_report(path: Path, report: Report) -> None:
    """Write the report whole or not at all: a reader never meets half a file."""
    _write(path, FORMS[path.suffix](report))


def write_drift(path: Path, report: Report) -> None:
    """Write the drift report alone, in the same way."""
    _write(path, DRIFT_FORMS[path.suffix](report))


def _write(path: Path, text: str) -> None:
    half = path.with_name(path.name + ".part")
    half.write_text(text, "utf-8")
    half.replace(path)
