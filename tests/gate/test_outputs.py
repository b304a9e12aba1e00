"""What a run writes: every report, by its suffix, and what GitHub is told by itself."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gym_conformance import DOCS
from gym_conformance.options import REPORTS
from gym_conformance.reports.report_files import FORMS
from tests.gate.conftest import Run

SCORING = ("-k", "verify-scores-rows or verify-floor", "--gym-data", "data")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_every_report_is_written_once_with_the_same_findings(
    run: Run, repo: Path, grumpy_url: str, workers: tuple[str, ...]
) -> None:
    suffixes = set(REPORTS) - {".jsonl"}  # a line for each row, with --gym-rows
    wanted = [argument for suffix in sorted(suffixes) for argument in ("--gym-report", f"out{suffix}")]
    result = run("--gym-url", grumpy_url, *SCORING, *wanted, *workers)
    assert result.returncode == 1, result.stdout
    assert {path.suffix for path in repo.glob("out.*")} == suffixes
    report = json.loads(repo.joinpath("out.json").read_text())
    failed = [finding for finding in report["findings"] if finding["verdict"] == "fail"]
    assert [(one["check"], one["subject"], one["line"]) for one in failed] == [
        ("verify-scores-rows", "example.jsonl:3", 3)
    ]
    sarif = json.loads(repo.joinpath("out.sarif").read_text())["runs"][0]["results"]
    place = sarif[0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "data/example.jsonl"}, "region": {"startLine": 3}}
    assert repo.joinpath("out.md").read_text().startswith("## ❌ Not fit to train on")
    assert "Not fit to train on" in repo.joinpath("out.html").read_text()
    cases = ET.parse(repo / "out.xml").getroot().iter("testcase")  # noqa: S314 - pytest wrote it
    properties = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")} for case in cases
    }
    assert properties["verify-scores-rows"] == {
        "gym_check": "verify-scores-rows",
        "gym_level": "MUST",
        "gym_docs": f"{DOCS}#verify-scores-rows",
    }


def test_every_suffix_has_its_form() -> None:
    assert {*FORMS, ".xml", ".jsonl"} == set(REPORTS)


def test_two_junit_files_are_one_too_many(run: Run, good_url: str) -> None:
    result = run("--gym-url", good_url, "--gym-report", "a.xml", "--junitxml", "b.xml")
    assert result.returncode == 4
    assert "pytest writes one JUnit file" in result.stderr


def _on_github(run: Run, repo: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> subprocess.CompletedProcess[str]:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repo))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repo / "summary.md"))
    return run("--gym-url", url, *SCORING)


def test_github_is_told_by_itself(run: Run, repo: Path, grumpy_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.joinpath("summary.md").write_text("before\n")
    result = _on_github(run, repo, grumpy_url, monkeypatch)
    lines = [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert [line.split("::")[1] for line in lines] == [
        "error title=verify-scores-rows (MUST),file=data/example.jsonl,line=3"
    ]
    assert repo.joinpath("summary.md").read_text().startswith("before\n## ❌ Not fit to train on")


def test_github_can_be_left_alone(run: Run, repo: Path, grumpy_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.joinpath("pytest.ini").write_text("[pytest]\ngym_github = false\n")
    result = _on_github(run, repo, grumpy_url, monkeypatch)
    assert "\n::" not in result.stdout
    assert not repo.joinpath("summary.md").exists()


@pytest.mark.parametrize(("make", "why"), [(os.mkdir, "Is a directory"), (os.mkfifo, "No such device or address")])
def test_a_summary_that_cannot_be_written_is_said(  # noqa: PLR0917 - fixtures
    run: Run, repo: Path, grumpy_url: str, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], why: str
) -> None:
    """Nor is one waited for that nobody reads."""
    make(repo / "summary.md")
    result = _on_github(run, repo, grumpy_url, monkeypatch)
    assert result.returncode == 1
    assert f"{why}; no summary is written" in result.stdout


def test_a_run_that_pytest_refuses_tells_and_overwrites_nothing(
    run: Run, repo: Path, good_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("report.json", "baseline.toml", "gym.lock"):
        repo.joinpath(name).write_text("an earlier run's")
    written = ("--gym-report", "report.json", "--gym-lock", "gym.lock", "--gym-lock-update")
    result = run("--gym-url", good_url, "-k", "(", *written, "--gym-baseline-write", "baseline.toml")
    assert result.returncode == 4
    assert "::error" not in result.stdout
    for name in ("report.json", "baseline.toml", "gym.lock"):
        assert repo.joinpath(name).read_text() == "an earlier run's"


def test_checks_that_did_not_run_are_one_annotation(run: Run, grumpy_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub shows ten errors of a step: they must not hide the violation that ended the run."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = run("--gym-url", grumpy_url, *SCORING, "-x")
    errors = [line.split("::")[1] for line in result.stdout.splitlines() if line.startswith("::error")]
    assert errors == [
        "error title=verify-scores-rows (MUST),file=data/example.jsonl,line=3",
        "error title=verify-floor (untestable)",
    ]
