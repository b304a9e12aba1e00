"""How much of a text a report shows: a page stays small, whatever the server sent."""

from collections.abc import Sequence
from typing import Final

from gym_conformance.printable import printable

#: Characters of any one text.
TEXT: Final = 500

#: Characters of one reproduction; a longer one is left out, because half a command is useless.
SCRIPT: Final = 100_000

#: Subjects, or places, that are named; more are counted.
NAMES: Final = 12


def shown(text: object, limit: int = TEXT) -> str:
    """One line without anything that hides, moves or reverses text, cut at `limit` characters."""
    return printable(str(text), limit)


def script(commands: Sequence[str], limit: int = SCRIPT) -> str:
    """The reproduction as shell commands, one a line; a comment if it is too long to show, '' if there is none."""
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
    """How long something takes."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
