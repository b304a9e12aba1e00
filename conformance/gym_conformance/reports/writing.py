"""Reports as files: the suffix decides the form."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gym_conformance.reports.drift_alone import html_drift, json_drift, markdown_drift
from gym_conformance.reports.html import html_report, html_reports
from gym_conformance.reports.json_report import json_report, json_reports
from gym_conformance.reports.markdown import markdown_report, markdown_reports
from gym_conformance.reports.report import Report
from gym_conformance.reports.sarif import sarif_report, sarif_reports

#: By suffix; `.xml` is not among them: it is pytest's own JUnit.
FORMS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".json": json_report,
    ".md": markdown_report,
    ".html": html_report,
    ".sarif": sarif_report,
}

_FLEETS: Final[Mapping[str, Callable[[Mapping[str, Report]], str]]] = {
    ".json": json_reports,
    ".md": markdown_reports,
    ".sarif": sarif_reports,
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


def write_reports(path: Path, reports: Mapping[str, Report]) -> None:
    """Write what was found on several targets, by name, as one report; of one target alone, its report.

    An HTML report of several is a page of them all; each one's own lies in a folder beside it.
    """
    if len(reports) == 1:
        write_report(path, *reports.values())
        return
    if path.suffix == ".html":
        folder = path.with_name(f"{path.stem}-servers")
        folder.mkdir(exist_ok=True)
        for name, report in reports.items():
            write_report(folder / f"{name}.html", report)
        _write(path, html_reports(reports, folder.name))
    else:
        _write(path, _FLEETS[path.suffix](reports))


def _write(path: Path, text: str) -> None:
    half = path.with_name(path.name + ".part")
    half.write_text(text, "utf-8")
    half.replace(path)
