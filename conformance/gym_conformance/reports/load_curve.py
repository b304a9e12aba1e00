"""The curve of a load: its knee, and its meaning for a maintainer in a sentence or two."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from gym_conformance.findings import EndpointLoad, LoadLevel
from gym_conformance.printable import counted
from gym_conformance.reports.shown_text import shown_time

#: A level counts as fastest if it reaches this part of the highest rate.
_NEAR_HIGHEST: Final = 0.9

#: An endpoint is queueing if it takes this many times as long as at the first level.
_QUEUEING: Final = 3.0

#: The range of busy cores that suggests that the server can use only one.
_ONE_CORE: Final = (0.75, 1.25)

_BAR: Final = 24
_MIB: Final = 2**20


def held(levels: Sequence[LoadLevel]) -> int:
    """The most episodes in flight up to which each was answered as when alone; 0 for none."""
    until = takewhile(lambda level: level.held, levels)
    return max((level.in_flight for level in until if not level.missing), default=0)


def knee(levels: Sequence[LoadLevel]) -> LoadLevel:
    """The first level that is about as fast as any: at higher levels, the additional episodes only wait."""
    fastest = max(level.rate for level in levels)
    return next(level for level in levels if level.rate >= _NEAR_HIGHEST * fastest)


def sentence(levels: Sequence[LoadLevel]) -> str:
    """Up to which level it holds, from where on it is no faster, and what the additional episodes wait for."""
    most, turn, last = held(levels), knee(levels), levels[-1]
    first = next((level for level in levels if not level.held), None)
    said = "Does not hold" if first else "Not known to hold, since no level was driven whole"
    if most:
        said = f"Holds to {most:,} in flight"
    if first:
        said += f"; {_failed(first)} with {first.in_flight:,}"
    if turn is last:
        return f"{said}; {turn.rate:,.0f} episodes a second, still rising."
    said += f"; no faster beyond {turn.in_flight:,} ({turn.rate:,.0f} episodes a second)"
    slow = _slowest(levels[0], last)
    if slow is None:
        return f"{said}."
    before, now = slow
    busy = _ONE_CORE[0] <= last.cores <= _ONE_CORE[1]
    why = ": the server keeps one core busy" if busy else ""
    path = now.endpoint.partition(" ")[2]
    return f"{said}, where {path} queues ({shown_time(before.p50)}, then {shown_time(now.p50)}){why}."


def _failed(level: LoadLevel) -> str:
    parts = (
        (level.wrong - level.lost - level.crashed, "another reply or reward"),
        (level.lost, "refused"),
        (level.crashed, "5xx"),
        (level.unanswered, "not in time"),
        (level.broken, "broken connections"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in parts if count)


def _slowest(first: LoadLevel, last: LoadLevel) -> tuple[EndpointLoad, EndpointLoad] | None:
    """The endpoint that takes longest at the last level, if it queues there: at the first level, and at the last."""
    alone = {each.endpoint: each for each in first.endpoints}
    common = [each for each in last.endpoints if each.endpoint in alone]
    now = max(common, key=lambda each: each.p50, default=None)
    if now is None or now.p50 < _QUEUEING * alone[now.endpoint].p50:
        return None
    return alone[now.endpoint], now


def text_lines(levels: Sequence[LoadLevel]) -> Iterator[str]:
    """The curve as plain text: a line for each level, and the sentence."""
    fastest = max(level.rate for level in levels) or 1.0
    yield f"Load (episodes in flight; {whose(levels)}):"
    yield f"  {'at once':>7} {'episodes/s':>10}  {'':{_BAR}} {'slowest p50':>11} {'p95':>8} {'p99':>8} {'memory':>9}  astray"
    for level in levels:
        bar = "#" * round(_BAR * level.rate / fastest)
        slow = max(level.endpoints, key=lambda each: each.p50, default=None)
        times = [shown_time(each) for each in (slow.p50, slow.p95, slow.p99)] if slow else ["-"] * 3
        memory = f"{level.memory / _MIB:,.0f} MiB" if level.memory else "-"
        yield (
            f"  {level.in_flight:>7,} {level.rate:>10,.1f}  {bar:{_BAR}} {times[0]:>11} {times[1]:>8} {times[2]:>8} "
            f"{memory:>9}  {_failed(level) or '-'}"
        )
    yield from (f"  {line}" for line in (*missing(levels), sentence(levels)))


def whose(levels: Sequence[LoadLevel]) -> str:
    """Which machines the times are from, in a phrase."""
    if nodes := max(level.nodes for level in levels):
        return f"driven from {counted(nodes, 'node')} of a cluster, whose times these are"
    return "times are this machine's, which client and server share"


def missing(levels: Sequence[LoadLevel]) -> Iterator[str]:
    """Nodes that reported nothing, and at which level."""
    for level in levels:
        yield from (f"With {level.in_flight:,}, nothing came from {node}" for node in level.missing)
