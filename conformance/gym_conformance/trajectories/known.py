"""The trajectories known to mean something, recorded or made up, and how others choose among them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.grouping import first_of_each
from gym_conformance.trajectories.generate import Knowledge, is_reading
from gym_conformance.trajectories.made_up import made_up
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Trajectory

#: Known trajectories that the properties of one session use, and rows for which some are made up.
KNOWN = 4

#: Reads repeated at the end.
AGAIN = 3


def known(knowledge: Knowledge) -> list[Trajectory]:
    """Meaningful trajectories of as many rows as possible: recorded ones, then made-up ones.

    The first ones are of different rows, and together call as many tools as possible. Among rows without a recorded
    rollout, those of a new shape come first, since they may be scored differently, for example in a sandbox. Then come
    those that are answered otherwise than the rows before them: one scored in another's place earns something else.
    """
    recorded = list(knowledge.known_trajectories)
    rows = [row for row in knowledge.rows if row not in {trajectory.row for trajectory in recorded}]
    unlike = first_of_each(Row.shape, rows)
    answer = {row: knowledge.answers.get(row, ())[:1] for row in rows}
    first = first_of_each(answer.__getitem__, rows)
    rows.sort(key=lambda row: (unlike[row.shape()] is not row, first[answer[row]] is not row))
    other = (made for row in rows for made in [made_up(knowledge, row)] if made.calls or made.answer != PLAIN_ANSWER)
    found = [*recorded, *(made for _, made in zip(range(KNOWN), other, strict=False))]
    different = by_tools(list(first_of_each(lambda trajectory: trajectory.row, by_tools(found)).values()))
    return [*different, *(trajectory for trajectory in found if trajectory not in different)]


def by_tools(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Order trajectories so that each calls as many tools as possible that those before it do not."""
    left, chosen, called = list(trajectories), list[Trajectory](), set[str]()
    while left:
        news = [len({call.name for call in each.calls} - called) for each in left]
        if chosen and not max(news):
            break
        chosen.append(left.pop(news.index(max(news)) if chosen else 0))
        called |= {call.name for call in chosen[-1].calls}
    return [*chosen, *left]


def first_calls(
    found: Iterable[Trajectory], wanted: Callable[[Call], bool], most: int | None = None
) -> Iterator[tuple[Trajectory, int]]:
    """For each tool, its first wanted call among the first `most` of a trajectory, as trajectory and index."""
    seen = set[str]()
    for one in found:
        for at, call in enumerate(one.calls[:most]):
            if call.name not in seen and wanted(call):
                seen.add(call.name)
                yield one, at


def calling_more(found: Iterable[Trajectory], some: Iterable[Trajectory]) -> list[Trajectory]:
    """Those of what is `found` that call a tool which neither `some` nor those before them do."""
    called, more = {call.name for each in some for call in each.calls}, list[Trajectory]()
    for each in found:
        if names := {call.name for call in each.calls} - called:
            more.append(each)
            called |= names
    return more


def reading_again(trajectory: Trajectory) -> Trajectory:
    """The trajectory with its last reads repeated at the end."""
    reads = [call for call in trajectory.calls if is_reading(call)]
    return replace(trajectory, calls=(*trajectory.calls, *reads[-AGAIN:]))
