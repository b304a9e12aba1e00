"""The terminal and the reports conclude the same."""

from pathlib import Path

import pytest


def test_checks_of_which_none_applies_judge_nothing_in_every_report(pytester: pytest.Pytester, gym: str) -> None:
    ran = pytester.runpytest_inprocess("--gym-url", gym, "-k", "step-reset", "--gym-report", "r.md")
    ran.stdout.fnmatch_lines(["Nothing to judge here."])
    assert "Nothing to judge here" in Path("r.md").read_text(encoding="utf-8")


def test_what_passes_is_the_same_word_in_every_report(pytester: pytest.Pytester, gym: str) -> None:
    ran = pytester.runpytest_inprocess("--gym-url", gym, "-k", "live-root", "--gym-report", "r.md")
    ran.stdout.fnmatch_lines(["1 of * checks, * request*", "No MUST broken, judging by the 1 check that ran."])
    assert "No MUST broken, judging by the checks that ran" in Path("r.md").read_text(encoding="utf-8")
