"""Markdown that untrusted text cannot break out of."""

import re
from typing import Final

from gym_conformance.reports.shown_text import shown

_PUNCTUATION: Final = re.compile(r"[!-/:-@\[-`{-~]")

#: These get an invisible space after them: GitHub would notify the person, or link the issue.
_REFERENCES: Final = re.compile(r"(\\[@#])(?=\w)")


def prose(text: object) -> str:
    """The text as prose without any Markdown meaning."""
    escaped = _PUNCTUATION.sub(r"\\\g<0>", shown(text))
    return _REFERENCES.sub("\\1\u200b", escaped)


def code(text: object) -> str:
    """The text as an inline code span, also within a table; '' for ''."""
    line = shown(text)
    if not line:
        return ""
    if line.strip(" ") == line and not set("`|\\") & set(line):
        return f"`{line}`"
    return f"<code>{_PUNCTUATION.sub(lambda mark: f'&#{ord(mark[0])};', line)}</code>"


def fenced(text: str, language: str) -> str:
    """The text as a code block, with a fence longer than any in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
