"""Many targets on the terminal: a table, a line each, what matters most first."""

from collections.abc import Mapping
from typing import Any

from gym_conformance.plugin.summary import Tally, write_baseline_end
from gym_conformance.reports.fleet import Line, ordered
from gym_conformance.reports.report import Outcome

_COLOURS = {
    Outcome.UNFIT: "red",
    Outcome.UNTESTABLE: "red",
    Outcome.STALE: "red",
    Outcome.NOTHING: "yellow",
    Outcome.PARTLY: "green",
    Outcome.FIT: "green",
}


def write_fleet(terminal: Any, tallies: Mapping[str, Tally]) -> None:
    """The table, and how many are fit; what failed stands among pytest's failures."""
    ran = {name: tally.report("") for name, tally in tallies.items() if tally.found or tally.died}
    if ran:
        terminal.write_sep("=", "gym conformance")
        lines = ordered(ran)
        widths = [max(len(cell) for cell in column) for column in zip(*(_cells(line) for line in lines), strict=True)]
        room = max(20, terminal._tw.fullwidth - sum(widths) - 2 * len(widths))  # noqa: SLF001 - as pytest's own do
        for line in lines:
            cells = [cell.ljust(width) for cell, width in zip(_cells(line), widths, strict=True)]
            said = line.first if len(line.first) <= room else line.first[: room - 1] + "…"
            terminal.write_line("  ".join([*cells, said]).rstrip(), **{_COLOURS[line.report.outcome]: True})
        write_baseline_end(terminal, tallies.values())
        requests = sum(count for tally in tallies.values() for count, _ in tally.effort.values())
        seconds = sum(spent for tally in tallies.values() for _, spent in tally.effort.values())
        if earlier := sum(tally.earlier for tally in tallies.values()):
            terminal.write_line(f"{earlier} of them as an earlier run found them (--gym-resume).")
        terminal.write_line(
            f"{len(ran)} of {len(tallies)} servers, {requests} requests, {seconds:.1f} s waiting for them."
        )
        _write_verdict(terminal, tallies, lines)
    if locked := [tally.locked for tally in tallies.values() if tally.locked]:
        terminal.write_line(f"{len(locked)} lock{'s are' if len(locked) > 1 else ' is'} written.")
    for tally in tallies.values():
        for message in tally.unwritten:
            terminal.write_line(message, red=True, bold=True)


def _cells(line: Line) -> tuple[str, ...]:
    return line.name, line.said, line.kind, line.counts


def _write_verdict(terminal: Any, tallies: Mapping[str, Tally], lines: list[Line]) -> None:
    if any(tally.own_fault for tally in tallies.values()):
        terminal.write_line("gym-conformance itself failed: no verdict. Please report it.", bold=True, red=True)
        return
    said = [line.said for line in lines]
    counts = ", ".join(f"{said.count(each)} {each}" for each in dict.fromkeys(said))
    red = any(_COLOURS[line.report.outcome] == "red" for line in lines)
    terminal.write_line(f"{counts}.", bold=True, **{"red" if red else "green": True})
