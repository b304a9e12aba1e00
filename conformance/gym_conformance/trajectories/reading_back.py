"""Repeated reads around one write: if each worker keeps its own state, some replies are old and some new.

Pure: builds such trajectories, and interprets their outcomes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.trajectories.generate import Knowledge, is_reading, writes_in
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, varying
from gym_conformance.trajectories.trajectory import Trajectory, needs_from
from gym_schemas import scalars

#: Reads; repetitions of each before and after the write; writes; and calls that may precede one.
_READS, _BEFORE, _AFTER, _WRITES, _CALLS = 2, 4, 6, 8, 12


@dataclass(frozen=True)
class ReadBack:
    """A trajectory that makes the same reads just before and just after its last write.

    Attributes:
        trajectory: the trajectory.
        first: the index of the first read.
        write: the index of the write.
        written: whether the write is made.
    """

    trajectory: Trajectory
    first: int
    write: int
    written: bool = True

    @classmethod
    def of(cls, trajectory: Trajectory) -> "ReadBack | None":
        """The trajectory as one that reads back; None unless it repeats the same reads around its last write."""
        calls = trajectory.calls
        write = max(writes_in(calls), default=0)
        after = list(map(_identity, calls[write + 1 :]))
        first = write
        while first and _identity(calls[first - 1]) in after:
            first -= 1
        before = set(map(_identity, calls[first:write]))
        again = before == set(after) and all(after.count(each) > 1 for each in before)
        return cls(trajectory, first, write) if before and again and not trajectory.noise else None

    @property
    def quiet(self) -> "ReadBack":
        """The same without the write."""
        return replace(self, written=False)

    @property
    def prefix(self) -> int:
        """How many steps come first, one at a time: the seed, and the calls before the reads."""
        return self.first + 1

    @property
    def before(self) -> Sequence[Call]:
        """The reads before the write."""
        return self.trajectory.calls[self.first : self.write]

    @property
    def after(self) -> Sequence[Call]:
        """The reads after the write."""
        return self.trajectory.calls[self.write + 1 :]

    def torn(
        self, arguments: Any, before: Sequence[StepOutcome], after: Sequence[StepOutcome], at_least: int = 2
    ) -> Difference | None:
        """How a read's replies after the write differ in what it wrote, if others are still as before; otherwise None.

        They must differ more than once, because a mailbox, for example, tells its news only to the first who asks.

        Args:
            arguments: the arguments of the write.
            before: the replies to the reads before it.
            after: the replies to the reads after it.
            at_least: how many replies must differ.
        """
        words = frozenset(json.dumps(value) for value, _ in scalars(arguments) if value not in ("", None))
        for read in dict.fromkeys(map(_identity, self.before)):
            old = [Outcome((step,)) for call, step in zip(self.before, before, strict=True) if _identity(call) == read]
            new = [Outcome((step,)) for call, step in zip(self.after, after, strict=True) if _identity(call) == read]
            changed = _changes(old, new)
            written = [found for found in (_first_written(each, words) for each in changed) if found]
            if [] in changed and len(written) >= at_least:
                return written[0]
        return None


def _changes(old: Sequence[Outcome], new: Iterable[Outcome]) -> list[list[Difference]]:
    """The differences of each new reply from the first old one, ignoring places that vary among the old ones."""
    mask = varying(old)
    return [[one for one in differences(old[0], each, mask) if not one.of_time] for each in new]


def _first_written(changes: Iterable[Difference], words: frozenset[str]) -> Difference | None:
    return next((one for one in changes if _is_written(one, words)), None)


def _identity(call: Call) -> str:
    return json.dumps([call.name, call.arguments], sort_keys=True)


def _is_written(difference: Difference, words: frozenset[str]) -> bool:
    """Whether the difference involves a written value, or a number that changed by one."""
    one, two = difference.expected, difference.actual
    if is_number(one) and is_number(two):
        return not words.isdisjoint(map(json.dumps, (one, two, round(two - one, 6), round(one - two, 6))))
    one, two = (json.dumps(each, default=str) for each in (one, two))  # one may be absent
    return any((word.strip('"') in one) != (word.strip('"') in two) for word in words)


def reading_back(knowledge: Knowledge) -> list[Trajectory]:
    """For each tool that writes, a known trajectory up to its first call of it, with reads around that."""
    return list(islice(_reading_back(knowledge), _WRITES))


def _reading_back(knowledge: Knowledge) -> Iterator[Trajectory]:
    seen = set[str]()
    for trajectory in known(knowledge):
        bare = [call for call in bare_reads(trajectory.row) if is_reading(call) and call not in trajectory.calls]
        whole = replace(trajectory, calls=(*trajectory.calls, *bare))
        for at, call in enumerate(trajectory.calls[:_CALLS]):
            reads = _suitable_reads(whole, len(trajectory.calls), at) if not is_reading(call) else []
            if reads and call.name not in seen:
                seen.add(call.name)
                yield whole.chosen([*range(at), *reads * _BEFORE, at, *reads * _AFTER])


def _suitable_reads(whole: Trajectory, made: int, write: int) -> list[int]:
    """Reads of different tools, first those that the trajectory makes, the last first, then others.

    None of them needs a value returned by the write or a later call, since it is also made before the write.
    """
    free = [at for at, call in enumerate(whole.calls) if not needs_from(call.arguments, write)]
    numbers = {whole.calls[at].name: at for at in free if at < made and is_reading(whole.calls[at])}
    bare = {whole.calls[at].name: at for at in free if at >= made}
    return list({**bare, **numbers}.values())[::-1][:_READS]
