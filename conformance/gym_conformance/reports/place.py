"""Where in the env's repo a finding points."""

import os.path
from pathlib import Path


def relative(file: str, root: Path) -> str:
    """The file as a path from `root`, with forward slashes; absolute where it lies elsewhere."""
    path = Path(os.path.abspath(file))  # noqa: PTH100 - as resolve(), but a link stays where the repo has it
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
