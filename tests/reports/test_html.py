"""The HTML report as a document; tests/reports/browser looks at it in a real browser."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from gym_conformance import DOCS, HOME
from gym_conformance.reports.html_report import html_report
from gym_conformance.reports.report import Report
from tests.reports.samples import ATTACKS, FIT, FRAMEWORK_SAID, FULL, HUGE, NOT_EXAMINED_SAID, hostile, many


class _Document(HTMLParser):
    def __init__(self, report: Report) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.policy = ""
        self.inline: list[str] = []
        self.feed(html_report(report))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert not [name for name in given if name.startswith("on") or name in ("style", "src", "srcset", "action")]
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        if tag in ("script", "style"):
            self.inline.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_all_that_was_found_is_in_it() -> None:
    text = _Document(FULL).text
    for said in ("Not fit to train on", "KeyError('answer')", "a judge that answers", "for the agent", "fahrenheit"):
        assert said in text
    for said in ("Repeated tool calls act twice", "it tried 4 trajectories only", FRAMEWORK_SAID, NOT_EXAMINED_SAID):
        assert said in text


def test_sections_that_this_run_has_not_are_left_out() -> None:
    assert {"checks", "findings", "clients", "drift", "latency", "memory"} <= set(_Document(FULL).ids)
    assert not {"drift", "latency", "memory"} & set(_Document(FIT).ids)


def test_nothing_is_loaded() -> None:
    document = _Document(FULL)
    assert {link for link in document.links if not link.startswith(("#", DOCS))} == {HOME}
    assert not {"link", "img", "iframe", "object", "base"} & set(document.tags)
    assert "@import" not in html_report(FULL)
    assert "url(" not in html_report(FULL)


def test_only_our_script_and_style_are_allowed() -> None:
    page = html_report(FULL)
    policy = _Document(FULL).policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for content in re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", page, re.DOTALL):
        assert "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy


def test_every_link_within_leads_somewhere() -> None:
    document = _Document(FULL)
    assert len(set(document.ids)) == len(document.ids)
    assert {link[1:] for link in document.links if link.startswith("#")} <= set(document.ids)


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_text_is_text(text: str) -> None:
    plain, document = _Document(hostile("plain")), _Document(hostile(text))
    assert sorted(set(document.tags)) == sorted(set(plain.tags))
    assert document.tags.count("script") == 1
    assert not set("\x1b\x07\x00\u202e\u2066\u200b\ud800\r") & set(html_report(hostile(text)))


def test_it_stays_small() -> None:
    assert len(html_report(hostile(HUGE))) < 150_000
    assert len(html_report(many(1000))) < 3_000_000
