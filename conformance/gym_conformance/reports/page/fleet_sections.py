"""The parts of the page of several servers: the bar, what they lack, what they share, and the matrix."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from gym_conformance.reports.fleet_needs import FleetNeed, SharedViolation
from gym_conformance.reports.fleet_table import FleetRow
from gym_conformance.reports.page.check_matrix import SIGNS, WORDS, state
from gym_conformance.reports.page.markup import Markup, element, join
from gym_conformance.reports.page.parts import filters, section, wide
from gym_conformance.reports.report import Conclusion, Judged, Report

#: Class and word of each outcome, in the order of the bar.
_OUTCOMES: Final = {
    Conclusion.FIT: ("pass", "fit"),
    Conclusion.PARTLY: ("pass", "fit"),
    Conclusion.UNFIT: ("must", "not fit"),
    Conclusion.STALE: ("must", "not fit"),
    Conclusion.UNTESTABLE: ("untestable", "not testable"),
    Conclusion.NOTHING: ("none", "nothing to judge"),
}

#: States of a check, the gravest first: a section stands as its gravest check does.
_GRAVITY: Final = ("must", "untestable", "should", "caution", "note", "accepted", "framework", "pass", "none")

#: States that a search finds by the names of the checks.
_NAMED: Final = frozenset({"must", "untestable", "should"})

#: Things that are missing or shared that stand open; the rest is folded.
_TOLD: Final = 8

#: Servers that a list names; the rest is counted.
_SERVERS: Final = 40


def outcome_counts(rows: Iterable[FleetRow]) -> Mapping[tuple[str, str], int]:
    """How many servers come out how, by class and word, in the order of the bar."""
    counted = Counter(_OUTCOMES[row.report.conclusion] for row in rows)
    return {outcome: counted[outcome] for outcome in dict.fromkeys(_OUTCOMES.values()) if counted[outcome]}


def bar(counts: Mapping[tuple[str, str], int]) -> Markup:
    """The outcomes as a bar, and in words below it."""
    total, start, parts = sum(counts.values()), 0, []
    for (class_, word), count in counts.items():
        title = element("title", f"{count:,} {word}")
        parts.append(element("g", title, element("rect", x=start, y=0, width=count, height=1), class_=class_))
        start += count
    said = ", ".join(f"{count:,} {word}" for (_, word), count in counts.items())
    drawn = element(
        "svg", *parts, viewBox=f"0 0 {total} 1", preserveAspectRatio="none", role="img", aria_label=said, class_="bar"
    )
    words = [
        element("li", element("b", f"{count:,}"), f" {word}", class_=class_) for (class_, word), count in counts.items()
    ]
    return join([drawn, element("ul", *words, class_="counts", aria_label="Servers by outcome")])


def changed(rows: Sequence[FleetRow], folder: str) -> Markup | None:
    """What is new, mended and changed since an earlier report, server by server; None where none was given."""
    since = {row.name: row.report.since for row in rows if row.report.since}
    if not since:
        return None
    items = [
        _told(
            f"{name}: {changes}",
            "; ".join(f"{word}: {check}" for word, check, _ in changes.lines),
            [_link(name, folder)],
            "should",
        )
        for name, changes in since.items()
        if changes.all
    ]
    none = element("p", "No difference.")
    return _section("changes", f"Since {next(iter(since.values())).file}", items or [none])


def missing(needs: Sequence[FleetNeed], folder: str) -> Markup | None:
    """What is missing, by kind, and what would mend it."""
    items = [
        _told(str(need), need.mend, [_link(name, folder, title=why) for name, why in need.servers.items()])
        for need in needs
    ]
    return _section("missing", "What is missing", items)


def shared(violations: Sequence[SharedViolation], folder: str) -> Markup | None:
    """What several servers have in common, told once."""
    items = [
        _told(
            f"{len(one.servers):,} servers: {one.first.title}",
            one.first.hint,
            [_link(name, folder, one.first.check) for name in one.servers],
            one.first.level.lower(),
        )
        for one in violations
    ]
    return _section("shared", "What several servers share", items)


def servers(rows: Sequence[FleetRow], folder: str) -> Markup:
    """The matrix: a line for each server, a cell for each section of the contract, in the order of the rows."""
    standing = {row.name: _sections(row.report) for row in rows}
    order = dict.fromkeys(section for sections in standing.values() for section in sections)
    applied = [name for name in order if any(_state(each.get(name)) != "none" for each in standing.values())]
    heads = [
        *((name, "") for name in ("server", "outcome", "kind", "MUST", "SHOULD")),
        *((name, "up") for name in applied),
        ("fix first", ""),
    ]
    lines = [_line(row, [(name, standing[row.name].get(name)) for name in applied], folder) for row in rows]
    shown = element(
        "table",
        element(
            "thead",
            element(
                "tr",
                *(element("th", element("span", name), scope="col", class_=class_ or None) for name, class_ in heads),
            ),
        ),
        element("tbody", *lines, id="list"),
        class_="fleet",
    )
    kinds = [(word, count, class_) for (class_, word), count in outcome_counts(rows).items()]
    return section(
        "Servers",
        filters("servers", kinds, len(rows)),
        wide("Servers by section", shown),
        element("p", "No server matches.", id="nothing", hidden=True),
    )


def _section(anchor: str, title: str, items: Sequence[Markup]) -> Markup | None:
    rest = items[_TOLD:]
    more = element("details", element("summary", f"And {len(rest):,} more"), *rest, class_="all") if rest else None
    return section(title, *items[:_TOLD], more, anchor=anchor) if items else None


def _told(head: str, more: str, links: Sequence[Markup], class_: str = "untestable") -> Markup:
    rest = f"and {len(links) - _SERVERS:,} more" if len(links) > _SERVERS else ""
    names = [part for link in links[:_SERVERS] for part in (link, " ")]
    return element("div", element("h3", head), element("p", more), element("p", *names, rest), class_=f"told {class_}")


def _link(name: str, folder: str, check: str = "", **attributes: str) -> Markup:
    return element("a", name, href=f"{folder}/{quote(name)}.html{f'#{check}' if check else ''}", **attributes)


def _sections(report: Report) -> dict[str, Judged]:
    """The gravest check of each section."""
    found: dict[str, Judged] = {}
    for check in sorted(report.checks, key=lambda check: _GRAVITY.index(state(check))):
        found.setdefault(_section_of(check), check)
    return {name: found[name] for name in dict.fromkeys(map(_section_of, report.checks))}


def _section_of(check: Judged) -> str:
    return check.check.partition("-")[0]


def _state(check: Judged | None) -> str:
    return state(check) if check else "none"


def _line(row: FleetRow, sections: Sequence[tuple[str, Judged | None]], folder: str) -> Markup:
    class_, word = _OUTCOMES[row.report.conclusion]
    counted = [str(row.violations.get(level, "")) for level in ("MUST", "SHOULD")]
    return element(
        "tr",
        element("th", _link(row.name, folder), scope="row"),
        element("td", row.said, class_=class_),
        element("td", row.kind),
        *(element("td", count, class_="number") for count in counted),
        *(element("td", _cell(row.name, name, check, folder), class_=_state(check)) for name, check in sections),
        element("td", row.first),
        data_label=word,
    )


def _cell(server: str, section: str, check: Judged | None, folder: str) -> Markup | None:
    """A sign that leads to the section's gravest check."""
    if check is None:
        return None
    how = state(check)
    said = f"{section}: {WORDS[how]}"
    named = element("span", f"{WORDS[how]}: {check.check}", class_="unseen") if how in _NAMED else None
    href = f"{folder}/{quote(server)}.html#{check.check}"
    return element("a", SIGNS[how], named, href=href, aria_label=None if named else said, title=said)
