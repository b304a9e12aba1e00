"""The page of several servers as a document; tests/reports/browser looks at it in a real browser."""

import re
from pathlib import Path

import pytest

from gym_conformance.reports.fleet_needs import needs, shared_violations
from gym_conformance.reports.fleet_table import ordered
from gym_conformance.reports.html_report import html_reports
from gym_conformance.reports.report import Report
from gym_conformance.reports.report_files import write_reports
from tests.reports.parsed_page import ParsedPage
from tests.reports.samples import ATTACKS, FLEET, HUGE, fleet, hostile


def test_it_says_how_many_are_fit_and_what_is_missing() -> None:
    text = ParsedPage(html_reports(FLEET, "all-servers")).text
    for said in ("2 of 8 servers are fit to train on", "3 not testable", "2 not fit", "1 nothing to judge"):
        assert said in text
    assert "2 need a sandbox" in text
    assert "1 needs Python modules--gym-install installs what an env requires" in text
    assert "2 servers: verify MUST score every dataset row" in text
    assert text.count("NeMo Gym itself: verify-raw-surrogate") == 1


def test_what_is_missing_is_grouped_by_kind() -> None:
    rows = ordered(FLEET)
    assert [(need.what, list(need.servers)) for need in needs(rows)] == [
        ("a sandbox", ["first box", "second box"]),
        ("Python modules", ["search"]),
    ]
    assert [(one.first.check, set(one.servers)) for one in shared_violations(rows)] == [
        ("verify-scores-rows", {"calendar", "library"}),
        ("tool-name-legal", {"calendar", "library"}),
    ]


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    """A cell leads to its section's gravest check, on that server's own page."""
    write_reports(tmp_path / "all.html", FLEET)
    page = ParsedPage((tmp_path / "all.html").read_text())
    assert len(set(page.ids)) == len(page.ids)
    own = {each.stem: ParsedPage(each.read_text()) for each in (tmp_path / "all-servers").iterdir()}
    led = set()
    for link in page.links:
        file, _, anchor = link.partition("#")
        if not file:
            assert anchor in page.ids
        elif found := re.fullmatch(r"all-servers/(.*)\.html", file):
            name = found[1].replace("%20", " ")
            assert not anchor or anchor in own[name].ids
            led.add(name)
    assert led == FLEET.keys()


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_text_is_text(text: str) -> None:
    def tags(said: str) -> list[str]:
        reports: dict[str, Report] = {"one": hostile(said), "two": hostile(said)}
        return sorted(set(ParsedPage(html_reports(reports, "all-servers")).tags))

    assert tags(text) == tags("plain")


def test_it_stays_small() -> None:
    assert len(html_reports({"one": hostile(HUGE), "two": hostile(HUGE)}, "all-servers")) < 60_000
    assert len(html_reports(fleet(1000), "all-servers")) < 3_000_000
