"""`--gym-replay`: schedules that broke a property before, as pytest items."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.documents import read_text
from gym_conformance.option_readers import BadOption
from gym_conformance.plugin.check_items import CheckItem
from gym_conformance.plugin.target import JudgedTarget
from gym_conformance.printable import printable
from gym_conformance.trajectories.trajectory import Schedule, parse
from gym_conformance.trials.check import Check


@dataclass(frozen=True)
class Replay:
    """A check, and the schedule to try with it."""

    name: str
    check: Check
    schedule: Schedule


def read_replay(path: Path, checks: Sequence[Check]) -> Replay:
    """Read one file.

    Raises:
        BadOption: it cannot be read, is no schedule, or its check is not a property.
    """
    try:
        check_id, schedule = parse(read_text(path), path)
    except OSError as error:
        raise BadOption(f"--gym-replay {str(path)!r}: {error.strerror}; give a file that a finding names") from None
    except ValueError as error:
        raise BadOption(
            f"--gym-replay {str(path)!r}: no schedule ({error}); give a file that a finding names"
        ) from None
    properties = {check.id: check for check in checks if check.attempt}
    if check_id not in properties:
        raise BadOption(f"--gym-replay {str(path)!r}: there is no property {check_id!r} in this version")
    return Replay(printable(path.stem, 100), properties[check_id], schedule)


class Replays(pytest.Collector):
    """The schedules to replay; `gym/replay` in node ids."""

    def __init__(self, *, replays: tuple[Replay, ...], target: JudgedTarget, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.replays = replays
        self.target = target

    def collect(self) -> Iterator[CheckItem]:
        """An item for each schedule."""
        for each in self.replays:
            yield CheckItem.from_parent(
                self, name=each.name, check=each.check, target=self.target, schedule=each.schedule
            )


def collect_replays(session: pytest.Session, replays: tuple[Replay, ...], target: JudgedTarget) -> list[CheckItem]:
    """The items of all schedules to replay."""
    collector = Replays.from_parent(session, name="gym/replay", nodeid="gym/replay", replays=replays, target=target)
    return [item for item in session.genitems(collector) if isinstance(item, CheckItem)]
