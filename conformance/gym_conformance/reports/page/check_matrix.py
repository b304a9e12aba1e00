"""The matrix of checks: a line for each section of the contract, a chip for each check."""

from collections import Counter
from itertools import groupby
from typing import Final

from gym_conformance.findings import Verdict
from gym_conformance.reports.page.markup import Markup, element, join
from gym_conformance.reports.page.parts import section, table, wide
from gym_conformance.reports.report import Judged

#: A sign for each state of a check, and its words.
SIGNS: Final = {
    "pass": "✓",
    "must": "✗",
    "should": "!",
    "note": "i",
    "untestable": "?",
    "accepted": "~",
    "framework": "i",
    "caution": "⚠",
    "none": "-",
}
WORDS: Final = {
    "pass": "pass",
    "caution": "pass, with caution",
    "must": "MUST violated",
    "should": "SHOULD violated",
    "untestable": "untestable",
    "note": "worth knowing",
    "accepted": "accepted",
    "framework": "NeMo Gym itself",
    "none": "not applicable",
}


def state(check: Judged) -> str:
    """How a check stands: a key of the legend, and the class that colours it."""
    told = [finding for finding in check.findings if finding.told]
    if not told:
        cautious = any(finding.caution for finding in check.findings)
        return "caution" if cautious else "pass" if check.verdict is Verdict.PASS else "none"
    if all(finding.accepted for finding in told):
        return "accepted"
    if all(finding.framework for finding in told):
        return "framework"
    if check.verdict is Verdict.UNTESTABLE:
        return "untestable"
    return check.first.level.lower()


def matrix(checks: tuple[Judged, ...]) -> Markup:
    """The section of the page."""
    rows = [
        element(
            "tr", element("th", section, scope="row"), element("td", element("ul", *map(_chip, group), class_="chips"))
        )
        for section, group in groupby(checks, key=lambda check: check.check.partition("-")[0])
    ]
    return section("Checks", element("table", *rows, class_="matrix"), _all(checks))


def _chip(check: Judged) -> Markup:
    name = check.check.partition("-")[2] or check.check
    how = state(check)
    label = f"{check.check}: {WORDS[how]}"
    return element(
        "li",
        element("a", _sign(how), name, href=f"#{check.check}", class_=how, aria_label=label, title=check.first.title),
    )


def _sign(name: str) -> Markup:
    return element("span", SIGNS[name], class_="sign", aria_hidden="true")


def _all(checks: tuple[Judged, ...]) -> Markup:
    """Every check in words: where a chip without findings leads to."""
    heads = ("Check", "Rule", "Level", "Conclusion", "Subjects")
    shown = wide("All checks", table(heads, map(_row, checks), None))
    return element("details", element("summary", f"All {len(checks)} checks in words"), shown, class_="all")


def _row(check: Judged) -> Markup:
    how = state(check)
    reason = f": {check.first.reason}" if how == "none" else ""
    failed = how not in ("pass", "none", "caution", "framework")
    return element(
        "tr",
        element("td", element("a", check.check, href=check.first.docs)),
        element("td", check.first.title),
        element("td", check.first.level),
        element("td", _sign(how), WORDS[how], reason, class_=how),
        element("td", str(len(check.findings)), class_="number"),
        id=None if failed else check.check,
    )


def counts(checks: tuple[Judged, ...]) -> Markup:
    """How many checks stand how, in a line."""
    present = Counter(map(state, checks))
    return join(
        element("li", _sign(name), element("b", str(present[name])), f" {word}", class_=name)
        for name, word in WORDS.items()
        if present[name]
    )
