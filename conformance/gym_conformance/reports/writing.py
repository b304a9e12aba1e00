"""Reports as files: the suffix decides the form."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

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


def write_report(path: Path, report: Report) -> None:
    """Write the report whole or not at all: a reader never meets half a file."""
    half = path.with_name(path.name + ".part")
    half.write_text(FORMS[path.suffix](report), "utf-8")
    half.replace(path)
