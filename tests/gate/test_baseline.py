"""The baseline as a value: what it accepts, and when an entry is stale."""

from dataclasses import replace
from datetime import date

import pytest

from gym_conformance.baseline import Baseline, Entry
from gym_conformance.findings import Finding, Verdict

TODAY = date(2030, 5, 1)
FAILED = Finding("verify-floor", "MUST", "a rule", Verdict.FAIL, "example.jsonl:3", expected="a", actual="b")
PASSED = replace(FAILED, verdict=Verdict.PASS)
SKIPPED = replace(FAILED, verdict=Verdict.NOT_APPLICABLE, subject="server", reason="no rows")
UNTESTABLE = replace(FAILED, verdict=Verdict.UNTESTABLE, subject="server", reason="a judge")
ENTRY = Entry("verify-floor", "known", "example.jsonl:3")


def _stale(entry: Entry, *findings: Finding) -> list[str]:
    return [stale.problem for stale in Baseline("b.toml", (entry,)).stale("verify-floor", findings, TODAY)]


@pytest.mark.parametrize("subject", ["example.jsonl:3", "example.*", "*", "*:[34]"])
def test_it_accepts_by_name_or_glob(subject: str) -> None:
    (finding,) = Baseline("", (replace(ENTRY, subject=subject),)).accept([FAILED], TODAY)
    assert finding == replace(FAILED, accepted="known")
    assert not finding.breaks(strict=True)


@pytest.mark.parametrize(
    "entry",
    [
        replace(ENTRY, subject="example.jsonl:4"),
        replace(ENTRY, check="verify-echoes"),
        replace(ENTRY, until=date(2030, 4, 30)),
    ],
)
def test_it_accepts_nothing_else(entry: Entry) -> None:
    assert Baseline("", (entry,)).accept([FAILED], TODAY) == [FAILED]


def test_a_subject_with_brackets_is_its_own_name() -> None:
    odd = replace(FAILED, subject="tool[0]*")
    assert Baseline("", (replace(ENTRY, subject="tool[0]*"),)).accept([odd], TODAY)[0].accepted


def test_what_passes_needs_no_accepting() -> None:
    assert Baseline("", (ENTRY,)).accept([PASSED, SKIPPED], TODAY) == [PASSED, SKIPPED]


def test_an_entry_that_is_right_is_not_stale() -> None:
    assert _stale(ENTRY, FAILED) == []
    assert _stale(replace(ENTRY, until=TODAY), FAILED) == []


def test_an_entry_that_no_longer_fails_is_stale() -> None:
    assert _stale(ENTRY, PASSED) == ["it no longer fails; remove the entry"]
    assert "it no longer fails" in _stale(replace(ENTRY, subject="*"), SKIPPED)[0]


def test_an_entry_whose_date_has_passed_is_stale() -> None:
    assert _stale(replace(ENTRY, until=date(2030, 4, 30)), FAILED) == [
        "it was accepted until 2030-04-30; fix the finding, or give a later date"
    ]


def test_an_entry_for_nothing_is_stale() -> None:
    assert "the check has no subject of this name" in _stale(ENTRY, replace(PASSED, subject="example.jsonl:4"))[0]


def test_an_entry_that_could_not_be_seen_is_not_stale() -> None:
    """A server that is gone, or a judge that is missing, proves nothing about the row."""
    assert _stale(ENTRY, UNTESTABLE) == []


def test_untestable_can_be_accepted_too() -> None:
    entry = replace(ENTRY, subject="server")
    assert Baseline("", (entry,)).accept([UNTESTABLE], TODAY)[0].accepted == "known"


def test_an_entry_for_no_check_is_stale() -> None:
    (stale,) = Baseline("b.toml", (replace(ENTRY, line=4),)).unknown({"seed-accepts-rows"})
    assert str(stale).startswith("b.toml:4: verify-floor, example.jsonl:3: there is no such check")
