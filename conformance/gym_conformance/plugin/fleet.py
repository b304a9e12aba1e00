"""Many targets on the terminal: a line for each as it is done, and in the end a table, what matters most first."""

from collections.abc import Mapping
from typing import Any

from gym_conformance.plugin.summary import Tally, write_baseline_end
from gym_conformance.reports.fleet_table import FleetRow, ordered
from gym_conformance.reports.report import Conclusion

#: Characters of a finding that are shown as soon as its target is done.
_FIRST = 80

_COLOURS = {
    Conclusion.UNFIT: "red",
    Conclusion.UNTESTABLE: "red",
    Conclusion.STALE: "red",
    Conclusion.NOTHING: "yellow",
    Conclusion.PARTLY: "green",
    Conclusion.FIT: "green",
}


class Course:
    """Says what was found of each target once it is done, and which are running, in whatever process each is judged."""

    def __init__(self, tallies: Mapping[str, Tally]) -> None:
        self._tallies = tallies
        self._running: dict[str, str] = {}
        self._done: set[str] = set()

    def follow(self, terminal: Any, process: str, target: str) -> None:
        """A process has judged a check of a target: what it judged before is done."""
        before = self._running.get(process, target)
        self._running[process] = target
        if before != target and before not in self._done:
            self._done.add(before)
            self._running = {one: name for one, name in self._running.items() if name != before}
            if terminal is not None and terminal.verbosity >= 0:
                self._write(terminal, FleetRow(before, self._tallies[before].so_far()))

    def _write(self, terminal: Any, line: FleetRow) -> None:
        found = "; ".join(filter(None, (line.said, line.counts, line.first[:_FIRST])))
        running = ", ".join(dict.fromkeys(self._running.values()))
        course = f"{len(self._done)} of {len(self._tallies)} done; running: {running}"
        terminal.ensure_newline()
        if terminal._tw.width_of_current_line:  # noqa: SLF001 - xdist's dots are on no line that pytest knows of
            terminal.write_line("")
        terminal.write_line(f"{line.name}: {found} ({course})", **{_COLOURS[line.report.conclusion]: True})


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
            terminal.write_line("  ".join([*cells, said]).rstrip(), **{_COLOURS[line.report.conclusion]: True})
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


def _cells(line: FleetRow) -> tuple[str, ...]:
    return line.name, line.said, line.kind, line.counts


def _write_verdict(terminal: Any, tallies: Mapping[str, Tally], lines: list[FleetRow]) -> None:
    if any(tally.own_fault for tally in tallies.values()):
        terminal.write_line("gym-conformance itself failed: no verdict. Please report it.", bold=True, red=True)
        return
    said = [line.said for line in lines]
    counts = ", ".join(f"{said.count(each)} {each}" for each in dict.fromkeys(said))
    red = any(_COLOURS[line.report.conclusion] == "red" for line in lines)
    terminal.write_line(f"{counts}.", bold=True, **{"red" if red else "green": True})
