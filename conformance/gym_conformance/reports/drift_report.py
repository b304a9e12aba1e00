"""The separate drift report: `--gym-drift FILE`."""

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import takewhile
from typing import Any, Final

from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.reports.html_report import document, table_page
from gym_conformance.reports.markdown_escapes import code, fenced, prose
from gym_conformance.reports.markdown_report import LIMIT, within
from gym_conformance.reports.page.drift_section import drift
from gym_conformance.reports.page.markup import element
from gym_conformance.reports.report import Report
from gym_conformance.reports.shown_text import named, shown

#: The JSON format: the target, and `drift` as in the complete report (`report.schema.json`).
SCHEMA: Final = "gym-conformance/drift/1"

#: The JSON format for several servers.
FLEET_SCHEMA: Final = "gym-conformance-fleet/drift/1"

#: The most lines of a diff between two schemas, and how many of them come before the first difference.
_LINES, _BEFORE = 80, 20

#: Lines of each schema that are compared from their first difference on: all may take minutes.
_COMPARED: Final = 4_000


def json_drift(report: Report) -> str:
    """The drift as JSON; `drift` is null if nothing was compared."""
    rows = None if report.drift is None else [row.as_json() for row in report.drift]
    return json.dumps({"schema": SCHEMA, "target": dict(report.target), "drift": rows}, indent=2) + "\n"


def html_drift(report: Report) -> str:
    """The drift as an HTML document, with both schemas of each row side by side."""
    header = element(
        "header",
        element("p", "gym conformance: drift", class_="kicker"),
        element("h1", report.drift_conclusion),
        element("p", element("code", str(report.target["url"]))),
        class_=_class(report),
    )
    title = f"{report.drift_conclusion}: {report.target['url']}"
    return document(title, header, element("main", None if report.drift is None else drift(report.drift)))


def json_drifts(reports: Mapping[str, Report]) -> str:
    """The drift of several servers as JSON; `servers` has each one's name, and the content of its `json_drift`."""
    servers = [{"name": name, **json.loads(json_drift(report))} for name, report in _apart_first(reports)]
    return json.dumps({"schema": FLEET_SCHEMA, "servers": servers}, indent=2) + "\n"


def html_drifts(reports: Mapping[str, Report], folder: str) -> str:
    """The drift of several servers as one page, which links to each server's own, `folder/NAME.html`."""
    rows = [(name, (report.drift_conclusion,), _class(report)) for name, report in _apart_first(reports)]
    return table_page("gym conformance: drift", ("",), rows, folder)


def markdown_drifts(reports: Mapping[str, Report]) -> str:
    """The drift of several servers as Markdown, servers with drift first, as far as there is room."""
    return within(LIMIT, [f"# {prose(name)}\n\n{markdown_drift(report)}" for name, report in _apart_first(reports)])


def _class(report: Report) -> str:
    return "unfit" if _apart(report) else "neutral" if report.drift is None else "fit"


def _apart(report: Report) -> bool:
    return any(row.breaks for row in report.drift or ())


def _apart_first(reports: Mapping[str, Report]) -> list[tuple[str, Report]]:
    return sorted(reports.items(), key=lambda pair: not _apart(pair[1]))


def markdown_drift(report: Report) -> str:
    """The drift as GitHub-flavoured Markdown, at most `LIMIT` characters, what breaks rollouts first."""
    return within(LIMIT, list(_blocks(report)))


def _blocks(report: Report) -> Iterator[str]:
    sign = "❌" if _apart(report) else "⚪" if report.drift is None else "✅"
    yield f"## {sign} {report.drift_conclusion}"
    yield code(report.target["url"])
    for row in report.drift or ():
        yield _row(row)


def _row(row: DriftRow) -> str:
    facts = {
        "difference": prose(row.message),
        "certainty": "" if row.certainty == "shown" else "the schemas alone do not show it",
        "where": ", ".join(map(code, named(row.sources))),
        "witness": "" if row.witness is None else code(json.dumps(row.witness)),
        "live": ": ".join(filter(None, [prose(row.live), code(row.detail)])),
    }
    where = code(row.tool) + (f" {code(row.argument)}" if row.argument else "")
    lines = [
        f"### {row.weight}: {prose(row.kind)}, {where}",
        "",
        *(f"- {name}: {value}" for name, value in facts.items() if value),
    ]
    if row.declared is not None and row.served is not None:
        lines += ["", fenced("\n".join(_difference(row)), "diff")]
    return "\n".join(lines)


def _difference(row: DriftRow) -> list[str]:
    """A diff of the schemas: what rows declare (-), and what the server accepts (+)."""
    declared, served = _lines(row.declared), _lines(row.served)
    same = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(declared, served, strict=False)))
    near = slice(max(0, same - _BEFORE), same + _COMPARED)
    lines = list(unified_diff(declared[near], served[near], *row.sides, lineterm="", n=_LINES))
    over = "over " if max(len(declared), len(served)) > near.stop else ""
    more = [f"… {over}{len(lines) - _LINES:,} more lines"] if len(lines) > _LINES else []
    return [shown(line, 200) for line in lines[:_LINES]] + more


def _lines(schema: Any) -> list[str]:
    return json.dumps(schema, indent=2, sort_keys=True).split("\n")
