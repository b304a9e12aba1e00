"""Text from an untrusted server, made safe to show."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_conformance.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain caf\u00e9 \u65e5\u672c \U0001f9ea", "plain caf\u00e9 \u65e5\u672c \U0001f9ea"),
        ("\x1b[2J\x1b]0;pwned\x07", r"\x1b[2J\x1b]0;pwned\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("one\r\ntwo\ttabs", r"one\r\ntwo\ttabs"),
        ("user\u202enimda\u2066", r"user\u202enimda\u2066"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\ud800", r"\ud800"),
        ("\ue000\U000f0000", r"\ue000\U000f0000"),
        ("\x00\x7f", r"\x00\x7f"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_of_all_characters_only_harmless_ones_are_shown() -> None:
    """All that are assigned outside of the ideographs' planes: tags and private ones stand high up."""
    everything = "".join(map(chr, [*range(0x20000), *range(0xE0000, 0xE0200), 0xF0000, sys.maxunicode]))
    shown = printable(everything, limit=len(everything))
    assert len(shown.splitlines()) == 1
    assert {unicodedata.category(character) for character in shown}.isdisjoint({"Cc", "Cf", "Cs", "Co"})
    assert shown.encode()


def test_long_text_is_cut_and_says_how_long_it_was() -> None:
    assert printable("a" * 400) == "a" * 400
    assert printable("a" * 12_345) == "a" * 400 + "... (12,345 characters)"
    assert printable("\x00" * 1_000_000).startswith(r"\x00" * 400)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error file=x::y", "\\::error file=x::y"),
        (" \u3000 ::stop-commands::x", " \u3000 \\::stop-commands::x"),
        ("a ::error::b", "a ::error::b"),
        ("x##[error]y", "x#\\#[error]y"),
        ("###[group]", "##\\#[group]"),
        ("##vso[task.setvariable]x", "#\\#vso[task.setvariable]x"),
        ("## [not one]", "## [not one]"),
    ],
)
def test_what_a_ci_runner_obeys_is_broken_up(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters() | st.sampled_from("#:[ \n\x1b\u200b"), max_size=60), st.none() | st.integers(1, 70))
def test_any_text_is_one_tame_line_and_stays_so(text: str, limit: int | None) -> None:
    shown = printable(text, limit)
    assert len(shown.splitlines()) <= 1
    assert shown.isprintable() or {unicodedata.category(one) for one in shown if not one.isprintable()} <= {"Zs"}
    assert not shown.strip().startswith("::")
    assert not re.search(r"##\w*\[", shown)
    assert printable(shown, None) == shown
