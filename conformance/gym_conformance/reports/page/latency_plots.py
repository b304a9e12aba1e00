"""Latency on the page: every sample of an endpoint on one logarithmic axis, with its median and 95 % marked."""

from collections.abc import Sequence
from math import floor, log10
from typing import Final

from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.page.markup import Markup, element
from gym_conformance.reports.page.parts import WIDTH, numbers, plot, section, table, wide
from gym_conformance.reports.shown_text import shown_time

_HEIGHT: Final = 44
_MARGIN: Final = 10

#: Dots of one endpoint: more look no different.
_DOTS: Final = 150

_SHORTEST: Final = 1e-4


def latency(endpoints: Sequence[Latency]) -> Markup:
    """The section of the page."""
    shortest = min(one.seconds[0] for one in endpoints)
    longest = max(one.seconds[-1] for one in endpoints)
    low, high = floor(_power(shortest)), floor(_power(longest)) + 1
    axis = f"{shown_time(10.0**low)} to {shown_time(10.0**high)}, logarithmic"
    heads = ("Endpoint", "Requests", "Median", "95 %", "Slowest", axis)
    return section("Latency", wide("Latency by endpoint", table(heads, [_row(one, low, high) for one in endpoints])))


def _row(one: Latency, low: int, high: int) -> Markup:
    times = [shown_time(one.quantile(part)) for part in (0.5, 0.95, 1)]
    return element(
        "tr",
        element("th", element("code", one.endpoint), scope="row"),
        *numbers((f"{one.requests:,}", *times)),
        element("td", _plot(one, low, high)),
    )


def _plot(one: Latency, low: int, high: int) -> Markup:
    def at(seconds: float) -> float:
        part = (_power(seconds) - low) / (high - low)
        return round(_MARGIN + part * (WIDTH - 2 * _MARGIN), 1)

    middle = _HEIGHT / 2
    grid = [
        element("line", x1=at(10.0**power), x2=at(10.0**power), y1=0, y2=_HEIGHT, class_="grid")
        for power in range(low, high + 1)
    ]
    step = max(1, len(one.seconds) // _DOTS)
    dots = [
        element("circle", cx=at(seconds), cy=round(middle + (number * 7 % 5 - 2) * 4, 1), r=2.5)
        for number, seconds in enumerate(one.seconds[::step])
    ]
    median, most = at(one.quantile(0.5)), at(one.quantile(0.95))
    marks = [
        element("line", x1=median, x2=median, y1=4, y2=_HEIGHT - 4, class_="median"),
        element("line", x1=most, x2=most, y1=10, y2=_HEIGHT - 10, class_="most"),
    ]
    label = f"Latency of {one.endpoint}: median {shown_time(one.quantile(0.5))}, 95 % within {shown_time(one.quantile(0.95))}"
    return plot(label, _HEIGHT, *grid, *dots, *marks)


def _power(seconds: float) -> float:
    """Of ten; what is shorter than can be drawn is drawn as the shortest."""
    return log10(max(seconds, _SHORTEST))
