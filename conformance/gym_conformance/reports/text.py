"""Findings as plain text for a terminal."""

from collections.abc import Iterable, Iterator
from textwrap import indent

from gym_conformance.findings import Finding, Verdict
from gym_conformance.reports.groups import alike

#: More subjects than this with one and the same finding are counted, not named.
_NAMED = 6


def explain(findings: Iterable[Finding]) -> Iterator[str]:
    """A paragraph for each finding that did not pass; subjects that fail alike share one, the first's."""
    for group in alike(finding for finding in findings if finding.red):
        yield _paragraph(group.first, _and_also([finding.subject for finding in group.findings[1:]]))


def _paragraph(finding: Finding, also: str) -> str:
    if finding.verdict is Verdict.UNTESTABLE:
        return f"{finding.title}\n\n  subject:   {finding.subject}{also}\n  untestable: needs {finding.reason}"
    facts = {
        "subject": finding.subject + also,
        "expected": finding.expected,
        "actual": finding.actual,
        "it hurts": finding.why,
        "likely": finding.hint,
    }
    lines = [f"  {name + ':':<10} {value}" for name, value in facts.items() if value]
    reproduce = indent("\n".join(finding.reproduce), "    ")
    return "\n".join([finding.title, "", *lines, "", "  reproduce (bash):", reproduce])


def _and_also(others: list[str]) -> str:
    if not others:
        return ""
    named = ", ".join(others[:_NAMED])
    return f"; and alike: {named}" + (f" and {len(others) - _NAMED} more" if len(others) > _NAMED else "")
