"""The page of several servers in a real browser."""

import pytest

from tests.reports.browser.conftest import ShowFleet
from tests.reports.browser.test_browser import CONTRAST, VISIBLE
from tests.reports.samples import FLEET, fleet

#: Names of the servers in the order in which they stand.
NAMES = "[...document.querySelectorAll('#list > tr > th')].map((one) => one.textContent)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_it_opens_without_a_complaint_and_fits(show_fleet: ShowFleet, width: int, scheme: str) -> None:
    page = show_fleet(FLEET, width=width, scheme=scheme)
    assert page.complaints() == []
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(CONTRAST) == []
    assert page.run("document.querySelector('.bar').getBoundingClientRect().width") > width / 2


def test_searching_and_filtering(show_fleet: ShowFleet) -> None:
    page = show_fleet(FLEET)
    assert page.run(VISIBLE) == len(FLEET)
    page.press("/")
    page.type("verify-scores-rows")
    assert page.run(VISIBLE) == 2
    assert page.run("document.getElementById('count').textContent") == "2 of 8 servers"
    page.run("document.getElementById('filter').reset()")
    page.run("document.querySelector('input[value=fit]').click(); new Promise((done) => setTimeout(done, 200))")
    assert page.run(VISIBLE) == 6


def test_sorting(show_fleet: ShowFleet) -> None:
    page = show_fleet(FLEET)
    by_name = (
        "[...document.querySelectorAll('.fleet thead button')].find((one) => one.textContent === 'server').click()"
    )
    page.run(by_name)
    assert page.run(NAMES) == sorted(FLEET)
    page.run(by_name)
    assert page.run(NAMES) == sorted(FLEET, reverse=True)
    page.run(
        "[...document.querySelectorAll('.fleet thead button')].find((one) => one.textContent === 'verify').click()"
    )
    assert set(page.run(NAMES)[:2]) == {"calendar", "library"}
    assert page.run("document.querySelectorAll('[aria-sort]').length") == 1


def test_a_screen_reader_hears_names(show_fleet: ShowFleet) -> None:
    nodes = show_fleet(FLEET).send("Accessibility.getFullAXTree")["nodes"]
    links = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "link"]
    images = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "image"]
    assert all(links)
    assert "seed: pass" in links
    assert any("MUST violated: verify-scores-rows" in name for name in links)
    assert "2 fit, 2 not fit, 3 not testable, 1 nothing to judge" in images


def test_a_thousand_servers_can_be_read(show_fleet: ShowFleet) -> None:
    page = show_fleet(fleet(1000), width=400)
    assert page.run(VISIBLE) == 1000
    assert page.run("document.documentElement.scrollWidth") <= 400
    page.press("/")
    page.type("server-0999")
    assert page.run(VISIBLE) == 1
