"""Limits of the texts that a report shows, so that a page stays small whatever the server sent."""

from collections.abc import Sequence
from typing import Final

from gym_conformance.printable import printable

#: The most characters of a text.
TEXT: Final = 500

#: The most characters of a reproduction; a longer one is left out, because half a command is useless.
SCRIPT: Final = 100_000

#: How many subjects or places to name; further ones are counted.
NAMES: Final = 12


def shown(text: object, limit: int = TEXT) -> str:
    """One line without characters that hide, move or reverse text, cut at `limit` characters."""
    return printable(str(text), limit)


def script(commands: Sequence[str], limit: int = SCRIPT) -> str:
    """The reproduction as shell commands, one per line; a comment if it is too long, '' if there is none."""
    text = "\n".join(commands[: limit + 1])
    if len(text) > limit:
        return f"# {len(commands):,} commands, too long to show; the JSON report has them"
    return text


def named(names: Sequence[str]) -> list[str]:
    """The first of many names, and how many more there are."""
    first = [shown(name, 120) for name in names[:NAMES]]
    more = len(names) - len(first)
    return [*first, f"and {more:,} more"] if more else first


def shown_time(seconds: float) -> str:
    """A duration, in s or ms."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
