"""What the server's process kept on the page: its memory over the sessions that were run, with their slope."""

from collections.abc import Sequence
from typing import Final

from gym_conformance.findings import ProcessReading
from gym_conformance.reports.page.markup import Markup, element
from gym_conformance.reports.page.parts import curve, numbers, section, table, wide

_MIB: Final = 2**20


def memory(readings: Sequence[ProcessReading]) -> Markup:
    """The section of the page: a plot, and its numbers as a table."""
    heads = ("Sessions", "Memory", "Child processes", "Threads", "Open files")
    rows = [element("tr", *numbers(_cells(reading, readings[0]))) for reading in readings]
    shown = wide("Memory", _plot(readings), table(heads, rows, numbers="number"))
    return section("Memory", element("p", _said(readings)), shown)


def _said(readings: Sequence[ProcessReading]) -> str:
    first, last = readings[1], readings[-1]  # before the first the server was cold
    sessions = last.sessions - first.sessions
    slope = (last.memory - first.memory) / sessions / 1024
    return f"{slope:+,.1f} KiB for each of {sessions} sessions, half of them abandoned."


def _cells(reading: ProcessReading, first: ProcessReading) -> tuple[str, ...]:
    grown = (reading.memory - first.memory) / _MIB
    size = f"{reading.memory / _MIB:,.1f} MiB ({grown:+.1f})"
    return f"{reading.sessions:,}", size, f"{reading.children:,}", f"{reading.threads:,}", f"{reading.files:,}"


def _plot(readings: Sequence[ProcessReading]) -> Markup:
    """From nothing to the most that was held, so that a slope that hardly matters looks flat."""
    start, end = readings[0].sessions, readings[-1].sessions
    most = max(reading.memory for reading in readings)

    places = [((one.sessions - start) / (end - start), one.memory / most) for one in readings]
    label = f"Memory over sessions: {readings[0].memory / _MIB:.1f} to {readings[-1].memory / _MIB:.1f} MiB"
    return curve(label, places, [4] * len(places))
