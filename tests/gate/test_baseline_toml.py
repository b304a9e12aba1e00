"""The baseline's file: what is wrong with it is one line, and what is written can be read."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gym_conformance.baseline import Entry
from gym_conformance.baseline_toml import BadBaseline, read_baseline, write_baseline
from tests.reports.samples import ATTACKS, FAILED

GOOD = """
[[accepted]]
check = "verify-floor"
reason = "known"

[[accepted]]
check = "verify-echoes"
subject = "example.*"
reason = "until the next release"
until = 2030-05-01
"""


def _read(folder: Path, text: str | bytes) -> tuple[Entry, ...]:
    file = folder / "gym-baseline.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_baseline(file).entries


def test_reading(tmp_path: Path) -> None:
    assert _read(tmp_path, GOOD) == (
        Entry("verify-floor", "known", line=2),
        Entry("verify-echoes", "until the next release", "example.*", date(2030, 5, 1), line=6),
    )


def test_a_file_from_windows_is_read(tmp_path: Path) -> None:
    assert len(_read(tmp_path, b"\xef\xbb\xbf" + GOOD.strip().replace("\n", "\r\n").encode())) == 2


def test_an_empty_baseline_accepts_nothing(tmp_path: Path) -> None:
    assert _read(tmp_path, "# nothing\n") == ()


def test_entries_in_one_line_are_read_too(tmp_path: Path) -> None:
    assert _read(tmp_path, 'accepted = [{check = "verify-floor", reason = "known"}]')[0].line == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[accepted]\n", "not TOML: "),
        (b"\xff\xfe", "not TOML: "),
        ("a = " + "[" * 100_000, "not TOML: "),
        ("[accepted]\ncheck = 'x'", "give [[accepted]] tables"),
        ("accept = []", "give [[accepted]] tables"),
        ("accepted = [1]", "give [[accepted]] tables"),
        ("[[accepted]]\nreason = 'x'", "line 1: it names no check"),
        ("[[accepted]]\ncheck = 3\nreason = 'x'", "line 1: it names no check"),
        ("\n[[accepted]]\ncheck = 'x'\nreason = ' '", "line 2: its reason is empty"),
        ("[[accepted]]\ncheck = 'x'", "line 1: its reason is empty"),
        ("accepted = [{check = 'x'}]", "[[accepted]] number 1: its reason is empty"),
        ("[[accepted]]\ncheck = 'x'\nreason = 'x'\nsubject = ''", "its subject is empty"),
        ("[[accepted]]\ncheck = 'x'\nreason = 'x'\nuntil = '2030-05-01'", "until is not a date"),
        ("[[accepted]]\ncheck = 'x'\nreason = 'x'\nuntil = 2030-05-01T00:00:00", "until is not a date"),
        ("[[accepted]]\ncheck = 'x'\nreason = 'x'\nsubjects = 'x'", "unknown key 'subjects'"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(BadBaseline) as bad:
        _read(tmp_path, text)
    assert said in str(bad.value)
    assert len(str(bad.value).splitlines()) == 1


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadBaseline, match=r"none\.toml: No such file or directory; --gym-baseline-write"):
        read_baseline(tmp_path / "none.toml")
    with pytest.raises(BadBaseline, match="a folder; give a file that can be read"):
        read_baseline(tmp_path)


@pytest.mark.parametrize("subject", [text for text in ATTACKS if text.isprintable()] + ["[x]*?", 'quote "', "\x7f"])
def test_what_is_written_is_read_again(tmp_path: Path, subject: str) -> None:
    """But for the reasons, which are to be filled in."""
    file = tmp_path / "gym-baseline.toml"
    finding = replace(FAILED, subject=subject, actual="\x1b\n[[accepted]]\u2028x")
    write_baseline(file, {"": [finding, replace(FAILED, check="verify-floor")]})
    with pytest.raises(BadBaseline, match="reason is empty"):
        read_baseline(file)
    filled = file.read_text().replace('reason = ""', 'reason = "known"')
    entries = _read(tmp_path, filled)
    assert [entry.check for entry in entries] == [FAILED.check, "verify-floor"]
    assert entries[0].matches(finding)
    assert entries[0].line > 0
