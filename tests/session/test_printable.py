"""Text from an untrusted server, made safe to show."""

import sys
import unicodedata

import pytest

from gym_conformance.session.printable import REDACTED, printable, redact


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


def test_secrets_are_left_out_the_longest_first() -> None:
    assert redact("key abcdef and abc", ["abc", "abcdef"]) == f"key {REDACTED} and {REDACTED}"
    assert redact("(.*) [x]", ["(.*)"]) == f"{REDACTED} [x]"


@pytest.mark.parametrize("secrets", [[], [""]])
def test_no_secret_takes_nothing_away(secrets: list[str]) -> None:
    assert redact("text", secrets) == "text"
