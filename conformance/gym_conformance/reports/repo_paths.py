"""Where in the env's repo a finding points."""

import os.path
from pathlib import Path
from typing import Final

from gym_conformance.reports.shown_text import shown

#: Characters of a path; a longer one is cut.
_LENGTH: Final = 1_000


def relative(file: str, root: Path) -> str:
    """The file as a path from `root`, with forward slashes; absolute where it lies elsewhere."""
    path = Path(os.path.abspath(shown(file, _LENGTH)))  # noqa: PTH100 - as resolve(), but a link stays where the repo has it
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
