"""Writes reports to files; the suffix determines the format."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gym_conformance.documents import own_folder, write_whole
from gym_conformance.reports.badge import badge_report, badge_reports
from gym_conformance.reports.drift_report import (
    html_drift,
    html_drifts,
    json_drift,
    json_drifts,
    markdown_drift,
    markdown_drifts,
)
from gym_conformance.reports.html_report import html_report, html_reports
from gym_conformance.reports.json_report import json_report, json_reports
from gym_conformance.reports.markdown_report import markdown_report, markdown_reports
from gym_conformance.reports.report import Report
from gym_conformance.reports.sarif_report import sarif_report, sarif_reports

#: Formats by suffix. `.xml` is missing because pytest writes the JUnit file.
FORMS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".json": json_report,
    ".md": markdown_report,
    ".html": html_report,
    ".sarif": sarif_report,
    ".svg": badge_report,
}

_FLEETS: Final[Mapping[str, Callable[[Mapping[str, Report]], str]]] = {
    ".json": json_reports,
    ".md": markdown_reports,
    ".sarif": sarif_reports,
}


_Page = Callable[[Mapping[str, Report], str], str]

#: Formats that hold one target: for several, these make an overview, and each target's own file is in the folder of
#: that name.
_PAGES: Final[Mapping[str, _Page]] = {".html": html_reports, ".svg": lambda reports, _: badge_reports(reports)}
_DRIFT_PAGES: Final[Mapping[str, _Page]] = {".html": html_drifts}

#: Formats of the separate drift report, by suffix.
DRIFT_FORMS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".json": json_drift,
    ".md": markdown_drift,
    ".html": html_drift,
}

_DRIFT_FLEETS: Final[Mapping[str, Callable[[Mapping[str, Report]], str]]] = {
    ".json": json_drifts,
    ".md": markdown_drifts,
}


def write_reports(path: Path, reports: Mapping[str, Report]) -> None:
    """Write the findings on several targets, by name, as one report; for a single target, its own report.

    An HTML page or a badge for several targets is an overview; each target's own is in a folder beside it.
    """
    _write_each(path, reports, FORMS, _FLEETS, _PAGES)


def write_drifts(path: Path, reports: Mapping[str, Report]) -> None:
    """Write the separate drift reports in the same way."""
    _write_each(path, reports, DRIFT_FORMS, _DRIFT_FLEETS, _DRIFT_PAGES)


def _write_each(
    path: Path,
    reports: Mapping[str, Report],
    one: Mapping[str, Callable[[Report], str]],
    several: Mapping[str, Callable[[Mapping[str, Report]], str]],
    pages: Mapping[str, _Page],
) -> None:
    if len(reports) == 1:
        write_whole(path, one[path.suffix](*reports.values()))
    elif page := pages.get(path.suffix):
        folder = own_folder(path.with_name(f"{path.stem}-servers"))
        for name, report in reports.items():
            write_whole(folder / f"{name}{path.suffix}", one[path.suffix](report))
        write_whole(path, page(reports, folder.name))
    else:
        write_whole(path, several[path.suffix](reports))
