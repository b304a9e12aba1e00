"""The gate for texts that are not ours: what passes is one line that a terminal, a CI log and a report show as it stands.

`Shown` is the type that carries it. The types that carry texts to a reader (a finding, a refusal) call `printable`
themselves, so that no text bypasses it; secrets are taken out before that (`redaction`).
"""

import re
import unicodedata
from typing import Final, NewType

#: Control, format (bidirectional overrides among them), surrogate and private-use characters, and line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

#: What a CI runner takes for a command: GitHub's `::name::` at a line's start, white space aside, and its older `##[name]`
#: anywhere (actions/runner, ActionCommand.cs); Azure's `##vso[name]` and TeamCity's `##teamcity[name]`.
_COMMAND: Final = re.compile(r"^(\s*)::|##(?=\w*\[)")

_WORD: Final = re.compile(r"\S+")

#: How many characters are shown of a refusal that quotes a long argument, a path or a file: its beginning, and its end,
#: which says how to fix it.
_REFUSAL: Final = (700, 300)


#: A text that has passed `printable`; taking it through again changes nothing.
Shown = NewType("Shown", str)


class Refusal(Exception):
    """Something given cannot be used; the message says what, where and how to fix it, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(_shortened(_WORD.sub(_without_password, message)))


def printable(text: str, limit: int | None = 400, length: int = 0) -> Shown:
    """One line that a terminal shows as it stands; what it cannot show is escaped, the rest cut at `limit` characters.

    `length` is that of the whole text, where this is only its beginning.
    """
    length = max(length, len(text))
    cut = limit is not None and length > limit
    shown = text[:limit] if cut else text
    if not shown.isprintable():  # nearly all are: none of their characters is hidden
        shown = "".join(map(_escape, shown))
    return Shown(tame(shown) + (f"... ({length:,} characters)" if cut else ""))


def printable_lines(text: str) -> str:
    """The same of a text of several lines, such as a traceback of our own, which is not cut."""
    return "\n".join(printable(line, None) for line in text.split("\n"))


def counted(count: int, thing: str) -> str:
    """So many of a thing, as in 1 request or 1,204 requests."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _shortened(message: str) -> str:
    begin, end = _REFUSAL
    if len(message) <= begin + end:
        return printable(message, None)
    return f"{printable(message[:begin], None)}... ({len(message):,} characters) ...{printable(message[-end:], None)}"


def _without_password(word: re.Match[str]) -> str:
    """A word without what stands before the host in a URL, also in a malformed one."""
    before, at, host = word[0].rpartition("@")
    return f"[redacted]@{host}" if at and host and ":" in before else word[0]


def tame(line: str) -> str:
    """The line without what a CI runner would obey."""
    return _COMMAND.sub(lambda found: f"{found[1]}\\::" if found[1] is not None else "#\\#", line)


def _escape(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character
