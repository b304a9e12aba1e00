"""The badge: well-formed, of one text that is ours, and nothing that loads or runs."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from gym_conformance.reports.badge import badge_report, badge_reports
from gym_conformance.reports.report import Report
from tests.reports.samples import ATTACKS, FIT, FULL, TARGET, UNTESTABLE, hostile

_UNTESTABLE = Report(TARGET, (UNTESTABLE,))
_NOTHING = Report(TARGET, ())


def _said(svg: str) -> str:
    root = ET.fromstring(svg)  # noqa: S314 - it is our own
    tags = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in root.iter()}
    assert tags == {"svg", "title", "rect", "g", "text"}
    assert {
        name for element in root.iter() for name in element.attrib if "href" in name or name.startswith("on")
    } == set()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert root.get("aria-label") == ": ".join(map(str, texts))
    return str(texts[1])


@pytest.mark.parametrize(
    ("report", "said"),
    [(FIT, "fit"), (FULL, "not fit"), (_UNTESTABLE, "not testable"), (_NOTHING, "nothing to judge")],
)
def test_it_says_the_outcome(report: Report, said: str) -> None:
    assert _said(badge_report(report)) == said


def test_of_several_it_counts_the_fit() -> None:
    assert _said(badge_reports({"a": FIT, "b": FULL, "c": _NOTHING})) == "1 of 3 fit"
    assert badge_report(FULL).count("#b3261e") == badge_reports({"a": FIT, "b": FULL}).count("#b3261e") == 2
    assert "#b3261e" not in badge_reports({"a": FIT, "b": _NOTHING})


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_a_server_is_in_it(attack: str) -> None:
    assert badge_report(hostile(attack)) == badge_report(FULL)
    assert badge_reports({attack: replace(FIT, target={"url": attack})}) == badge_reports({"a": FIT})
