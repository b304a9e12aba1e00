"""Latency on the page: every sample of an endpoint on one logarithmic axis, with its median and 95 % marked."""

from collections.abc import Sequence
from math import floor, log10
from typing import Final

from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.page.markup import Markup, element

_WIDTH: Final = 720
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
    head = (
        "Endpoint",
        "Requests",
        "Median",
        "95 %",
        "Slowest",
        f"{_time(10.0**low)} to {_time(10.0**high)}, logarithmic",
    )
    rows = [_row(one, low, high) for one in endpoints]
    table = element(
        "table",
        element("thead", element("tr", *(element("th", name, scope="col") for name in head))),
        element("tbody", *rows),
        class_="latency",
    )
    return element(
        "section",
        element("h2", "Latency", id="latency"),
        element("div", table, class_="wide", tabindex="0", role="region", aria_label="Latency by endpoint"),
        aria_labelledby="latency",
    )


def _row(one: Latency, low: int, high: int) -> Markup:
    times = [_time(one.quantile(part)) for part in (0.5, 0.95, 1)]
    return element(
        "tr",
        element("th", element("code", one.endpoint), scope="row"),
        element("td", f"{one.requests:,}", class_="number"),
        *(element("td", time, class_="number") for time in times),
        element("td", _plot(one, low, high)),
    )


def _plot(one: Latency, low: int, high: int) -> Markup:
    def at(seconds: float) -> float:
        part = (_power(seconds) - low) / (high - low)
        return round(_MARGIN + part * (_WIDTH - 2 * _MARGIN), 1)

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
    label = f"Latency of {one.endpoint}: median {_time(one.quantile(0.5))}, 95 % within {_time(one.quantile(0.95))}"
    return element("svg", *grid, *dots, *marks, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _power(seconds: float) -> float:
    """Of ten; what is shorter than can be drawn is drawn as the shortest."""
    return log10(max(seconds, _SHORTEST))
