"""GitHub's annotations: a text from a server must never be a command."""

from dataclasses import replace
from pathlib import Path

import pytest

from gym_conformance.reports.annotations import annotations
from gym_conformance.reports.report import Report
from tests.reports.samples import ATTACKS, FAILED, FULL, HUGE, TARGET, UNTESTABLE, WARNED, hostile


def _lines(report: Report, root: Path | None = None) -> list[str]:
    return list(annotations(report, root or Path.cwd()))


def test_the_gravest_come_first_and_accepted_ones_not_at_all() -> None:
    commands = [line.split(" ")[0] for line in _lines(FULL)]
    assert commands == [
        *("::error", "::error", "::error"),  # stale, MUST, untestable
        *("::warning", "::notice"),  # SHOULD, note
        *("::warning", "::notice"),  # a caution, the framework's own
    ]


def test_a_finding_stands_beside_its_row() -> None:
    (line,) = _lines(Report(TARGET, (FAILED,)))
    assert line.startswith("::error title=verify-scores-rows (MUST),file=data/example.jsonl,line=3::verify MUST score")
    assert "%0Aexample.jsonl:3: expected status 200, got status 500" in line


def test_files_are_named_from_the_root_of_the_checkout() -> None:
    (line,) = _lines(Report(TARGET, (FAILED,)), Path.cwd().parent)
    assert f",file={Path.cwd().name}/data/example.jsonl,line=3::" in line


def test_a_should_is_an_error_where_it_fails_the_run() -> None:
    assert _lines(replace(Report(TARGET, (WARNED,)), strict=True))[0].startswith("::error ")


def test_checks_that_lack_the_same_are_told_once() -> None:
    (line,) = _lines(Report(TARGET, tuple(replace(UNTESTABLE, check=f"verify-{n}") for n in range(20))))
    assert line.startswith("::error title=verify-0 (untestable)::")
    assert "(and 19 more rules, untestable for the same reason)%0Averify-0, verify-1, " in line
    assert f", and 8 more: needs {UNTESTABLE.reason}" in line


@pytest.mark.parametrize("text", [*ATTACKS, HUGE], ids=lambda text: repr(text[:20]))
def test_hostile_text_is_no_command(text: str) -> None:
    for line in _lines(hostile(text)):
        assert len(line.splitlines()) == 1
        assert len(line) < 4000
        properties = line.split("::")[1]
        assert [part.split("=")[0] for part in properties.partition(" ")[2].split(",")] == ["title", "file", "line"][
            : properties.count(",") + 1
        ]
