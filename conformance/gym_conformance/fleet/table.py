"""The summary table of a run of several targets, worst first."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from gym_conformance.plugin.summary import Tally, write_baseline_end, write_changes
from gym_conformance.printable import counted
from gym_conformance.reports.fleet_table import FleetRow, ordered
from gym_conformance.reports.report import Conclusion

#: The colour of a line, by the target's outcome.
COLOURS: Final = {
    Conclusion.UNFIT: "red",
    Conclusion.UNTESTABLE: "red",
    Conclusion.STALE: "red",
    Conclusion.NOTHING: "yellow",
    Conclusion.PARTLY: "green",
    Conclusion.FIT: "green",
}

_NO_VERDICT: Final = "no verdict"


def write_table(terminal: Any, tallies: Mapping[str, Tally], *, resumed: int) -> None:
    """Write the table, and how many targets are fit; pytest's own failures section shows what failed.

    `resumed`: how many targets have their findings from an earlier run.
    """
    if ran := {name: tally for name, tally in tallies.items() if tally.found or tally.died}:
        terminal.write_sep("=", "gym conformance")
        lines = ordered({name: tally.report("") for name, tally in ran.items()})
        _write_lines(terminal, lines, ran)
        write_baseline_end(terminal, tallies.values())
        if resumed:
            terminal.write_line(f"{resumed} of them as an earlier run found them (--gym-resume).")
        terminal.write_line(f"{len(ran)} of {counted(len(tallies), 'server')}, {_effort(tallies.values())}.")
        _write_changes(terminal, lines)
        _write_verdict(terminal, lines, ran)
    if locked := [tally.locked for tally in tallies.values() if tally.locked]:
        terminal.write_line(f"{len(locked)} lock{'s are' if len(locked) > 1 else ' is'} written.")
    for tally in tallies.values():
        for message in tally.unwritten:
            terminal.write_line(message, red=True, bold=True)


def _write_changes(terminal: Any, lines: list[FleetRow]) -> None:
    """Write what changed on each target since an earlier report, if anything did."""
    since = [(line.name, line.report.since) for line in lines if line.report.since]
    if since:
        none = "" if any(each.all for _, each in since) else " no difference"
        terminal.write_line(f"Since {since[0][1].file}:{none}", bold=True)
    for name, changes in since:
        if changes.all:
            write_changes(terminal, changes, name)


def _effort(tallies: Collection[Tally]) -> str:
    spent = [each for tally in tallies for each in tally.effort.values()]
    requests, seconds = sum(count for count, _ in spent), sum(seconds for _, seconds in spent)
    return f"{counted(requests, 'request')}, {seconds:.1f} s waiting for them"


def said_of(line: FleetRow, tally: Tally) -> str:
    """The outcome in a word or two; an internal error of the suite leaves a target without a verdict."""
    return _NO_VERDICT if tally.own_fault else line.said


def _write_lines(terminal: Any, lines: list[FleetRow], tallies: Mapping[str, Tally]) -> None:
    rows = [(line.name, said_of(line, tallies[line.name]), line.kind, line.counts) for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = max(20, terminal._tw.fullwidth - sum(widths) - 2 * len(widths))  # noqa: SLF001 - pytest's own plugins do so, too
    for line, row in zip(lines, rows, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        first = line.first if len(line.first) <= room else line.first[: room - 1] + "…"
        terminal.write_line("  ".join([*cells, first]).rstrip(), **{COLOURS[line.report.conclusion]: True})


def _write_verdict(terminal: Any, lines: list[FleetRow], tallies: Mapping[str, Tally]) -> None:
    said = [said_of(line, tallies[line.name]) for line in lines]
    counts = ", ".join(f"{said.count(each)} {each}" for each in dict.fromkeys(said))
    red = any(COLOURS[line.report.conclusion] == "red" for line in lines)
    terminal.write_line(f"{counts}.", bold=True, **{"red" if red else "green": True})
    if faulty := [name for name, tally in tallies.items() if tally.own_fault]:
        terminal.write_line(
            f"gym-conformance itself failed on {', '.join(faulty)}: no verdict there. Please report it.",
            bold=True,
            red=True,
        )
