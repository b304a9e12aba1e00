"""The Markdown report, for a pull-request comment or GitHub's step summary. Verdict first, then what to do.

No text from a server or a dataset is ever interpreted as Markdown: it stands in code spans, or has all its punctuation
escaped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from gym_conformance.contract.openapi import phrase
from gym_conformance.findings import Verdict
from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.reports.changes import Changes
from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.finding_groups import Group
from gym_conformance.reports.fleet_needs import needs
from gym_conformance.reports.fleet_table import FleetRow, ordered
from gym_conformance.reports.known_clients import Compatibility
from gym_conformance.reports.load_curve import text_lines
from gym_conformance.reports.markdown_escapes import code, fenced, prose
from gym_conformance.reports.report import Conclusion, Report
from gym_conformance.reports.shown_text import named, script
from gym_conformance.reports.terminal_text import framework_line, not_examined_lines

#: In characters: GitHub accepts 65,536 in a comment.
LIMIT: Final = 60_000

_SIGNS: Final = {
    Conclusion.FIT: "✅",
    Conclusion.PARTLY: "☑️",
    Conclusion.UNFIT: "❌",
    Conclusion.STALE: "❌",
    Conclusion.UNTESTABLE: "❌",
    Conclusion.NOTHING: "⚪",
}
_LABELS: Final = {"MUST": "🔴", "untestable": "🟣", "SHOULD": "🟡", "note": "🔵", "accepted": "⚪"}

#: Characters of a reproduction; a longer one would fill the comment.
_SCRIPT: Final = 3_000


def markdown_report(report: Report) -> str:
    """The report as GitHub-flavoured Markdown, at most `LIMIT` characters."""
    return within(LIMIT, list(_blocks(report)))


def within(limit: int, blocks: list[str]) -> str:
    """As many of the paragraphs as fit, and how many were left out."""
    kept: list[str] = []
    room = limit - 200
    for block in blocks:
        room -= len(block) + 2
        if room < 0:
            kept.append(
                f"… and {len(blocks) - len(kept):,} more parts, left out for lack of space; the HTML report has them all."
            )
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def markdown_reports(reports: Mapping[str, Report]) -> str:
    """Several targets: a table, followed by the reports of those that are not fit, as far as there is room."""
    lines = ordered(reports)
    rows = [
        f"| {_SIGNS[line.report.conclusion]} {prose(line.name)} | {line.said} | {prose(line.kind)} | {line.counts} "
        f"| {prose(line.first)} |"
        for line in lines
    ]
    missing = "".join(f"- {prose(str(need))}: {prose(need.mend)}\n" for need in needs(lines))
    text = (
        "".join(map(_since, lines))
        + (f"{missing}\n" if missing else "")
        + "\n".join(["| server | | kind | violations | fix first |", "|---|---|---|---|---|", *rows])
        + "\n"
    )
    for line in lines:
        whole = f"\n# {prose(line.name)}\n\n{markdown_report(line.report)}"
        if any(line.report.breaks(group) for group in line.report.groups) and len(text) + len(whole) < LIMIT:
            text += whole
    return text[:LIMIT]


def _since(row: FleetRow) -> str:
    """What changed on one of several servers."""
    since = row.report.since
    if since is None or not since.all:
        return ""
    return f"**{prose(row.name)}** since {code(since.file)}: {since}\n\n" + "\n".join(_changes(since)) + "\n\n"


def _blocks(report: Report) -> Iterator[str]:
    """The paragraphs of the report; each is kept whole, and those that do not fit are dropped from the end."""
    yield f"## {_SIGNS[report.conclusion]} {report.conclusion}"
    yield _target(report)
    breaking = [group for group in report.groups if report.breaks(group)]
    if breaking:
        first = breaking[0].first
        what = f"needs {first.reason}" if first.verdict is Verdict.UNTESTABLE else first.hint or first.title
        yield f"**Fix first:** [`{first.check}`]({first.docs}): {prose(what)}"
    if report.since is not None:
        yield f"### Since {code(report.since.file)}: {report.since}"
        yield from _changes(report.since)
    yield from _asides(report)
    if report.stale:
        yield "### The baseline"
        yield "\n".join(f"- {prose(str(stale))}" for stale in report.stale)
    if report.groups:
        yield "### What to do"
        yield _overview(report.briefly)
        yield from _findings(report)
    if report.notes:
        yield "### Worth knowing"
        yield from (_finding(group) for group in report.notes)
    yield "### Clients"
    yield _clients(report.clients)
    if report.drift is not None:
        yield "### Drift"
        yield _drift(report.drift)
    if report.latency:
        yield "### Latency"
        yield _latency(report.latency)
    if report.load:
        yield "### Load"
        yield "```text\n" + "\n".join(text_lines(report.load)) + "\n```"


def _findings(report: Report) -> Iterator[str]:
    """The findings; of those with a common cause, the first in full and the others folded below it."""
    for cause, groups in groupby(report.briefly, key=lambda group: None if group.first.accepted else group.first.cause):
        first, *others = [_finding(group) for group in groups]
        if cause is None or cause not in report.causes:
            yield from (first, *others)
            continue
        yield f"**{prose(cause.headline)}.** Found by {', '.join(map(code, report.causes[cause]))}."
        yield first
        folded = "\n\n".join(others)
        yield f"<details><summary>{len(others)} more of this cause</summary>\n\n{folded}\n\n</details>"


def _changes(changes: Changes) -> Iterator[str]:
    lines = (f"- **{word}**: `{check}`{f': {prose(what)}' if what else ''}" for word, check, what in changes.lines)
    if text := "\n".join(lines):
        yield text


def _asides(report: Report) -> Iterator[str]:
    """Passes that mean less than they seem to, what was not examined, and faults of the framework itself."""
    if report.cautions:
        yield "### ⚠️ Passed, with caution"
        docs = {check.check: check.first.docs for check in report.checks}
        linked = {why: [f"[`{check}`]({docs[check]})" for check in checks] for why, checks in report.cautions.items()}
        yield "\n".join(f"- {', '.join(checks)}: {prose(why)}" for why, checks in linked.items())
    if report.not_examined:
        yield "\n".join(f"- {prose(line)}" for line in not_examined_lines(report.not_examined))
    if own := framework_line(report.framework):
        yield prose(own)


def _target(report: Report) -> str:
    target = report.target
    ran = [check for check in report.checks if check.selected]
    counts = Counter(check.verdict for check in ran)
    accepted = sum(any(finding.accepted for finding in check.findings) for check in ran)
    what = f" is {prose(phrase(target['kind']))} ({prose(target['evidence'])})" if "kind" in target else ""
    said = [f"{counts[verdict]:,} {verdict.replace('_', ' ')}" for verdict in Verdict if counts[verdict]]
    said += [f"{accepted:,} of them accepted"] if accepted else []
    return f"{code(target['url'])}{what}. {len(ran)} of {len(report.checks)} checks: {', '.join(said)}."


def _overview(groups: Iterable[Group]) -> str:
    seen: dict[tuple[str, str], int] = {}
    firsts: dict[tuple[str, str], Group] = {}
    for group in groups:
        key = (group.first.check, group.label)
        seen[key] = seen.get(key, 0) + len(group.findings)
        firsts.setdefault(key, group)
    rows = [
        f"| {_LABELS[label]} {label} | [`{check}`]({group.first.docs}) | {prose(group.rule)} | {seen[check, label]:,} |"
        for (check, label), group in firsts.items()
    ]
    return "\n".join(["| | check | rule | findings |", "|---|---|---|--:|", *rows])


def _finding(group: Group) -> str:
    first = group.first
    facts = {
        "on": ", ".join(map(code, named(group.checks if len(group.checks) > 1 else group.subjects))),
        "expected": code(first.expected),
        "actual": code(first.actual),
        "needs" if first.verdict is Verdict.UNTESTABLE else "reason": prose(first.reason),
        "why it matters": prose(first.why),
        "likely": prose(first.hint),
        "accepted": prose(first.accepted),
    }
    lines = [f"- {name}: {value}" for name, value in facts.items() if value]
    commands = script(first.reproduce, _SCRIPT)
    if commands:
        lines += ["", "<details><summary>reproduce (bash)</summary>", "", fenced(commands, "sh"), "", "</details>"]
    return "\n".join([f"#### {_LABELS[group.label]} {group.label}: {prose(group.rule)}", "", *lines])


def _drift(rows: Iterable[DriftRow]) -> str:
    lines = [
        f"| {row.weight} | {prose(row.kind)} | {code(row.tool)} | {code(row.argument)} | {prose(row.message)} "
        f"| {prose(row.live)} | {', '.join(map(code, row.sources[:3]))} |"
        for row in rows
    ]
    if not lines:
        return "None: rows and server agree."
    return "\n".join(
        ["| weight | kind | tool | argument | difference | live | where |", "|---|---|---|---|---|---|---|", *lines]
    )


def _clients(clients: Iterable[Compatibility]) -> str:
    rows = [f"| {one.client} | {one.works} | {', '.join(map(code, one.because))} |" for one in clients]
    return "\n".join(["| client | | because of |", "|---|---|---|", *rows])


def _latency(endpoints: Iterable[Latency]) -> str:
    lines = [
        f"| {code(one.endpoint)} | {one.requests:,} | {_ms(one, 0.5)} | {_ms(one, 0.95)} | {_ms(one, 1)} |"
        for one in endpoints
    ]
    return "\n".join(["| endpoint | requests | median ms | 95 % ms | slowest ms |", "|---|--:|--:|--:|--:|", *lines])


def _ms(latency: Latency, part: float) -> str:
    return f"{latency.quantile(part) * 1000:,.1f}"
