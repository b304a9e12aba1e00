"""`--gym-rows`: every row of a file is asked once, reported in a line, and kept byte for byte if it holds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.checks.registry import EVERY_ROW
from gym_conformance.checks.reward.every_row import calibration_every_row
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.dataset import load
from gym_conformance.findings import Finding, RewardSpread, Verdict
from gym_conformance.option_readers import BadOption
from gym_conformance.options import Options, read_options
from gym_conformance.oracle import Oracle
from tests.twins.calibration import Quiz, Worth, fair, quizzed, row_of
from tests.twins.judging import running
from tests.twins.twin import Json

#: Rows, of which each tenth asks for what the quiz refuses.
ROWS = 60


def refuses_each_tenth(row: Json, words: str) -> float:
    return 0.0 if row["country"].endswith("0") else fair(row, words)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A file of rows, written in more than one way, and recorded rollouts beside it."""
    file = tmp_path / "rows.jsonl"
    lines = [json.dumps(row_of(f"Country{at}", f"Town{at:03}")) for at in range(1, ROWS + 1)]
    lines[4] = lines[4].replace(": ", " :  ")
    file.write_text("\r\n".join(lines) + "\n")
    recorded = quizzed(fair, "Answer: {expected_answer}", [json.loads(line) for line in lines[:4]])
    (tmp_path / "rows_rollouts.jsonl").write_text("".join(json.dumps(each.data) + "\n" for each in recorded.rollouts))
    return file


def asked(worth: Worth, file: Path, **more: Any) -> tuple[Finding, int]:
    """The finding, and how many requests it took."""
    with running(Quiz(worth), load([file]), **{"rows": 0, **more}) as run:
        (finding,) = run.judge(calibration_every_row)
        return finding, run.effort().requests


def test_its_id_and_level_are_fixed() -> None:
    assert [(check.id, check.level.value) for check in EVERY_ROW] == [("calibration-every-row", "SHOULD")]


def test_every_row_is_reported_and_those_that_hold_are_kept_byte_for_byte(rows: Path, tmp_path: Path) -> None:
    report, kept = tmp_path / "report.jsonl", tmp_path / "kept.jsonl"
    finding, _ = asked(refuses_each_tenth, rows, reports=(report,), rows_keep=kept)
    assert finding.verdict is Verdict.FAIL
    assert f"6 of {ROWS} rows (10%; 95% interval 5% to 20%): rows.jsonl:10 0" in finding.actual
    head, *told = [json.loads(line) for line in report.read_text().splitlines()]
    assert head["answers"] == "`Answer: {expected_answer}`"
    assert sorted(line["line"] for line in told) == list(range(1, ROWS + 1))
    fails = {line["line"] for line in told if line["verdict"] == "fails"}
    assert fails == {10, 20, 30, 40, 50, 60}
    given = rows.read_bytes().splitlines(keepends=True)
    assert kept.read_bytes() == b"".join(line for at, line in enumerate(given, 1) if at not in fails)


def test_a_fair_verifier_has_no_finding(rows: Path) -> None:
    finding, _ = asked(fair, rows)
    assert (finding.verdict, finding.actual) == (Verdict.PASS, "")
    assert f"its own answer: {ROWS} rows checked" in finding.reason


def test_so_many_rows_are_asked_and_no_more(rows: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    asked(fair, rows, rows=7, reports=(report,))
    assert len(report.read_text().splitlines()) == 1 + 7


def test_an_interrupted_run_goes_on_and_asks_nothing_twice(rows: Path, tmp_path: Path) -> None:
    report, kept = tmp_path / "report.jsonl", tmp_path / "kept.jsonl"
    whole, _ = asked(refuses_each_tenth, rows, reports=(report,), rows_keep=kept)
    first = kept.read_bytes()
    lines = report.read_bytes().splitlines(keepends=True)
    report.write_bytes(b"".join(lines[:41]) + lines[41][:20])  # the last line was cut off
    again, more = asked(refuses_each_tenth, rows, reports=(report,), rows_keep=kept, resume=True)
    done, none = asked(refuses_each_tenth, rows, reports=(report,), rows_keep=kept, resume=True)
    assert again.actual == done.actual == whole.actual
    spreads = [RewardSpread.of(finding.rewards[0]) for finding in (whole, again, done)]
    assert len({json.dumps([spread.verdicts, spread.counts]) for spread in spreads}) == 1
    assert spreads[0].verdicts == {"fails": 6, "unchecked": 0, "holds": 54}
    assert sorted(report.read_bytes().splitlines()) == sorted(line.strip() for line in lines)
    assert none < more
    assert kept.read_bytes() == first


@pytest.mark.parametrize("written", ["no JSON\n", '{"schema": "gym-conformance-rows/1"}\n{}\n'])
def test_a_file_that_is_no_report_of_ours_is_not_continued(rows: Path, tmp_path: Path, written: str) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text(written)
    finding, _ = asked(fair, rows, reports=(report,), resume=True)
    assert finding.verdict in (Verdict.UNTESTABLE, Verdict.PASS)
    assert (finding.verdict is Verdict.UNTESTABLE) == ("no JSON" in written)


@pytest.mark.parametrize(
    "change",
    [
        {"line": 10**9},
        {"line": -1},
        {"line": "1"},
        {"verdict": "x"},
        {"rewards": {"its own answer": "1"}},
        {"outcomes": {"gold": "hit"}, "reward": None},
        {"outcomes": [1]},
        {"file": 5},
    ],
)
def test_a_line_that_was_changed_is_not_continued(rows: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """Not even one whose number alone would take a gigabyte."""
    report = tmp_path / "report.jsonl"
    asked(fair, rows, rows=1, reports=(report,))
    head, line = map(json.loads, report.read_text().splitlines())
    report.write_text("".join(json.dumps(each) + "\n" for each in (head, line | change)))
    finding, _ = asked(fair, rows, rows=2, reports=(report,), resume=True)
    assert "has a line that is none" in finding.reason


def test_what_is_written_follows_no_link(rows: Path, tmp_path: Path) -> None:
    (precious := tmp_path / "precious").write_text("precious")
    report, kept = tmp_path / "report.jsonl", tmp_path / "kept.jsonl"
    for link in (report, kept):
        link.symlink_to(precious)
    asked(fair, rows, reports=(report,), rows_keep=kept, resume=True)
    assert precious.read_text() == "precious"
    assert len(report.read_text().splitlines()) == 1 + ROWS
    assert kept.read_bytes() == rows.read_bytes()


@pytest.mark.parametrize(
    "given", [{"rows_keep": "kept.jsonl"}, {"reports": ["rows.jsonl"]}, {"rows": "none"}, {"rows": "0"}]
)
def test_options_that_cannot_be_used_are_refused(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadOption, match="--gym-rows"):
        read_options({"url": "http://127.0.0.1:1", **given})
    assert replace(Options(), rows=0).bound > Options().bound


def test_a_row_that_the_oracle_fails_for_leaves_the_others_asked(rows: Path) -> None:
    def right(row: Row) -> str:
        if row.source.line == ROWS:
            raise KeyError(row.source.line)
        return f"Answer: {row.data['expected_answer']}"

    finding, _ = asked(fair, rows, oracle=Oracle(right))
    assert finding.verdict is Verdict.PASS, finding.reason
