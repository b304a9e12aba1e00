"""The HTML report: one file that opens from disk, makes no network requests, and also works without its script."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from gym_conformance import HOME, __version__
from gym_conformance.contract.openapi import phrase
from gym_conformance.findings import Verdict
from gym_conformance.grouping import first_of_each
from gym_conformance.printable import counted
from gym_conformance.reports.changes import Changes
from gym_conformance.reports.fleet_needs import needs, shared_violations
from gym_conformance.reports.fleet_table import ordered
from gym_conformance.reports.page.check_matrix import counts, matrix
from gym_conformance.reports.page.client_table import clients
from gym_conformance.reports.page.drift_section import drift
from gym_conformance.reports.page.finding_list import findings
from gym_conformance.reports.page.fleet_sections import bar, changed, missing, outcome_counts, servers, shared
from gym_conformance.reports.page.latency_plots import latency
from gym_conformance.reports.page.load_plot import load
from gym_conformance.reports.page.markup import Markup, element, join, text
from gym_conformance.reports.page.memory_plot import memory
from gym_conformance.reports.page.parts import table
from gym_conformance.reports.page.reward_strips import rewards
from gym_conformance.reports.report import Conclusion, Report
from gym_conformance.reports.terminal_text import framework_line, not_examined_lines

_PAGE: Final = files("gym_conformance.reports.page")
_CLASSES: Final = {
    Conclusion.FIT: "fit",
    Conclusion.PARTLY: "fit",
    Conclusion.UNFIT: "unfit",
    Conclusion.STALE: "unfit",
    Conclusion.UNTESTABLE: "unfit",
    Conclusion.NOTHING: "neutral",
}

#: How many of the findings that fail the run are shown at the top.
_FIRST: Final = 3


def html_report(report: Report) -> str:
    """The report as an HTML document."""
    parts = {
        "Checks": matrix(report.checks),
        "Findings": findings(report),
        "Clients": clients(report.clients),
        "Drift": None if report.drift is None else drift(report.drift),
        "Latency": latency(report.latency) if report.latency else None,
        "Memory": memory(report.readings) if report.readings else None,
        "Load": load(report.load) if report.load else None,
        "Rewards": rewards(report.rewards) if report.rewards else None,
    }
    skip = element("a", "Skip to the findings", href="#findings", class_="skip")
    return document(f"{report.conclusion}: {report.target['url']}", skip, _verdict(report), _main(parts))


def html_reports(reports: Mapping[str, Report], folder: str) -> str:
    """Several targets as one page, which links to each one's own, `folder/NAME.html`."""
    rows = ordered(reports)
    counts = outcome_counts(rows)
    fit = sum(count for (_, word), count in counts.items() if word == "fit")
    title = f"{fit:,} of {counted(len(rows), 'server')} are fit to train on"
    parts = {
        "Changes": changed(rows, folder),
        "Missing": missing(needs(rows), folder),
        "Shared": shared(shared_violations(rows), folder),
        "Servers": servers(rows, folder),
    }
    header = element(
        "header",
        element("p", "gym conformance", class_="kicker"),
        element("h1", title),
        bar(counts),
        _own_of_all(reports),
        class_="fit" if fit == len(rows) else "neutral",
    )
    skip = element("a", "Skip to the servers", href="#servers", class_="skip")
    return document(title, skip, header, _main(parts))


def _main(parts: Mapping[str, Markup | None]) -> Markup:
    """The non-empty parts, after links to them."""
    links = [element("a", name, href=f"#{name.lower()}") for name, part in parts.items() if part]
    return element("main", element("nav", join(links), aria_label="Parts of the report"), *parts.values())


def _own_of_all(reports: Mapping[str, Report]) -> Markup | None:
    """Faults of NeMo Gym itself, once for all servers."""
    own = framework_line({check: 1 for report in reports.values() for check in report.framework})
    return element("p", own, class_="aside") if own else None


