"""The gate inside pytest: loads the baseline, and reports its entries for checks that do not exist."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.baseline import Baseline, Stale
from gym_conformance.baseline_toml import BadBaseline, read_baseline
from gym_conformance.reports.earlier_report import EarlierReport
from gym_conformance.trials.check import Check

BASELINE = pytest.StashKey[Baseline]()
BEFORE = pytest.StashKey[EarlierReport]()


def load_baseline(path: Path | None) -> Baseline:
    """The baseline that was given; an empty one if none was.

    Raises:
        pytest.UsageError: it is invalid.
    """
    try:
        return read_baseline(path) if path else Baseline("")
    except BadBaseline as bad:
        raise pytest.UsageError(f"--gym-baseline: {bad}") from None


def today() -> date:
    """The current date in UTC, the same for all who share a repo."""
    return datetime.now(UTC).date()


class IsStale(Exception):
    """An entry of the baseline is stale."""


class StaleItem(pytest.Item):
    """An entry for a check that does not exist: this item fails."""

    def __init__(self, *, stale: Stale, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.stale = [stale]

    def runtest(self) -> None:
        """Fail.

        Raises:
            IsStale: always.
        """
        raise IsStale

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The text to show: the entry, and what to do."""
        del excinfo, style
        return f"stale: {self.stale[0]}"

    def reportinfo(self) -> tuple[Path, int, str]:
        """Its location: in the baseline."""
        stale = self.stale[0]
        return Path(stale.file), max(stale.line - 1, 0), f"{stale.check} in the baseline"


def collect_unknown(session: pytest.Session, checks: Iterable[Check]) -> list[pytest.Item]:
    """An item for each entry that names no existing check; none if the command line selects checks by node ids."""
    if session.config.option.gym_chosen:
        return []
    unknown = session.config.stash[BASELINE].unknown({check.id for check in checks})
    collector = Entries.from_parent(session, name="gym/baseline", nodeid="gym/baseline")
    return [
        StaleItem.from_parent(collector, name=f"{stale.check}-{number}", stale=stale)
        for number, stale in enumerate(unknown, 1)
    ]


class Entries(pytest.Collector):
    """The entries of the baseline; `gym/baseline` in node ids."""

    def collect(self) -> list[pytest.Item]:
        """Nothing: see `collect_unknown`."""
        return []
