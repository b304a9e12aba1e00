"""Whether a call has taken effect when it is answered."""

from collections.abc import Iterator
from dataclasses import replace

from gym_conformance.checks.calls.own_writes import expect_own_writes, found_again
from gym_conformance.checks.sessions.readiness import ReadLater, affordable, expect_each_complete, once_more
from gym_conformance.grouping import round_robin
from gym_conformance.trajectories.generate import Knowledge, writes_in
from gym_conformance.trajectories.known import first_calls, known
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable
from gym_conformance.trials.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

#: Reads that follow a write.
_AFTER = 4


@check(
    "calls-complete",
    "A call SHOULD have taken effect when it is answered",
    why="a policy that looks at once sees nothing of what it did, or does it again; a verify at once scores it too low.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    gentle=True,
)
async def calls_complete(trial: Trial, _: object) -> None:
    """Makes meaningful calls up to a write, and then reads immediately, and 0.3, 0.6, 1.2 and 2 seconds later.

    If nothing is read after the writes, verify must give the same reward immediately as after such a pause.

    As in `seed-complete`, values that differ between the pauses are not compared, nor are times, nor replies that say
    themselves that something is still in progress, such as a queued job or a write that is answered with 202. Chance is
    excluded.

    It is also a violation if a read repeats, three times, what it said before the write, but says something else if it
    is first asked after the write. After up to four concurrent calls of one tool, reads must show what they show after
    the same calls one by one, if the order of the calls does not matter, and no more of the calls may be refused. Rows with
    `parallel_tool_calls: false` are left out there.

    Our inference: `SimpleAgent` (0.4.0) posts the next call as soon as the policy has seen the reply to the last one,
    and `haystack_agent` (0.7.0, `tool_concurrency_limit: 4`) posts those of one turn at once.
    """
    knowledge = await knowledge_of(trial)
    writes = affordable(knowledge, _writes(knowledge))
    if not writes:
        raise NotApplicable("no meaningful write and read are known")
    scored = affordable(knowledge, _scored(knowledge), 2 * len(writes))
    await expect_each_complete(trial, [*writes, *scored], "the call")
    await expect_own_writes(trial, knowledge)


def _writes(knowledge: Knowledge) -> Iterator[ReadLater]:
    """What is known up to the first call of each tool that writes, and then its reads."""
    reads = {one: _reads(knowledge, one)[-_AFTER:] for one in known(knowledge)}
    reading = (one for one in reads if reads[one])
    for one, at in first_calls(reading, lambda call: not knowledge.is_reading(call)):
        yield ReadLater(one.chosen([*range(at + 1), *reads[one]]), at + 2)


def _reads(knowledge: Knowledge, one: Trajectory) -> list[int]:
    """The indices of its calls that read, whatever their names: `positions` takes no arguments."""
    reading = {tool.name for tool in one.row.tools if knowledge.may_read(tool)}
    return [at for at, call in enumerate(one.calls) if call.name in reading]


def _scored(knowledge: Knowledge) -> Iterator[ReadLater]:
    """What is known up to a write, and as a whole, without its reads, which may wait for what it writes; then its verify."""
    up_to_a_write = (read.trajectory for read in _writes(knowledge))
    for trajectory in round_robin((up_to_a_write, known(knowledge))):
        writes = writes_in(trajectory.calls)
        if writes:
            yield ReadLater(trajectory.chosen(writes), 1 + len(writes), scored=True)


async def _again(trial: Trial, schedule: Schedule) -> None:
    if not await found_again(trial, schedule):
        await once_more(trial, schedule)


calls_complete = replace(calls_complete, attempt=_again)