def table_page(
    kicker: str, heads: Sequence[str], servers: Sequence[tuple[str, Sequence[str], str]], folder: str
) -> str:
    """A page with a line for each server (name, cells, class), which links to `folder/NAME.html`."""
    rows = [
        element(
            "tr",
            element("td", element("a", name, href=f"{folder}/{quote(name)}.html")),
            *(element("td", text(cell)) for cell in cells),
            class_=class_,
        )
        for name, cells, class_ in servers
    ]
    shown = table(("server", *heads), rows, None)
    header = element("header", element("p", kicker, class_="kicker"), element("h1", counted(len(rows), "server")))
    return document(counted(len(rows), "server"), header, element("main", shown))


def document(title: str, *content: Markup) -> str:
    """A complete HTML document with our style and script, which loads nothing else."""
    style = _PAGE.joinpath("page.css").read_text("utf-8")
    script = _PAGE.joinpath("page.js").read_text("utf-8")
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(style)),
    ]
    body = [
        *content,
        element("footer", element("a", "gym-conformance", href=HOME), f" {__version__}"),
        element("p", id="said", role="status", class_="unseen"),
        element("script", Markup(script)),
    ]
    page = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!doctype html>\n{page}\n"


def _policy(style: str, script: str) -> str:
    """A content security policy that permits only our own style and script, by their hashes."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _verdict(report: Report) -> Markup:
    target = report.target
    what = [f" is {phrase(target['kind'])}: ", str(target["evidence"]), "."] if "kind" in target else []
    rows = f" {target['rows']:,} dataset rows read." if target.get("rows") else ""
    return element(
        "header",
        element("p", "gym conformance", class_="kicker"),
        element("h1", report.conclusion),
        element("p", element("code", str(target["url"])), *map(str, what), rows),
        element("ul", counts(report.checks), class_="counts", aria_label="Checks by outcome"),
        _since(report.since),
        _mend_first(report),
        _cautions(report),
        _stale(report),
        *(element("p", line, class_="aside") for line in not_examined_lines(report.not_examined)),
        element("p", own, class_="aside") if (own := framework_line(report.framework)) else None,
        class_=_CLASSES[report.conclusion],
    )


def _mend_first(report: Report) -> Markup | None:
    findings = (group.first for group in report.briefly if report.breaks(group))
    breaking = first_of_each(lambda finding: finding.cause or finding.check, findings)
    first = list(breaking.values())[:_FIRST]
    items = [
        element(
            "li",
            element("a", finding.title, href=f"#{finding.check}"),
            element("span", f"needs {finding.reason}" if finding.verdict is Verdict.UNTESTABLE else finding.hint),
        )
        for finding in first
    ]
    more = len(breaking) - len(first)
    after = element("p", f"and {more:,} more below", class_="more") if more else None
    return element("div", element("h2", "Fix first"), element("ol", *items), after, class_="first") if items else None


def _since(changes: Changes | None) -> Markup | None:
    """What is new, mended and changed since an earlier report."""
    if changes is None:
        return None
    items = [
        element("li", f"{word}: ", element("a", check, href=f"#{check}"), element("span", what))
        for word, check, what in changes.lines
    ]
    heading = element("h2", f"Since {changes.file}: {changes}")
    return element("div", heading, element("ul", *items), class_="first since")


def _cautions(report: Report) -> Markup | None:
    items = [
        element("li", *(element("a", f"{check} ", href=f"#{check}") for check in checks), element("span", why))
        for why, checks in report.cautions.items()
    ]
    heading = element("h2", "Passed, with caution")
    return element("div", heading, element("ul", *items), class_="first caution") if items else None


def _stale(report: Report) -> Markup | None:
    items = [element("li", text(stale)) for stale in report.stale]
    heading = element("h2", "The baseline is stale")
    return element("div", heading, element("ul", *items), class_="first") if items else None
