"""`python -m gym_conformance.checks` prints the catalogue of checks, which is docs/checks.md."""

import re
from collections.abc import Iterator

from gym_conformance.checks.registry import CHECKS, EVERY_ROW, LAUNCHED, LOAD
from gym_conformance.trials.check import Check


def catalogue() -> str:
    """All checks as Markdown: what each asks, why, how it is tested, and where the rule comes from."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Checks"
    yield ""
    yield f"{len(CHECKS)} rules, in the order in which they run. This page is made from the code:"
    yield "`python -m gym_conformance.checks > docs/checks.md`. An id and its level never change their meaning."
    section = ""
    for check in CHECKS + LAUNCHED + LOAD + EVERY_ROW:
        if check.section != section:
            section = check.section
            yield from ("", f"## {section}" + _when(check))
        yield from _entry(check)


def _when(check: Check) -> str:
    if check in LAUNCHED:
        return " (launched servers only)"
    if check in EVERY_ROW:
        return " (only with `--gym-rows`)"
    return " (only with `--gym-load`)" if check in LOAD else ""


def _entry(check: Check) -> Iterator[str]:
    doc = re.sub(r"\n+(?=Source:|Our inference)", "\n\n", check.doc).replace("\\", "\\\\")
    yield from ("", f"### {check.id}", "", f"**{check.title}.**", "", f"Why it matters: {check.why}", "", doc)
    if check.needs:
        yield from ("", f"Needs: {', '.join(need.name for need in check.needs)}.")


if __name__ == "__main__":
    print(catalogue(), end="")  # noqa: T201 - a page on standard output is what it is for
