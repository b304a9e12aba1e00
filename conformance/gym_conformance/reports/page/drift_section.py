"""Drift on the page: both schemas side by side, with the differences marked."""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

from gym_conformance.drift.tool_drift import Certainty
from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.reports.page.markup import Markup, element, text
from gym_conformance.reports.page.parts import section, table, wide
from gym_conformance.reports.shown_text import named, shown

#: Lines of a schema that are shown and compared.
_LINES: Final = 300

#: The schemas of so many rows are shown; a page with thousands of them would not open.
_SCHEMAS: Final = 200


def drift(rows: Sequence[DriftRow]) -> Markup:
    """The section of the page."""
    items = [_row(row, schemas=number < _SCHEMAS) for number, row in enumerate(rows)]
    agree = element("p", "None: rows and server agree.")
    return section("Drift", *(items or [agree]))


def _row(row: DriftRow, *, schemas: bool) -> Markup:
    where = row.tool + (row.argument if row.argument.startswith("/") else f".{row.argument}" if row.argument else "")
    facts = [
        ("Difference", text(row.message)),
        ("Certainty", text("" if row.certainty is Certainty.SHOWN else "the schemas alone do not show it")),
        (
            "Where",
            element("ul", *(element("li", element("code", name)) for name in named(row.sources)), class_="subjects")
            if row.sources
            else None,
        ),
        ("Witness", element("code", json.dumps(row.witness, ensure_ascii=False)) if row.witness is not None else None),
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


def _both(row: DriftRow) -> Markup | None:
    if row.declared is None and row.served is None:
        return None
    one_sided = row.declared is None or row.served is None
    heads = [
        name if schema is not None else f"{name}: nothing"
        for name, schema in zip(row.sides, (row.declared, row.served), strict=True)
    ]
    lines = [
        element("tr", _cell("del", left, marked=differ), _cell("ins", right, marked=differ))
        for left, right, differ in _aligned(_lines(row.declared), _lines(row.served), one_sided=one_sided)
    ]
    return wide(f"Both schemas of {row.tool}", table(heads, lines, "schemas"))


def _cell(tag: str, line: str | None, *, marked: bool) -> Markup:
    if line is None:
        return element("td")
    code = element("code", line)
    return element("td", element(tag, code) if marked else code)


def _aligned(left: list[str], right: list[str], *, one_sided: bool) -> Iterator[tuple[str | None, str | None, bool]]:
    """Pairs of lines, and whether to mark them as different; None where one side has no such line."""
    matcher = SequenceMatcher(None, [_bare(line) for line in left], [_bare(line) for line in right], autojunk=False)
    for tag, left_from, left_to, right_from, right_to in matcher.get_opcodes():
        for one, other in zip_longest(left[left_from:left_to], right[right_from:right_to]):
            yield one, other, tag != "equal" and not one_sided


def _bare(line: str) -> str:
    """A line is not another because one more comes after it."""
    return line.removesuffix(",")


def _lines(schema: Any) -> list[str]:
    if schema is None:
        return []
    lines = json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False).split("\n")
    cut = [f"… {len(lines) - _LINES:,} more lines"] if len(lines) > _LINES else []
    return [shown(line, 200) for line in lines[:_LINES]] + cut
