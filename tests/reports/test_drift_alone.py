"""The drift report alone: in each form, with nothing that a server or dataset could break out of it with."""

import json
import time
from dataclasses import replace
from importlib.resources import files

import cmarkgfm
import jsonschema_rs
import pytest

from gym_conformance.drift.tool_drift import Weight
from gym_conformance.reports.drift_report import html_drift, json_drift, markdown_drift
from gym_conformance.reports.markdown_report import LIMIT
from tests.reports.samples import ATTACKS, DRIFT, FIT, FULL, HUGE, hostile

_SCHEMA = json.loads(files("gym_conformance.reports").joinpath("report.schema.json").read_text())


def test_the_json_holds_the_report_s_own_rows() -> None:
    drift = json.loads(json_drift(FULL))
    assert (drift["schema"], drift["target"]["url"]) == ("gym-conformance/drift/1", FULL.target["url"])
    jsonschema_rs.validator_for(_SCHEMA["properties"]["drift"]).validate(drift["drift"])
    assert [row["tool"] for row in drift["drift"]] == ["get_weather", "get_weather"]
    assert json.loads(json_drift(FIT))["drift"] is None


def test_each_says_first_what_it_comes_to() -> None:
    apart, agree = "Rows and server have drifted apart in 1 place", "Rows and server agree"
    assert markdown_drift(FULL).startswith(f"## ❌ {apart}\n")
    assert f"<h1>{apart}</h1>" in html_drift(FULL)
    note = replace(FULL, drift=(replace(DRIFT, weight=Weight.NOTE),))
    assert markdown_drift(note).startswith(f"## ✅ {agree} in everything that breaks rollouts\n")
    assert f"<h1>{agree}</h1>" in html_drift(replace(FULL, drift=()))
    assert markdown_drift(FIT).startswith("## ⚪ Rows and server were not compared\n")


def test_the_difference_and_the_witness_are_there() -> None:
    text = markdown_drift(FULL)
    for said in ('-        "fahrenheit"', '+    "city"', '{"unit": "fahrenheit"}', "confirmed", "status 422"):
        assert said in text
    page = html_drift(FULL)
    for said in ("Rows declare", "Server takes", "fahrenheit", "confirmed"):
        assert said in page


def test_an_outdated_lock_is_compared_with_its_own_side() -> None:
    """Both schemas are the rows', or the server's: it must not look as if rows and server differed."""
    outdated = replace(FULL, drift=(replace(DRIFT, kind="lock-outdated"),))
    assert "--- Locked\n+++ Now\n" in markdown_drift(outdated)
    assert "Locked</th>" in html_drift(outdated)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_breaks_out(attack: str) -> None:
    report = hostile(attack)
    rendered = cmarkgfm.github_flavored_markdown_to_html(markdown_drift(report))
    for page in (rendered, html_drift(report)):
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "onload=alert(1)>" not in page.replace("&gt;", "")
    assert json_drift(report).isascii()


def test_it_stays_small() -> None:
    report = hostile(HUGE)
    assert len(markdown_drift(report)) <= LIMIT
    assert len(html_drift(report)) < 1_000_000
    assert len(markdown_drift(replace(FULL, drift=(DRIFT,) * 5_000))) <= LIMIT


def test_schemas_of_many_lines_are_compared_where_they_begin_to_differ() -> None:
    """Each line is in hundreds of places of the other, which a comparison of all would try, after the run has ended."""
    members = [str(at % 101) for at in range(30_000)]
    turned = [*members[:9_000], *reversed(members[9_000:])]
    began = time.process_time()
    text = markdown_drift(replace(FULL, drift=(replace(DRIFT, declared={"enum": members}, served={"enum": turned}),)))
    assert time.process_time() - began < 2
    assert '\n+    "' in text
    assert "… over " in text
