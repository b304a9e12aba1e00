"""Which rows of a dataset are tried, and what is written about them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RowPlan:
    """Which rows are tried, and what is written about them.

    Attributes:
        files: the files with the rows.
        most: the most rows to try; None for all.
        report: where a line is written for each row; None for nowhere.
        keep: where rows that pass are written, byte for byte; None for nowhere.
        resume: whether rows already in the report are skipped.
    """

    files: tuple[Path, ...]
    most: int | None = None
    report: Path | None = None
    keep: Path | None = None
    resume: bool = False
