"""The HTML report as a document; tests/reports/browser looks at it in a real browser."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from gym_conformance import DOCS, HOME
from gym_conformance.reports.html_report import html_report
from gym_conformance.reports.report import Report
from tests.reports.parsed_page import ParsedPage
from tests.reports.samples import (
    ATTACKS,
    FAILED,
    FIT,
    FRAMEWORK_SAID,
    FULL,
    HUGE,
    NOT_EXAMINED_SAID,
    SHARED,
    TARGET,
    UNTESTABLE,
    hostile,
    many,
)


def test_all_that_was_found_is_in_it() -> None:
    text = ParsedPage(html_report(FULL)).text
    for said in ("Not fit to train on", "KeyError('answer')", "a judge that answers", "for the agent", "fahrenheit"):
        assert said in text
    for said in ("Repeated tool calls act twice", "it tried 4 trajectories only", FRAMEWORK_SAID, NOT_EXAMINED_SAID):
        assert said in text


def test_the_rewards_of_rows_are_in_it_the_worst_first() -> None:
    text = ParsedPage(html_report(FULL)).text
    assert "9 rows pay their own answer alone, 1 do not, and 1 are unchecked." in text
    assert text.index("example.jsonl:4") < text.index("example.jsonl:1 holds")
    assert "Reproduce example.jsonl:4: the answer of example.jsonl:5" in text


def test_sections_that_this_run_has_not_are_left_out() -> None:
    assert {"checks", "findings", "clients", "drift", "latency", "memory", "rewards"} <= set(
        ParsedPage(html_report(FULL)).ids
    )
    assert not {"drift", "latency", "memory", "rewards"} & set(ParsedPage(html_report(FIT)).ids)


def test_what_to_fix_first_names_each_cause_and_each_need_once() -> None:
    lacking = [replace(UNTESTABLE, check=f"verify-{number}") for number in range(9)]
    page = html_report(Report(TARGET, (*SHARED, FAILED, *lacking)))
    first = page[page.index("Fix first") : page.index("</ol>")]
    assert first.count("<li>") == 3
    assert SHARED[0].check in first
    assert not any(one.check in first for one in SHARED[1:])


def test_nothing_is_loaded() -> None:
    document = ParsedPage(html_report(FULL))
    assert {link for link in document.links if not link.startswith(("#", DOCS))} == {HOME}
    assert not {"link", "img", "iframe", "object", "base"} & set(document.tags)
    assert "@import" not in html_report(FULL)
    assert "url(" not in html_report(FULL)


def test_only_our_script_and_style_are_allowed() -> None:
    page = html_report(FULL)
    policy = ParsedPage(html_report(FULL)).policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for content in re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", page, re.DOTALL):
        assert "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy


def test_every_link_within_leads_somewhere() -> None:
    document = ParsedPage(html_report(FULL))
    assert len(set(document.ids)) == len(document.ids)
    assert {link[1:] for link in document.links if link.startswith("#")} <= set(document.ids)


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_text_is_text(text: str) -> None:
    plain, document = ParsedPage(html_report(hostile("plain"))), ParsedPage(html_report(hostile(text)))
    assert sorted(set(document.tags)) == sorted(set(plain.tags))
    assert document.tags.count("script") == 1
    assert not set("\x1b\x07\x00\u202e\u2066\u200b\ud800\r") & set(html_report(hostile(text)))


def test_it_stays_small() -> None:
    assert len(html_report(hostile(HUGE))) < 150_000
    assert len(html_report(many(1000))) < 3_000_000
