"""What the server's process kept on the page: its memory over the sessions that were run, with their slope."""

from collections.abc import Sequence
from typing import Final

from gym_conformance.findings import ProcessReading
from gym_conformance.reports.page.markup import Markup, element

_WIDTH: Final = 720
_HEIGHT: Final = 200
_MARGIN: Final = 14

_MIB: Final = 2**20


def memory(readings: Sequence[ProcessReading]) -> Markup:
    """The section of the page: a plot, and its numbers as a table."""
    heads = ("Sessions", "Memory", "Child processes", "Open files")
    rows = [
        element("tr", *(element("td", cell, class_="number") for cell in _cells(reading, readings[0])))
        for reading in readings
    ]
    table = element(
        "table",
        element("thead", element("tr", *(element("th", head, scope="col", class_="number") for head in heads))),
        element("tbody", *rows),
        class_="latency",
    )
    return element(
        "section",
        element("h2", "Memory", id="memory"),
        element("p", _said(readings)),
        element("div", _plot(readings), table, class_="wide", tabindex="0", role="region", aria_label="Memory"),
        aria_labelledby="memory",
    )


def _said(readings: Sequence[ProcessReading]) -> str:
    first, last = readings[1], readings[-1]  # before the first the server was cold
    sessions = last.sessions - first.sessions
    slope = (last.memory - first.memory) / sessions / 1024
    return f"{slope:+,.1f} KiB for each of {sessions} sessions, half of them abandoned."


def _cells(reading: ProcessReading, first: ProcessReading) -> tuple[str, ...]:
    grown = (reading.memory - first.memory) / _MIB
    size = f"{reading.memory / _MIB:,.1f} MiB ({grown:+.1f})"
    return f"{reading.sessions:,}", size, f"{reading.children:,}", f"{reading.files:,}"


def _plot(readings: Sequence[ProcessReading]) -> Markup:
    """From nothing to the most that was held, so that a slope that hardly matters looks flat."""
    start, end = readings[0].sessions, readings[-1].sessions
    most = max(reading.memory for reading in readings)

    def at(reading: ProcessReading) -> tuple[float, float]:
        x = _MARGIN + (reading.sessions - start) / (end - start) * (_WIDTH - 2 * _MARGIN)
        y = _HEIGHT - _MARGIN - reading.memory / most * (_HEIGHT - 2 * _MARGIN)
        return round(x, 1), round(y, 1)

    places = [at(reading) for reading in readings]
    grid = [
        element("line", x1=_MARGIN, x2=_WIDTH - _MARGIN, y1=y, y2=y, class_="grid")
        for y in (_MARGIN, _HEIGHT / 2, _HEIGHT - _MARGIN)
    ]
    line = element("polyline", points=" ".join(f"{x},{y}" for x, y in places), class_="slope")
    dots = [element("circle", cx=x, cy=y, r=4) for x, y in places]
    label = f"Memory over sessions: {readings[0].memory / _MIB:.1f} to {readings[-1].memory / _MIB:.1f} MiB"
    return element("svg", *grid, line, *dots, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)
