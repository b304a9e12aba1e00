"""A browser for these tests. Without one they are skipped; CI sets GYM_NEEDS_BROWSER, and then they fail."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from gym_conformance.reports.html_report import html_report, html_reports
from gym_conformance.reports.report import Report
from tests.reports.browser.chromium import Chromium, find_chromium
from tests.reports.browser.page import Page

Show = Callable[..., Page]
ShowFleet = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    executable = find_chromium()
    if executable is None:
        missing = "no Chromium on PATH, and GYM_CHROMIUM names none: apt-get install chromium"
        if os.environ.get("GYM_NEEDS_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)
    with Chromium(executable, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def show(chromium: Chromium, tmp_path: Path) -> Show:
    """Open a report in the browser."""

    def open_page(report: Report, *, width: int = 1400, scheme: str = "light") -> Page:
        file = tmp_path / "report.html"
        file.write_text(html_report(report), "utf-8")
        return Page(chromium, file, width=width, scheme=scheme)

    return open_page


@pytest.fixture
def show_fleet(chromium: Chromium, tmp_path: Path) -> ShowFleet:
    """Open the page of several servers in the browser."""

    def open_page(reports: Mapping[str, Report], *, width: int = 1400, scheme: str = "light") -> Page:
        file = tmp_path / "all.html"
        file.write_text(html_reports(reports, "all-servers"), "utf-8")
        return Page(chromium, file, width=width, scheme=scheme)

    return open_page
