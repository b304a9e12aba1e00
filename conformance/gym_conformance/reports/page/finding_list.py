"""The findings on the page: what to fix, the gravest first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from gym_conformance.findings import Cause, Finding, Verdict
from gym_conformance.reports.finding_groups import Group
from gym_conformance.reports.page.markup import Markup, element, join, text
from gym_conformance.reports.page.parts import commands, filters, section
from gym_conformance.reports.report import Report
from gym_conformance.reports.shown_text import named, script

#: So many findings are open from the start.
_OPEN: Final = 3

_LABELS: Final = ("MUST", "untestable", "SHOULD", "note", "accepted")


def findings(report: Report) -> Markup:
    """The section of the page."""
    groups = (*report.groups, *report.notes)
    if not groups:
        return section("Findings", element("p", "None."))
    anchored: set[str] = set()
    items = []
    for number, group in enumerate(groups):
        check = group.first.check
        items.append(
            _finding(group, report.causes, anchor=None if check in anchored else check, is_open=number < _OPEN)
        )
        anchored.add(check)
    counts = Counter(group.label for group in groups)
    kinds = [(label, counts[label], label.lower()) for label in _LABELS if counts[label]]
    return section(
        "Findings",
        filters("findings", kinds, len(groups), element("button", "Open all", type="button", id="open")),
        element("div", *items, id="list"),
        element("p", "No finding matches.", id="nothing", hidden=True),
    )


def _finding(group: Group, causes: Mapping[Cause, Sequence[str]], *, anchor: str | None, is_open: bool) -> Markup:
    first = group.first
    on = named(group.subjects)
    summary = element(
        "summary",
        element("span", group.label, class_="badge"),
        element("span", first.title, class_="title"),
        element(
            "span", on[0], element("i", f" + {len(group.findings) - 1:,}") if len(on) > 1 else None, class_="subject"
        ),
    )
    return element(
        "details",
        summary,
        element("div", *_body(first, on, causes), class_="body"),
        id=anchor,
        open=is_open,
        class_=f"finding {group.label.lower()}",
        data_label=group.label,
    )


def _body(first: Finding, on: list[str], causes: Mapping[Cause, Sequence[str]]) -> list[Markup]:
    untestable = first.verdict is Verdict.UNTESTABLE
    facts = [
        ("On", element("ul", *(element("li", element("code", subject)) for subject in on), class_="subjects")),
        ("Where", text(f"{first.file}:{first.line}" if first.line else first.file)),
        ("Expected", element("code", first.expected) if first.expected else None),
        ("Actual", element("code", first.actual, class_="actual") if first.actual else None),
        ("Needs" if untestable else "Reason", text(first.reason)),
        ("Why it matters", text(first.why)),
        ("Likely", text(first.hint)),
        ("Cause", _cause(first, causes)),
        ("Accepted", text(first.accepted)),
    ]
    rows = [element("div", element("dt", name), element("dd", value)) for name, value in facts if value]
    docs = element("p", element("a", first.check, href=first.docs), " in the documentation", class_="docs")
    return [element("dl", *rows), *_reproduction(first), docs]


def _cause(first: Finding, causes: Mapping[Cause, Sequence[str]]) -> Markup | None:
    """The cause, and links to the other checks that found it; None where no other did."""
    alike = [check for check in causes.get(first.cause, ()) if check != first.check] if first.cause else []
    links = [part for check in alike for part in (element("a", check, href=f"#{check}"), " ")]
    return join([f"{first.cause.headline}. Also found by ", *links]) if first.cause and alike else None


def _reproduction(first: Finding) -> list[Markup]:
    lines = script(first.reproduce)
    if not lines:
        return []
    name = f"Reproduce {first.check} on {first.subject}"
    heading = element(
        "div",
        element("h3", "Reproduce"),
        element("button", "Copy", type="button", class_="copy", hidden=True, aria_label=f"Copy: {name}"),
        class_="head",
    )
    return [element("div", heading, commands(name, lines), class_="reproduce")]
