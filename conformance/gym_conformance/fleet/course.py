"""Progress of a run of several targets on the terminal: one line for each target, once it is done."""

from collections.abc import Mapping
from typing import Any, Final

from gym_conformance.fleet.table import COLOURS, said_of
from gym_conformance.plugin.summary import Tally
from gym_conformance.reports.fleet_table import FleetRow

#: How many characters of a target's first finding its progress line shows.
_FINDING_LENGTH: Final = 80


class Course:
    """Prints each target's outcome when it is done, and which are running, whichever process judges them."""

    def __init__(self, tallies: Mapping[str, Tally]) -> None:
        self._tallies = tallies
        self._running: dict[str, str] = {}
        self._done: set[str] = set()

    def follow(self, terminal: Any, process: str, target: str) -> None:
        """Note that a process has judged a check of a target; the target that it judged before is done."""
        before = self._running.get(process, target)
        self._running[process] = target
        if before != target and before not in self._done:
            self._done.add(before)
            self._running = {one: name for one, name in self._running.items() if name != before}
            if terminal is not None and terminal.verbosity >= 0:
                self._write(terminal, FleetRow(before, self._tallies[before].so_far()))

    def _write(self, terminal: Any, line: FleetRow) -> None:
        found = "; ".join(
            filter(None, (said_of(line, self._tallies[line.name]), line.counts, line.first[:_FINDING_LENGTH]))
        )
        running = ", ".join(dict.fromkeys(self._running.values()))
        course = f"{len(self._done)} of {len(self._tallies)} done; running: {running}"
        terminal.ensure_newline()
        if terminal._tw.width_of_current_line:  # noqa: SLF001 - xdist's dots are on no line that pytest knows of
            terminal.write_line("")
        terminal.write_line(f"{line.name}: {found} ({course})", **{COLOURS[line.report.conclusion]: True})
