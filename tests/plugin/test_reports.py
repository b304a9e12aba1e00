"""The JSON report: true to its schema, with every check in it, however the run ends."""

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gym_conformance import DOCS
from gym_conformance.checks.registry import CHECKS
from gym_mocks.reference import DATA
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import echo, html, no_trace, read_report

pytest_plugins = ["pytester"]

_SCHEMA = json.loads(files("gym_conformance.reports").joinpath("report.schema.json").read_text())
_BREAK = """
from dataclasses import replace

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "seed-replies-object":
            async def broken(trial, subject):
                raise RuntimeError("no luck")
            item.check = replace(item.check, body=broken)
"""


def _held_to_the_schema(path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text())
    jsonschema_rs.validator_for(_SCHEMA).validate(report)
    verdicts = [finding["verdict"] for finding in report["findings"]]
    assert report["summary"] == {verdict: verdicts.count(verdict) for verdict in report["summary"]}
    assert list(dict.fromkeys(finding["check"] for finding in report["findings"])) == [check.id for check in CHECKS]
    assert not list(path.parent.glob("*.part"))
    return report


def test_a_good_server(pytester: pytest.Pytester, gym: str) -> None:
    given = ["--gym-url", gym, f"--gym-data={DATA}", "--gym-report", "r.json", "--gym-profile=smoke"]
    run = pytester.runpytest_inprocess(*given)
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(["Fit to train on*"])  # on a busy machine with a caution: fewer tries
    report = _held_to_the_schema(pytester.path / "r.json")
    assert report["summary"]["fail"] == report["summary"]["untestable"] == 0
    assert report["target"]["url"] == gym
    assert report["target"]["kind"] == "tool server"


def test_what_fails_no_run_names_its_check(pytester: pytest.Pytester, gym: str) -> None:
    """So that it can be looked up, and accepted in a baseline."""
    unsound = {"type": "object", "properties": {"note": {"type": "string"}}, "additionalProperties": False}
    tool = {"type": "function", "name": "list_stock", "parameters": unsound | {"required": []}, "strict": True}
    row = {"responses_create_params": {"input": [], "tools": [tool]}}
    (pytester.path / "rows.jsonl").write_text(json.dumps(row))
    run = pytester.runpytest_subprocess(
        f"--gym-url={gym}", "--gym-data=rows.jsonl", "-k", "definition-unsound or served-declared"
    )
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(["Warning (drift-definition-unsound): *", "Note (tool-served-declared): *"])


@pytest.mark.parametrize("app", [html, echo], ids=["web site", "error page"])
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_bad_one(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], app: ASGIApp, workers: list[str]
) -> None:
    run = pytester.runpytest_subprocess("--gym-url", serving(app), "--gym-report", "r.json", *workers, timeout=60)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    no_trace(run)
    summary = _held_to_the_schema(pytester.path / "r.json")["summary"]
    assert summary["fail"] + summary["untestable"] > 10


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_what_did_not_run_is_there_and_says_why(pytester: pytest.Pytester, gym: str, workers: list[str]) -> None:
    pytester.runpytest_subprocess("--gym-url", gym, "-k", "live", "--gym-report", "r.json", *workers, timeout=60)
    _held_to_the_schema(pytester.path / "r.json")
    findings = read_report(pytester.path / "r.json")
    assert findings.pop("live-root")["verdict"] == findings.pop("live-endpoints")["verdict"] == "pass"
    assert {(each["verdict"], each["reason"]) for each in findings.values()} == {
        ("not_applicable", "it was not selected in this run")
    }


def test_chosen_by_node_id_the_rest_was_not_selected(pytester: pytest.Pytester, gym: str) -> None:
    pytester.runpytest_inprocess("gym/live", "--gym-url", gym, "--gym-report", "r.json")
    assert read_report(pytester.path / "r.json")["seed-accepts-rows"]["reason"] == "it was not selected in this run"


