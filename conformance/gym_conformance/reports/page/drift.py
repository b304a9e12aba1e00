"""Drift on the page: both schemas side by side, with the differences marked."""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from gym_conformance.reports.drift import Drift
from gym_conformance.reports.page.markup import Markup, element, text
from gym_conformance.reports.shown import named, shown

#: Lines of a schema that are shown and compared.
_LINES: Final = 300

#: The schemas of so many rows are shown; a page with thousands of them would not open.
_SCHEMAS: Final = 200


def drift(rows: Sequence[Drift]) -> Markup:
    """The section of the page."""
    items = [_row(row, schemas=number < _SCHEMAS) for number, row in enumerate(rows)]
    agree = element("p", "None: rows and server agree.")
    return element("section", element("h2", "Drift", id="drift"), *(items or [agree]), aria_labelledby="drift")


def _row(row: Drift, *, schemas: bool) -> Markup:
    where = f"{row.tool}.{row.argument}" if row.argument else row.tool
    facts = [
        ("Difference", text(row.message)),
        (
            "Where",
            element("ul", *(element("li", element("code", name)) for name in named(row.sources)), class_="subjects")
            if row.sources
            else None,
        ),
        ("Witness", element("code", _compact(row.witness)) if row.witness is not None else None),
        (
            "Live",
            element("span", row.live, f": {row.detail}" if row.detail else None) if row.live else text(row.detail),
        ),
    ]
    lines = [element("div", element("dt", name), element("dd", value)) for name, value in facts if value]
    return element(
        "details",
        element(
            "summary",
            element("span", row.weight, class_="badge"),
            element("span", row.kind, class_="title"),
            element("span", element("code", where), class_="subject"),
        ),
        element("div", element("dl", *lines), _both(row) if schemas else None, class_="body"),
        class_=f"finding {row.weight}",
        open=row.weight == "breaking",
    )


def _both(row: Drift) -> Markup | None:
    if row.declared is None and row.served is None:
        return None
    head = element("tr", element("th", "Rows declare", scope="col"), element("th", "Server takes", scope="col"))
    lines = [
        element("tr", _cell("del", left, differ=differ), _cell("ins", right, differ=differ))
        for left, right, differ in _aligned(_lines(row.declared), _lines(row.served))
    ]
    table = element("table", element("thead", head), element("tbody", *lines), class_="schemas")
    return element("div", table, class_="wide", tabindex="0", role="region", aria_label=f"Both schemas of {row.tool}")


def _cell(tag: str, line: str | None, *, differ: bool) -> Markup:
    if line is None:
        return element("td", class_="gap")
    code = element("code", line)
    return element("td", element(tag, code) if differ else code)


def _aligned(left: list[str], right: list[str]) -> Iterator[tuple[str | None, str | None, bool]]:
    """Pairs of lines, and whether they differ; None where one side has no such line."""
    for tag, left_from, left_to, right_from, right_to in SequenceMatcher(
        None, left, right, autojunk=False
    ).get_opcodes():
        for offset in range(max(left_to - left_from, right_to - right_from)):
            one = left[left_from + offset] if left_from + offset < left_to else None
            other = right[right_from + offset] if right_from + offset < right_to else None
            yield one, other, tag != "equal"


def _lines(schema: Any) -> list[str]:
    if schema is None:
        return []
    lines = json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False).split("\n")
    cut = [f"… {len(lines) - _LINES:,} more lines"] if len(lines) > _LINES else []
    return [_indented(line) for line in lines[:_LINES]] + cut


def _indented(line: str) -> str:
    return shown(line, 200)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
