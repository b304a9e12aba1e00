"""The place in the env's repo that a finding refers to."""

import os.path
from pathlib import Path
from typing import Final

from gym_conformance.reports.shown_text import shown

#: The most characters of a path.
_LENGTH: Final = 1_000


def relative(file: str, root: Path) -> str:
    """The path relative to `root`, with forward slashes; absolute if it is elsewhere."""
    path = Path(os.path.abspath(shown(file, _LENGTH)))  # noqa: PTH100 - like resolve(), but without following links
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
