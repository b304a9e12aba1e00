"""The load on the page: episodes a second over episodes in flight, and each endpoint's times as a table."""

from collections.abc import Sequence
from math import log2
from typing import Final

from gym_conformance.findings import LoadLevel
from gym_conformance.reports.load_curve import missing, sentence, whose
from gym_conformance.reports.page.markup import Markup, element
from gym_conformance.reports.page.parts import curve, numbers, section, table, wide

_HEADS: Final = ("In flight", "Episodes/s", "Astray", "Unanswered", "Broken", "Memory", "Cores")
_TIMES: Final = ("In flight", "Endpoint", "Replies", "p50", "p95", "p99")


def load(levels: Sequence[LoadLevel]) -> Markup:
    """The section of the page: a plot, the levels, and the endpoints' times at each."""
    rows = [element("tr", *numbers(_cells(level))) for level in levels]
    times = [element("tr", *numbers(cells)) for level in levels for cells in _times(level)]
    return section(
        "Load",
        element("p", sentence(levels)),
        *(element("p", line) for line in (f"Rates and {whose(levels)}.", *missing(levels))),
        wide("Load", _plot(levels), table(_HEADS, rows, numbers="number"), table(_TIMES, times, numbers="number")),
    )


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

    places = [((power - powers[0]) / span, level.rate / fastest) for level, power in zip(levels, powers, strict=True)]
    label = f"Episodes a second over episodes in flight, {levels[0].in_flight:,} to {levels[-1].in_flight:,}"
    return curve(label, places, (4 if level.held else 7 for level in levels))
