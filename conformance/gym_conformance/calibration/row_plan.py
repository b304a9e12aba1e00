"""Which rows of a dataset are asked, and what is written of them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RowPlan:
    """Which rows are asked, and what is written of them.

    Attributes:
        files: where the rows are.
        most: so many rows at most; None for all.
        report: where a line for each row is written; None for nowhere.
        keep: where the rows that hold are written, byte for byte; None for nowhere.
        resume: whether rows that the report has already are left out.
    """

    files: tuple[Path, ...]
    most: int | None = None
    report: Path | None = None
    keep: Path | None = None
    resume: bool = False
