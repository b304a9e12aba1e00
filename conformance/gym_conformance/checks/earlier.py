"""Isolation in time: a session knows nothing of those before it.

Source: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its own (every version). A store that
all sessions share, and that no seed resets, is the commonest leak that shipped.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any, Final

from gym_conformance.checks.chance import beyond_chance
from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import Violation
from gym_conformance.checks.fresh_process import fresh_process
from gym_conformance.checks.needs import FIRST_LOOK, RESOURCES_SERVER, SCORE
from gym_conformance.checks.property import knowledge_of
from gym_conformance.checks.trial import Trial
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.before_and_after import (
    ChangedAnswer,
    by_design,
    changed,
    changed_since,
    lasting,
    reads_on,
)
from gym_conformance.trajectories.evidence import LOOKS, Look, allowed, chance_of
from gym_conformance.trajectories.execute import run, run_schedule
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import is_read
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, differences, moved, volatile
from gym_conformance.trajectories.renaming import (
    names_in,
    new_names,
    read_back,
    renamed,
    taking,
    with_other_numbers,
    word,
)
from gym_conformance.trajectories.trajectory import Schedule, Trajectory

#: Trajectories that are tried under other names, and sets of names of each.
_TRAJECTORIES, _SETS = 3, 2

#: Sessions that come and go between two reads of another, one after the other.
_BETWEEN = 2

#: Runs of the control that show what differs anyway.
_CONTROLS = 5

_STORE: Final = (
    "One store for all sessions: a module or class attribute, a default argument such as [] or {}, which is made once, or "
    "a store keyed by the row, its task or a name in it. Keep it by the session's id, and make it anew with each seed."
)
_CACHED: Final = "The score is kept under the answer alone: what it is kept under must name the row, too."


@check(
    "isolation-earlier",
    Level.MUST,
    "A session MUST know nothing of earlier ones",
    why="rollouts build on what others left: the same actions earn another reward each time, and training goes on.",
    needs=[RESOURCES_SERVER, FIRST_LOOK, SCORE],
)
async def isolation_earlier(trial: Trial, _: object) -> None:
    """Looks for what a session leaves to later ones, in five ways.

    Reads and a verify are run 17 times on the untouched server, and 17 times after recorded rollouts; they stay the
    same. So they do each time that another session writes between them. A session that reads twice reads the same
    where another one comes and goes in between. And a trajectory comes to the same whether an earlier session has
    spoken of the same names and numbers, or of others; names and numbers that nobody has used are put into calls and
    row for it, and read back from the replies. And an answer earns the same on a row whether or not it was given to
    another row before. What differs anyway is not compared. A server that the suite launched is launched once more
    beside it, with `--gym-profile ci` and longer ones, or where a difference may have been chance and it starts in five
    seconds: there the first of these is repeated with whole trajectories.

    Source: `add_session_id` in nemo_gym/server_utils.py (every version).
    """
    look = trial.learned.first_look
    if look and look.change and _excludes_chance(trial):
        raise _violation(trial, look.change)
    knowledge = await knowledge_of(trial)
    if look and (change := await changed_since(trial.gym, look)) and _excludes_chance(trial):
        raise _violation(trial, change)
    found = known(knowledge)[:_TRAJECTORIES]
    tried = 0
    probes = look.probes if look else ()
    for probe in (*probes, *_reads_of(found, probes)):
        tried += await _try_probe(trial, probe, found)
    for trajectory in found:
        tried += await _try_names(trial, trajectory, found)
        await _expect_unmoved(trial, trajectory)
    tried += await _expect_own_score(trial)
    looked = await _expect_unchanged_afresh(trial, found)
    trial.note = f"{tried} pairs of sessions" + (f", and {looked} more on a process started for it" if looked else "")


def _reads_of(found: Sequence[Trajectory], probes: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """The reads of a trajectory that follow what others return, which no look at an untouched server could make."""
    asked = {call.name for probe in probes for call in probe.calls}
    for trajectory in found:
        reads = trajectory.without([at for at, call in enumerate(trajectory.calls) if not is_read(call.name)])
        if new := {call.name for call in reads.calls} - asked:
            asked |= new
            yield reads


async def _try_probe(trial: Trial, probe: Trajectory, found: Sequence[Trajectory]) -> int:
    """Compare a probe before and after other sessions, and its reads around them; the number of pairs."""
    for writes in found:
        await _expect_unchanged(trial, probe, writes)
    for writes in found[:_BETWEEN]:
        await _expect_steady(trial, probe, writes)
    return len(found) + len(found[:_BETWEEN])


async def _try_names(trial: Trial, trajectory: Trajectory, found: Sequence[Trajectory]) -> int:
    """Compare a trajectory after sessions that used its names, on its own row and on others; the number of pairs."""
    sets = names_in(trajectory)
    others = (other for other in found if other.row is not trajectory.row)
    pairs = [*((names, trajectory) for names in sets[:_SETS]), *zip(sets, others, strict=False)]
    for names, other in pairs:
        await _expect_strangers(trial, trajectory, names, other)
    return len(pairs)


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
        look = await changed(gym, probes, [_fresh(one) for one in found])
    if look.change and _excludes_chance(trial):
        raise _violation(trial, look.change)
    return len(probes)


def _excludes_chance(trial: Trial) -> bool:
    trial.tried.comparisons += 1
    pairs = LOOKS[0].trials + LOOKS[1].trials
    return chance_of([(Look(pairs, pairs, 1, 1), pairs, 0)]) <= allowed(trial.tried.comparisons)


def _violation(trial: Trial, change: ChangedAnswer) -> Violation:
    trial.channel.exchanges[:] = change.exchanges
    trial.schedule = change.schedule
    difference = change.difference
    return Violation(
        f"{difference.step} answers {difference.expected!r}, as before other sessions came and went",
        f"{difference.actual!r} in a fresh session after them",
        _STORE,
        Cause.OUTLIVING_STATE,
    )


async def _expect_unchanged(trial: Trial, probe: Trajectory, writes: Trajectory) -> None:
    """Compare a probe with its outcome just before another session."""

    async def around(between: Trajectory | None, channel: Channel) -> Difference | None:
        before = await run(trial.gym, channel, probe)
        if between:
            await run(trial.gym, channel, _fresh(between))
        return next(_but(mask, lasting([before], [await run(trial.gym, channel, probe)])), None)

    mask: frozenset[Place] = frozenset()
    if await around(writes, trial.channel) is None:
        return
    first, *others = [await run(trial.gym, Channel(trial.gym.endpoint), probe) for _ in range(_CONTROLS)]
    mask = mask.union(*(volatile(first, other) for other in others))
    if await around(writes, trial.channel) is None:
        return
    if found := await beyond_chance(trial, partial(around, writes), partial(around, None)):
        trial.schedule = Schedule((probe, writes, probe))
        raise Violation(
            f"{found.step} answers {found.expected!r}, as before another session came and went",
            f"{found.actual!r} in a fresh session after it",
            _STORE,
            Cause.OUTLIVING_STATE,
        )


async def _expect_steady(trial: Trial, probe: Trajectory, writes: Trajectory) -> None:
    """Hold a session's reads to what they were just before another session came and went.

    What is never the same in two sessions, such as a list that grows with each of them, is the same within one.
    """
    reads = len(probe.calls)
    twice = replace(probe, calls=(*probe.calls, *probe.calls))

    async def around(between: Trajectory | None, channel: Channel) -> Difference | None:
        others = (_fresh(between),) if between else ()
        order = (0,) * (1 + reads) + (1,) * (others[0].steps if others else 0)
        outcome = (await run_schedule(trial.gym, channel, Schedule((twice, *others), order)))[0]
        before, after = Outcome(outcome.calls[:reads]), Outcome(outcome.calls[reads:])
        return next(_but(mask, lasting([before], [after])), None)

    async def unsteady() -> frozenset[Place]:
        outcome = await run(trial.gym, Channel(trial.gym.endpoint), twice)
        return volatile(Outcome(outcome.calls[:reads]), Outcome(outcome.calls[reads:]))

    mask: frozenset[Place] = frozenset()
    if await around(writes, trial.channel) is None:
        return
    mask = mask.union(*[await unsteady() for _ in range(_CONTROLS)])
    trial.channel.exchanges.clear()
    if await around(writes, trial.channel) is None:
        return
    if found := await beyond_chance(trial, partial(around, writes), partial(around, None)):
        trial.schedule = Schedule((twice, writes), (0,) * (1 + reads) + (1,) * writes.steps)
        raise Violation(
            f"{found.step} answers {found.expected!r} again, as where no other session comes and goes in between",
            f"{found.actual!r} after another session",
            _STORE,
            Cause.OUTLIVING_STATE,
        )


def _fresh(trajectory: Trajectory) -> Trajectory:
    """The trajectory with new names that were never used, if it has names."""
    names = names_in(trajectory)
    return renamed(trajectory, new_names(names[-1], Random())) if names else trajectory  # noqa: S311 - names, no secrets


def _but(mask: frozenset[Place], found: Iterator[Difference]) -> Iterator[Difference]:
    return (one for one in found if not any(one.place[:length] in mask for length in range(1, len(one.place) + 1)))


async def _expect_strangers(trial: Trial, trajectory: Trajectory, names: frozenset[Any], other: Trajectory) -> None:
    """Compare a trajectory after a session with the same names with one after a session with other names.

    The earlier session makes the same calls, on the same row or on that of `other`, whose things take the names.
    """
    draw = Random()  # noqa: S311 - names, no secrets
    earlier, spoken = replace(trajectory, row=other.row), next(iter(names_in(other)), frozenset[Any]())

    async def after(channel: Channel, *, same: bool) -> Outcome:
        mine = new_names(names, draw)
        theirs = mine if same else new_names(names, draw)
        await run(trial.gym, channel, renamed(earlier, {**taking(spoken, theirs), **theirs}))
        return read_back(await run(trial.gym, channel, renamed(trajectory, mine)), mine)

    await _expect_alike(
        trial,
        partial(after, same=True),
        partial(after, same=False),
        "as after a session that used other names",
        Schedule((earlier, trajectory)),
    )


async def _expect_unmoved(trial: Trial, trajectory: Trajectory) -> None:
    """Hold what a session's numbers move by to what they move by after a session that said other numbers.

    For what is never the same twice: a counter moves by the same whatever was said, and a sum does not.
    """
    first, last = [await run(trial.gym, Channel(trial.gym.endpoint), trajectory) for _ in range(2)]
    if not volatile(first, last):
        return

    async def after(channel: Channel, *, between: Trajectory) -> Outcome:
        nonlocal last
        before = last
        await run(trial.gym, channel, between)
        last = await run(trial.gym, channel, trajectory)
        return moved(before, last)

    if other := with_other_numbers(trajectory):
        await _expect_alike(
            trial,
            partial(after, between=other),
            partial(after, between=trajectory),
            "more than before, as after a session that said the same numbers",
            Schedule((trajectory, other, trajectory)),
        )


async def _expect_own_score(trial: Trial) -> int:
    """Compare what an answer earns on a row with what it earns after it was given to another row; the number of pairs.

    A word that nobody has said before stands before the answer, so that no earlier score of it is known.
    """
    said = ((row, rollouts[0]) for row, rollouts in trial.gym.recorded.items() if rollouts and rollouts[0].last_text)
    own = next((followed(row, rollout) for row, rollout in said), None)
    other = next((Trajectory(row) for row in trial.gym.rows if own and row is not own.row), None)
    if own is None or other is None:
        return 0
    draw = Random()  # noqa: S311 - words, no secrets

    async def scored(channel: Channel, *, before: bool) -> Outcome:
        answer = f"{word(draw)} {own.answer}"
        if before:
            await run(trial.gym, channel, replace(own, answer=answer))
        reward = (await run(trial.gym, channel, replace(other, answer=answer))).reward
        return Outcome((StepOutcome(VERIFY, HTTPStatus.OK.value, reward),))

    await _expect_alike(
        trial,
        partial(scored, before=True),
        partial(scored, before=False),
        "as where the answer was not given to another row before",
        Schedule((own, replace(other, answer=own.answer))),
        hint=_CACHED,
    )
    return 1


async def _expect_alike(
    trial: Trial,
    tried: Callable[[Channel], Awaitable[Outcome]],
    control: Callable[[Channel], Awaitable[Outcome]],
    words: str,
    schedule: Schedule,
    *,
    hint: str = _STORE,
) -> None:
    """Hold runs to other runs, chance excluded."""
    aside = Channel(trial.gym.endpoint)
    reference = await control(aside)
    mask = volatile(reference, await control(aside))

    def unlike(outcome: Outcome) -> Difference | None:
        return next((one for one in differences(reference, outcome, mask) if not by_design(one.place)), None)

    async def held(make: Callable[[Channel], Awaitable[Outcome]], channel: Channel) -> Difference | None:
        return unlike(await make(channel))

    if unlike(await tried(trial.channel)) is None:
        return
    for _control in range(_CONTROLS):
        mask |= volatile(reference, await control(aside))
    trial.channel.exchanges.clear()
    if unlike(await tried(trial.channel)) is None:
        return
    if found := await beyond_chance(trial, partial(held, tried), partial(held, control)):
        trial.schedule = schedule
        expected = f"{found.step} answers {found.expected!r}, {words}"
        raise Violation(expected, f"{found.actual!r}", hint, Cause.OUTLIVING_STATE)


async def _before_and_after(trial: Trial, schedule: Schedule) -> None:
    """What `--gym-replay` does: the first trajectory 17 times before the others, and 17 times after them.

    Where the others come and go in its midst, it reads before and after that.
    """
    probe, *writes = schedule.trajectories
    if schedule.order:
        await _expect_steady(trial, replace(probe, calls=probe.calls[: len(probe.calls) // 2]), writes[0])
        return
    if change := (await changed(trial.gym, (probe,), writes)).change:
        raise _violation(trial, change)


isolation_earlier = replace(isolation_earlier, attempt=_before_and_after)
