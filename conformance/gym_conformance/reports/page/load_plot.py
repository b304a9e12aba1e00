"""The load on the page: episodes a second over episodes in flight, and each endpoint's times as a table."""

from collections.abc import Sequence
from math import log2
from typing import Final

from gym_conformance.findings import LoadLevel
from gym_conformance.reports.load_curve import missing, sentence, whose
from gym_conformance.reports.page.markup import Markup, element

_WIDTH: Final = 720
_HEIGHT: Final = 200
_MARGIN: Final = 14

_HEADS: Final = ("In flight", "Episodes/s", "Astray", "Unanswered", "Broken", "Memory", "Cores")
_TIMES: Final = ("In flight", "Endpoint", "Replies", "p50", "p95", "p99")


def load(levels: Sequence[LoadLevel]) -> Markup:
    """The section of the page: a plot, the levels, and the endpoints' times at each."""
    rows = [element("tr", *(element("td", cell, class_="number") for cell in _cells(level))) for level in levels]
    times = [
        element("tr", *(element("td", cell, class_="number") for cell in cells))
        for level in levels
        for cells in _times(level)
    ]
    return element(
        "section",
        element("h2", "Load", id="load"),
        element("p", sentence(levels)),
        *(element("p", line) for line in (f"Rates and {whose(levels)}.", *missing(levels))),
        element(
            "div",
            _plot(levels),
            _table(_HEADS, rows),
            _table(_TIMES, times),
            class_="wide",
            tabindex="0",
            role="region",
            aria_label="Load",
        ),
        aria_labelledby="load",
    )


def _table(heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    head = element("tr", *(element("th", name, scope="col", class_="number") for name in heads))
    return element("table", element("thead", head), element("tbody", *rows), class_="latency")


def _cells(level: LoadLevel) -> tuple[str, ...]:
    memory = f"{level.memory / 2**20:,.0f} MiB" if level.memory else "-"
    counts = (f"{count:,}" for count in (level.wrong, level.unanswered, level.broken))
    cores = f"{level.cores:.1f}" if level.cores else "-"
    return f"{level.in_flight:,}", f"{level.rate:,.1f}", *counts, memory, cores


def _times(level: LoadLevel) -> list[tuple[str, ...]]:
    return [
        (
            f"{level.in_flight:,}",
            one.endpoint,
            f"{one.count:,}",
            *(f"{t * 1000:,.1f} ms" for t in (one.p50, one.p95, one.p99)),
        )
        for one in level.endpoints
    ]


def _plot(levels: Sequence[LoadLevel]) -> Markup:
    """In flight on a logarithmic axis, the rate from nothing to its highest; a level that does not hold is filled."""
    powers = [log2(level.in_flight) for level in levels]
    span, fastest = (powers[-1] - powers[0]) or 1.0, max(level.rate for level in levels) or 1.0

    def at(level: LoadLevel, power: float) -> tuple[float, float]:
        x = _MARGIN + (power - powers[0]) / span * (_WIDTH - 2 * _MARGIN)
        y = _HEIGHT - _MARGIN - level.rate / fastest * (_HEIGHT - 2 * _MARGIN)
        return round(x, 1), round(y, 1)

    places = [at(level, power) for level, power in zip(levels, powers, strict=True)]
    grid = [
        element("line", x1=_MARGIN, x2=_WIDTH - _MARGIN, y1=y, y2=y, class_="grid")
        for y in (_MARGIN, _HEIGHT / 2, _HEIGHT - _MARGIN)
    ]
    line = element("polyline", points=" ".join(f"{x},{y}" for x, y in places), class_="slope")
    dots = [
        element("circle", cx=x, cy=y, r=4 if level.held else 7) for level, (x, y) in zip(levels, places, strict=True)
    ]
    label = f"Episodes a second over episodes in flight, {levels[0].in_flight:,} to {levels[-1].in_flight:,}"
    return element("svg", *grid, line, *dots, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)
