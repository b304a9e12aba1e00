"""Isolation in time: a session knows nothing of those before it.

Source: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its own (every version). A store that
all sessions share, and that no seed resets, is the commonest leak that shipped.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gym_conformance.checks.isolation.after_others import (
    by_answer,
    by_attempts,
    by_last,
    by_name,
    by_number,
    by_phrase,
    by_row,
    by_words_alike,
)
from gym_conformance.checks.isolation.between_reads import anew, around, asking_for_others, steady, where_it_ends
from gym_conformance.checks.isolation.used_up import SHOWN, expect_granted, expect_granted_again
from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.findings import Cause
from gym_conformance.grouping import round_robin
from gym_conformance.scouting.free_names import free_names
from gym_conformance.session.channel import NoRoom
from gym_conformance.trajectories.execute import FEW, beside
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.known import calling_more, known
from gym_conformance.trajectories.outcome import varying
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.before_and_after import RUNS, ChangedAnswer, FirstLook, changed, changed_since, reads_on
from gym_conformance.trials.chance import rules_out_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.fresh_process import fresh_process
from gym_conformance.trials.needs import FIRST_LOOK, RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.same_answer import expect_the_same_each_time
from gym_conformance.trials.suspicions import STORE, Maker, Patience, expect_none, suspected
from gym_conformance.trials.trial import Trial

#: Trajectories that are tried, and more that call other tools.
_TRAJECTORIES, _MORE = 3, 3

#: Known calls of a tool that reads, and of all of them, that no trajectory makes.
_ASKED, _OTHERS = 4, 12

#: Seconds in which pairs of sessions are looked at, and then as many for those that are suspected; longer profiles take
#: so many times their patience. One of each kind is tried whatever the clock says.
_SECONDS, _PATIENCE = 30.0, 3


@check(
    "isolation-earlier",
    "A session MUST know nothing about earlier ones",
    why="rollouts build on what others left behind; the same actions earn a different reward each time, and nothing reports it.",
    needs=[RESOURCES_SERVER, FIRST_LOOK, SCORE],
)
async def isolation_earlier(trial: Trial, _: object) -> None:
    """Looks in fifteen ways for what a session leaves to later ones.

    Reads and a verify are run 17 times on the untouched server, and 17 times after recorded rollouts; the answers must
    stay the same. Where nothing is recorded, they must, too, after calls that the tools were found to accept. So must the
    reward of recorded rollouts, if it is the recorded one 17 times at first. The answers must also stay the same when
    another session writes between them. A session that reads twice must read the same when another one comes and goes in
    between, both at its beginning and after a rollout's calls.

    A trajectory must have the same outcome whether an earlier session used the same names and numbers or others; for
    this, names and numbers that nobody has used are put into its calls and its row, and translated back in the replies.
    A session that only asks for names which the row does not know must be answered as if no earlier one had given them,
    and one that leaves out its first write as if no earlier one had made it.
    Its outcome must also be the same after a session that asked for the same words with other options, such as another
    page size; after one on another row that shares an id or another text with it; and after one on its own row that did
    nothing. And a session that does nothing must earn the same just after a good one on its own row as after one on
    another.

    An answer must earn the same on a row whether or not it was given to another row before, or an answer with the same
    beginning or end to the same row. It must earn the same the seventeenth time as the first, as must calls with names
    that nobody has used. And what the very first sessions were granted must not be refused to all later ones that do the
    same, as where one stock is sold out for all; nor may these all earn another reward.

    Values that differ anyway are not compared. A server that the suite launched is launched a second time, next to the
    first, with `--gym-profile ci` and longer ones, or if a difference may have been chance and the server starts within
    five seconds; there the first of these comparisons is repeated with whole trajectories. If a slow server leaves no
    time for some of them, each kind is tried in turn, and a caution says how many were.

    Source: `add_session_id` in nemo_gym/server_utils.py (every version).
    """
    _expect_as_at_first(trial)
    knowledge = await knowledge_of(trial)
    look = _expect_as_at_first(trial)
    crowded = [look.crowded] if look and look.crowded else []
    with _if_there_is_room(crowded):
        expect_unchanged(trial, await changed_since(trial.gym, look) if look else None)
    found = _tried(knowledge)
    pairs = await _expect_no_traces(trial, trial.gym.rows, knowledge, found, crowded)
    with _if_there_is_room(crowded):
        await expect_the_same_each_time(trial, found, knowledge.several)
    with _if_there_is_room(crowded):
        first_sessions = (*(look.first_sessions if look else ()), *knowledge.first_sessions)
        await expect_granted(trial, first_sessions, knowledge.several)
    looked = 0
    with _if_there_is_room(crowded):
        looked = await _expect_unchanged_afresh(trial, found)
    pairs.tell(trial, looked, crowded)


def _expect_as_at_first(trial: Trial) -> FirstLook | None:
    """Require that what the untouched server answered has not changed, as far as it was looked at, and return that."""
    look = trial.learned.first_look
    expect_unchanged(trial, look.change if look else None)
    return look


def _tried(knowledge: Knowledge) -> list[Trajectory]:
    """The first known trajectories, and a few more that call what these do not: each tool may keep things of its own."""
    found = known(knowledge)
    return [*found[:_TRAJECTORIES], *calling_more(found, found[:_TRAJECTORIES])[:_MORE]]


@dataclass(frozen=True)
class _Pairs:
    """How many pairs of sessions there were to try, and were tried; and what those needed for which there was no room."""

    there: int
    tried: int
    without_room: Sequence[str]

    def tell(self, trial: Trial, looked: int, crowded: Sequence[str]) -> None:
        """Say what a pass rests on.

        Raises:
            NoRoom: there was room for no pair.
        """
        if self.without_room and not self.tried:
            raise NoRoom(self.without_room[0])
        more = f", and {looked} more on a process started for it" if looked else ""
        trial.note = f"{self.tried} pairs of sessions{more}"
        few = f"only {self.tried} of {self.there} pairs of sessions were tried"
        if lacking := [*crowded, *self.without_room]:
            trial.caution = f"{few}, and not all looks taken, which need {lacking[0]}"
        elif self.tried < self.there:
            trial.caution = f"{few}: the server is slow; use {trial.settings.search.profile.enough}"


async def _expect_no_traces(
    trial: Trial, rows: Sequence[Row], knowledge: Knowledge, found: Sequence[Trajectory], crowded: list[str]
) -> _Pairs:
    """Try pairs of sessions of all kinds in turn, as far as there is time and room."""
    free = await beside((partial(free_names, trial.gym, one) for one in found), knowledge.several, trial.gym.endpoint)
    kinds = _kinds(trial, rows, knowledge, found, free)
    makers = list(round_robin(kinds))
    seconds = max(_SECONDS, _PATIENCE * trial.settings.search.profile.patience)
    looking, excluding = (Patience(seconds, len(kinds)) for _ in range(2))
    suspects = await suspected(trial, makers, knowledge.several, looking)
    # beside others no sum moves by the same twice, and what was made last is somebody else's
    alone = [*asking_for_others(trial, found), *by_last(trial, found)]
    with _if_there_is_room(crowded):
        alone += await by_number(trial, found)
    without_room = list[str]()
    for make in (*suspects, *alone):
        if excluding.allows():
            with _if_there_is_room(without_room):
                await expect_none(trial, make())
    there = len(makers) + len(alone)
    return _Pairs(there, there - looking.left_out - excluding.left_out - len(without_room), without_room)


@contextmanager
def _if_there_is_room(crowded: list[str]) -> Iterator[None]:
    """Leave out what finds no room, and note what it would have needed."""
    try:
        yield
    except NoRoom as needed:
        crowded.append(str(needed))


def _kinds(
    trial: Trial,
    rows: Sequence[Row],
    knowledge: Knowledge,
    found: Sequence[Trajectory],
    free: Sequence[frozenset[Any]],
) -> Sequence[Iterator[Maker]]:
    """What is suspected of earlier sessions, by kind; `free` has the names of each trajectory that may be others."""
    look = trial.learned.first_look
    differs = {probe: varying(before) for probe, before in zip(look.probes, look.before, strict=True)} if look else {}
    probes = (*differs, *_reads_of(knowledge, found, tuple(differs)))
    return (
        *(around(trial, probe, found, differs.get(probe, frozenset())) for probe in probes),
        where_it_ends(trial, knowledge, found),
        (make for one, names in zip(found, free, strict=True) for make in by_name(trial, rows, one, found, names)),
        (make for trajectory in found for make in by_phrase(trial, trajectory)),
        by_attempts(trial, found),
        by_row(trial, rows, knowledge),
        by_answer(trial, rows, found),
        by_words_alike(trial, found),
    )


def _reads_of(knowledge: Knowledge, found: Sequence[Trajectory], probes: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """The reads of a trajectory that follow what others return, which no look at an untouched server could make.

    Then all other reads of which it is known what they ask for: what one session does may show in any of them.
    """
    asked = {call.name for probe in probes for call in probe.calls}
    for trajectory in found:
        reads = trajectory.without([at for at, call in enumerate(trajectory.calls) if not knowledge.is_reading(call)])
        if new := {call.name for call in reads.calls} - asked:
            asked |= new
            yield reads
    if found:
        made = [call for trajectory in (*probes, *found) for call in trajectory.calls]
        own = {tool.name for tool in found[0].row.tools}
        known_ones = [Call(name, each) for name, several in knowledge.meaningful.items() for each in several[:_ASKED]]
        others = [call for call in known_ones if call.name in own and knowledge.is_reading(call) and call not in made]
        if others:
            yield Trajectory(found[0].row, tuple(others[:_OTHERS]))


async def _expect_unchanged_afresh(trial: Trial, found: Sequence[Trajectory]) -> int:
    """Take a first look once more, at a process where nobody was before: how many trajectories it tried.

    What the sessions of this run have changed for good, before it could be compared, is as it was there. Whole
    trajectories are looked at, too, those that do least before the others.
    """
    async with fresh_process(trial, suspicion=bool(trial.dismissed)) as gym:
        if gym is None:
            return 0
        reads = [reads_on(gym, row) for row in dict.fromkeys(one.row for one in found)]
        probes = (*[one for one in reads if one.calls], *sorted(found, key=lambda one: len(one.calls)))
        look = await changed(gym, probes, [each for one in found for each in anew(one)])
    expect_unchanged(trial, look.change)
    return len(probes)


def expect_unchanged(trial: Trial, change: ChangedAnswer | None) -> None:
    """Report an answer that has changed, unless that may be chance after so many comparisons."""
    if change is None or not rules_out_chance(trial, RUNS):
        return
    trial.channel.exchanges[:] = change.exchanges
    trial.schedule = change.schedule
    difference = change.difference
    raise Violation(
        f"{difference.answer}, as before other sessions came and went",
        f"{difference.actual!r} in a fresh session after them",
        STORE,
        Cause.OUTLIVING_STATE,
    )


async def _before_and_after(trial: Trial, schedule: Schedule) -> None:
    """What `--gym-replay` does: the first trajectory 17 times before the others, and 17 times after them.

    Where the others come and go in its midst, it reads before and after that. If nothing has changed then, pairs of
    these trajectories are tried as in the check, since what they have in common is new in each and not in the schedule.
    """
    probe, *writes = schedule.trajectories
    if schedule.order:
        begun = schedule.order.index(1) - 1
        reads = probe.calls[begun:]
        lasting_one = replace(probe, calls=probe.calls[: begun - len(reads)])
        for make in steady(trial, lasting_one, reads, writes[:1]):
            await expect_none(trial, make())
        return
    if len(writes) + 1 == SHOWN and all(one.calls == probe.calls for one in writes):
        await expect_granted_again(trial, probe)
        return
    expect_unchanged(trial, (await changed(trial.gym, (probe,), writes)).change)
    knowledge = Knowledge.of(schedule)
    found, crowded = _tried(knowledge), list[str]()
    pairs = await _expect_no_traces(trial, knowledge.rows, knowledge, found, crowded)
    await expect_the_same_each_time(trial, found, FEW)
    pairs.tell(trial, 0, crowded)


isolation_earlier = replace(isolation_earlier, attempt=_before_and_after)
