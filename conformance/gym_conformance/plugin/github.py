"""Automatic output for GitHub Actions: annotations, and the step summary."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gym_conformance.documents import append_line
from gym_conformance.reports.annotations import annotations
from gym_conformance.reports.markdown_report import markdown_report, markdown_reports
from gym_conformance.reports.report import Report


def tell_github(terminal: Any, reports: Mapping[str, Report]) -> None:
    """Print annotations, and append to the step summary; does nothing outside of GitHub Actions."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    for line in (line for report in reports.values() for line in annotations(report, root)):
        terminal.ensure_newline()
        terminal.write_line(line)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            told = markdown_reports(reports) if len(reports) > 1 else markdown_report(*reports.values())
            append_line(Path(summary), told)
        except OSError as error:
            terminal.write_line(f"GITHUB_STEP_SUMMARY {summary}: {error.strerror}; no summary is written", yellow=True)