def test_after_x_the_rest_says_that_the_run_ended(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    pytester.runpytest_inprocess("--gym-url", serving(html), "-x", "--gym-report", "r.json")
    _held_to_the_schema(pytester.path / "r.json")
    last = read_report(pytester.path / "r.json")[CHECKS[-1].id]
    assert (last["verdict"], last["reason"]) == ("untestable", "a complete run; this one ended early")


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_our_own_fault_is_said_to_be_ours(pytester: pytest.Pytester, gym: str, workers: list[str]) -> None:
    pytester.makeconftest(_BREAK)
    run = pytester.runpytest_subprocess("--gym-url", gym, "--gym-report", "r.json", *workers, timeout=60)
    assert run.ret == pytest.ExitCode.INTERNAL_ERROR
    run.stdout.fnmatch_lines(
        ["gym-conformance itself failed; this is not a finding about the server. Please report it."]
    )
    run.stdout.fnmatch_lines(["*RuntimeError: no luck"])
    run.stdout.fnmatch_lines(["gym-conformance itself failed: no verdict. Please report it."])
    _held_to_the_schema(pytester.path / "r.json")
    finding = read_report(pytester.path / "r.json")["seed-replies-object"]
    assert finding["verdict"] == "untestable"
    assert finding["reason"] == "gym-conformance itself failed: RuntimeError: no luck"


def test_our_own_fault_is_cut_where_it_quotes_much(pytester: pytest.Pytester, gym: str) -> None:
    pytester.makeconftest(_BREAK.replace('"no luck"', '"no luck\\n" * 100_000 + "at last"'))
    run = pytester.runpytest_inprocess("--gym-url", gym, "-k", "seed-replies-object")
    run.stdout.fnmatch_lines(["*itself failed; this is not*", "E *at last"])
    assert len(run.outlines) < 300


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_finding_is_printed_once_in_ci(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    monkeypatch.setenv("CI", "true")
    run = pytester.runpytest_subprocess("--gym-url", serving(html), "-k", "seed-replies-object", *workers, timeout=60)
    assert run.stdout.str().count("  expected:") == 1
    run.stdout.fnmatch_lines(["FAILED gym/seed::seed-replies-object - *"])


def test_an_older_report_is_replaced_whole(pytester: pytest.Pytester, gym: str) -> None:
    pytester.path.joinpath("r.json").write_text("old")
    arguments = ["--gym-report", "r.json", "--gym-report", "s.json"]
    pytester.runpytest_inprocess("--gym-url", gym, *arguments, "-k", "live")
    _held_to_the_schema(pytester.path / "r.json")
    assert pytester.path.joinpath("r.json").read_bytes() == pytester.path.joinpath("s.json").read_bytes()


def test_a_report_that_cannot_be_written_is_one_line(pytester: pytest.Pytester, gym: str) -> None:
    """The folder was there at the start, and goes while the run lasts; the findings are still shown."""
    pytester.mkdir("out")
    pytester.makeconftest("import shutil\ndef pytest_collection_modifyitems(): shutil.rmtree('out')")
    run = pytester.runpytest_subprocess("--gym-url", gym, "-k", "live", "--gym-report", "out/r.json", timeout=60)
    run.stdout.fnmatch_lines(["--gym-report 'out/r.json': No such file or directory; it was not written"])
    run.assert_outcomes(passed=2, deselected=len(CHECKS) - 2)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    no_trace(run)


def test_junit_xml_has_ids_levels_and_findings(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    pytester.runpytest_inprocess("--gym-url", serving(echo), "--junitxml", "junit.xml")
    cases = {case.get("name", ""): case for case in ET.parse(pytester.path / "junit.xml").iter("testcase")}  # noqa: S314 - our own
    assert list(cases) == [check.id for check in CHECKS]
    case = cases["seed-accepts-rows"]
    assert case.get("classname") == "gym.seed"
    assert {each.get("name"): each.get("value") for each in case.iter("property")} == {
        "gym_check": "seed-accepts-rows",
        "gym_level": "MUST",
        "gym_docs": f"{DOCS}#seed-accepts-rows",
    }
    (failure,) = case.iter("failure")
    text = failure.text or ""
    assert all(word in text for word in ("expected:", "actual:", "Why it matters:", "likely:", "reproduce (bash):"))


@pytest.mark.skipif(sys.platform == "win32", reason="only POSIX has limits of files")
def test_a_full_disk_leaves_old_reports_whole_and_nothing_beside_them(pytester: pytest.Pytester, gym: str) -> None:
    """Each that cannot be written is one line; a link where the JUnit file is to be is not followed either."""
    pytester.makeconftest("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))")
    names = ["r.json", "r.html", "r.sarif", "r.xml", "gym.lock"]
    (precious := pytester.path / "precious").write_text("old")
    (pytester.path / "r.xml").symlink_to(precious)
    for name in names[:-1]:
        (pytester.path / name).write_text("old")
    rows = pytester.path / "rows.jsonl"
    rows.write_bytes(DATA.read_bytes())
    reports = [f"--gym-report={name}" for name in names[:-1]]
    run = pytester.runpytest_subprocess(
        *("--gym-url", gym, f"--gym-data={rows}", "-q", "-k", "live or seed or cookie", *reports),
        *("--gym-lock", "gym.lock", "--gym-lock-update", "-p", "no:cacheprovider"),
        timeout=60,
    )
    for name in names:
        run.stdout.fnmatch_lines([f"--gym-* '*{name}': *too large; it was not written"])
    assert all((pytester.path / name).read_text() == "old" for name in [*names[:-1], "precious"])
    assert not list(pytester.path.glob(".*.part"))
    no_trace(run)
