"""The Markdown report, as GitHub's own renderer (cmark-gfm) reads it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from gym_conformance import DOCS
from gym_conformance.findings import NOT_SELECTED
from gym_conformance.reports.markdown_report import LIMIT, markdown_report
from gym_conformance.reports.report import Report
from tests.reports.samples import (
    ATTACKS,
    FAILED,
    FIT,
    FRAMEWORK_SAID,
    FULL,
    HUGE,
    NOT_EXAMINED_SAID,
    PASSED,
    SKIPPED,
    TARGET,
    UNTESTABLE,
    hostile,
    many,
)


class _Page(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.text = ""
        self.cells = 0
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.cells += tag == "td"
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


OURS = {"h2", "h3", "h4", "p", "strong", "a", "code", "pre", "ul", "li", "details", "summary"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}


def test_the_verdict_comes_first_then_what_to_mend() -> None:
    lines = markdown_report(FULL).splitlines()
    assert lines[0] == "## ❌ Not fit to train on"
    assert next(line for line in lines if "Fix first" in line).startswith("**Fix first:** [`verify-scores-rows`]")
    assert markdown_report(FIT).startswith("## ✅ Fit to train on\n")


def test_it_counts_each_check_that_ran_once() -> None:
    twice = replace(FAILED, subject="example.jsonl:4")
    left_out = replace(SKIPPED, reason=NOT_SELECTED)
    assert "2 of 3 checks: 1 pass, 1 fail." in markdown_report(Report(TARGET, (PASSED, FAILED, twice, left_out)))


def test_all_that_was_found_is_in_it() -> None:
    text = _Page(markdown_report(FULL)).text
    for said in ("KeyError('answer')", "a judge that answers", "for the agent", "it no longer fails", "confirmed"):
        assert said in text
    for said in ("Repeated tool calls act twice", "it tried 4 trajectories only", FRAMEWORK_SAID, NOT_EXAMINED_SAID):
        assert said in text
    assert "200.0" in text  # ms


def test_checks_that_lack_the_same_share_a_row_and_a_finding() -> None:
    text = markdown_report(Report(TARGET, tuple(replace(UNTESTABLE, check=f"verify-{n}") for n in range(20))))
    assert text.count(UNTESTABLE.reason) == 2  # what to fix first, and the finding
    assert text.count("| 🟣 untestable | [`verify-") == 1
    assert " | 20 |" in text


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_text_is_no_markup(text: str) -> None:
    page = _Page(markdown_report(hostile(text)))
    assert page.tags <= OURS | TABLES
    assert all(link.startswith(DOCS) for link in page.links)
    assert page.cells == _Page(markdown_report(hostile("plain"))).cells


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_text_hides_nothing_and_calls_nobody(text: str) -> None:
    markdown = markdown_report(hostile(text))
    assert not set("\x1b\x07\x00\u202e\u2066\ud800\r") & set(markdown)
    assert "\n::" not in markdown
    page = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    assert "<li>why it matters: @everyone" not in page


@pytest.mark.parametrize("make", [partial(hostile, HUGE), partial(many, 1000)], ids=["huge", "many"])
def test_it_fits_a_comment(make: Callable[[], Report]) -> None:
    markdown = markdown_report(make())
    assert len(markdown) < LIMIT
    assert _Page(markdown).tags <= OURS | TABLES


def test_what_has_no_room_is_counted() -> None:
    assert "more parts, left out for lack of space" in markdown_report(many(1000))
