"""The outcome as a badge: a small SVG for a README, which loads nothing and contains only text of ours."""

from collections.abc import Mapping
from typing import Final

from gym_conformance.reports.fleet_table import FleetRow
from gym_conformance.reports.page.markup import Markup, element
from gym_conformance.reports.report import Conclusion, Report

_LABEL: Final = "gym conformance"
_GREY, _GREEN, _RED, _ORANGE = "#555", "#2b7d32", "#b3261e", "#9a5b00"  # white on each: a contrast of 5 or more
_COLOURS: Final = {
    Conclusion.FIT: _GREEN,
    Conclusion.PARTLY: _GREEN,
    Conclusion.UNFIT: _RED,
    Conclusion.STALE: _RED,
    Conclusion.UNTESTABLE: _ORANGE,
    Conclusion.NOTHING: _GREY,
}

#: In pixels: the usual height of a badge, the padding of a text, and the widths of narrow, wide and other letters at 11
#: px.
_HEIGHT, _ROOM = 20, 6
_NARROW, _WIDE, _USUAL = 4.2, 10.4, 6.9


def badge_report(report: Report) -> str:
    """The badge of one server, such as `gym conformance | fit`."""
    return _badge(FleetRow("", report).said, _COLOURS[report.conclusion])


def badge_reports(reports: Mapping[str, Report]) -> str:
    """The badge of several servers: how many are fit; red if one is not, orange if one could not be tested."""
    outcomes = [report.conclusion for report in reports.values()]
    fit = outcomes.count(Conclusion.FIT)
    worst = next((colour for colour in (_RED, _ORANGE) if colour in {_COLOURS[one] for one in outcomes}), _GREEN)
    return _badge(f"{fit} of {len(outcomes)} fit", worst)


def _badge(said: str, colour: str) -> str:
    left, right = (_length(text) + 2 * _ROOM for text in (_LABEL, said))
    width = f"{left + right:.1f}"
    texts = [_text(_LABEL, _ROOM), _text(said, left + _ROOM)]
    return (
        element(
            "svg",
            element("title", f"{_LABEL}: {said}"),
            element("rect", width=width, height=_HEIGHT, rx=3, fill=_GREY),
            element("rect", x=f"{left:.1f}", width=f"{right:.1f}", height=_HEIGHT, rx=3, fill=colour),
            element("rect", x=f"{left:.1f}", width=4, height=_HEIGHT, fill=colour),
            element("g", *texts, fill="#fff", font_family="Verdana,DejaVu Sans,sans-serif", font_size=11),
            xmlns="http://www.w3.org/2000/svg",
            width=width,
            height=_HEIGHT,
            role="img",
            aria_label=f"{_LABEL}: {said}",
        )
        + "\n"
    )


def _text(text: str, x: float) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=14, textLength=f"{_length(text):.1f}")


def _length(text: str) -> float:
    return sum(_NARROW if letter in "fijlrt " else _WIDE if letter in "mw" else _USUAL for letter in text)
