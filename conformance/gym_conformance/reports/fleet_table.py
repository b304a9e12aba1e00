"""The table of several targets, one line for each, worst first."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gym_conformance.findings import Verdict
from gym_conformance.reports.report import Conclusion, Report
from gym_conformance.reports.shown_text import shown

_SHORT: Final = {
    Conclusion.UNFIT: "not fit",
    Conclusion.UNTESTABLE: "not testable",
    Conclusion.STALE: "stale baseline",
    Conclusion.NOTHING: "nothing to judge",
    Conclusion.PARTLY: "no MUST broken",
    Conclusion.FIT: "fit",
}


#: Characters to show of what to fix first; the server's own report has the full text.
_FIRST: Final = 160


@dataclass(frozen=True)
class FleetRow:
    """One target in the table: its name and its report."""

    name: str
    report: Report

    @property
    def said(self) -> str:
        """The outcome in a word or two; of a fit server, also whether to be cautious."""
        caution = self.report.conclusion in (Conclusion.FIT, Conclusion.PARTLY) and self.report.cautions
        return _SHORT[self.report.conclusion] + (", with caution" if caution else "")

    @property
    def kind(self) -> str:
        """The kind of server; '' if unknown."""
        return str(self.report.target.get("kind", "")).removesuffix(" server")

    @cached_property
    def violations(self) -> Mapping[str, int]:
        """How many checks of each level are violated, and how many are untestable."""
        red = {(group.first.check, group.label) for group in self.report.groups}
        return Counter(label for _, label in red)

    @property
    def counts(self) -> str:
        """The violations, as a cell of the table."""
        levels = ("MUST", "SHOULD")
        return " ".join(f"{self.violations[level]} {level}" for level in levels if self.violations.get(level))

    @property
    def first(self) -> str:
        """What to fix first; '' if there is nothing."""
        group = next(iter(self.report.groups), None)
        if group is None:
            return ""
        first = group.first
        said = f"needs {first.reason}" if first.verdict is Verdict.UNTESTABLE else f"{first.check}: {first.actual}"
        return shown(said, _FIRST)


def ordered(reports: Mapping[str, Report]) -> list[FleetRow]:
    """The targets, those not fit to train on first, fit ones last; among equals, by number of violations."""
    order = list(_SHORT)

    def weight(line: FleetRow) -> tuple[int, int, int, str]:
        must, should = (-line.violations.get(level, 0) for level in ("MUST", "SHOULD"))
        return order.index(line.report.conclusion), must, should, line.name

    return sorted((FleetRow(name, report) for name, report in reports.items()), key=weight)
