"""Makes foreign text printable: one line that a terminal, a CI log and a report show as it is.

`Shown` is the type of such text. The types that carry text to a reader (a finding, a refusal) call `printable`
themselves, so that no text bypasses it; secrets are redacted before that (`redaction`).
"""

import re
import unicodedata
from typing import Final, NewType

#: Control, format (bidirectional overrides among them), surrogate and private-use characters, and line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

#: What CI runners take for a command: GitHub's `::name::` at the start of a line, after white space, and its older
#: `##[name]` anywhere (actions/runner, ActionCommand.cs); Azure's `##vso[name]` and TeamCity's `##teamcity[name]`.
_COMMAND: Final = re.compile(r"^(\s*)::|##(?=\w*\[)")

_WORD: Final = re.compile(r"\S+")

#: How many characters to show of a refusal that quotes a long argument, a path or a file: from its start, and from its
#: end, which says how to fix it.
_REFUSAL: Final = (700, 300)


#: Text that has passed `printable`; passing again changes nothing.
Shown = NewType("Shown", str)


class Refusal(Exception):
    """Something given cannot be used; the message says what is wrong, where, and how to fix it, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(_shortened(_WORD.sub(_without_password, message)))


def printable(text: str, limit: int | None = 400, length: int = 0) -> Shown:
    """One line that a terminal shows as it is: other characters are escaped, and it is cut at `limit` characters.

    `length`: the length of the whole text, if `text` is only its beginning.
    """
    length = max(length, len(text))
    cut = limit is not None and length > limit
    shown = text[:limit] if cut else text
    if not shown.isprintable():  # nearly all texts are, and have no hidden characters
        shown = "".join(map(_escape, shown))
    return Shown(tame(shown) + (f"... ({length:,} characters)" if cut else ""))


def counted(count: int, thing: str) -> str:
    """A number with a noun, such as 1 request or 1,204 requests."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _shortened(message: str) -> str:
    begin, end = _REFUSAL
    if len(message) <= begin + end:
        return printable(message, None)
    return f"{printable(message[:begin], None)}... ({len(message):,} characters) ...{printable(message[-end:], None)}"


def _without_password(word: re.Match[str]) -> str:
    """A word without the user information in a URL, even a malformed one."""
    before, at, host = word[0].rpartition("@")
    return f"[redacted]@{host}" if at and host and ":" in before else word[0]


def tame(line: str) -> str:
    """The line without what a CI runner would take for a command."""
    return _COMMAND.sub(lambda found: f"{found[1]}\\::" if found[1] is not None else "#\\#", line)


def _escape(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character
